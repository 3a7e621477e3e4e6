"""How noisy is a config: the spread of its seeds, how many fail, which gains can be found and what that costs.

A config (a file, catalog:NAME) goes on with the first run of the project that has the same config, code and versions,
so nothing is trained twice; a run gets further seeds. --aa trains the same config once more, on seeds nobody used, and
sends them through everything a candidate goes through: the verdict should not be better or worse.

Example: rlx noise configs/cartpole.yaml
         rlx noise cartpole_ppo_001 --seeds 16 --aa
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.output import say, table
from rlx.hosts.cli.words import duration, figure, plural, sparkline
from rlx.runs import project

COLUMNS = 40


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="RUN|CONFIG", help="a run, a YAML config or catalog:NAME")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="seeds in the pool, at least (10)")
    parser.add_argument("--aa", action="store_true", help="judge fresh seeds of the same config against the pool")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.compare.ground import Ground
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.ticker import Ticker
    from rlx.loop import entry
    from rlx.loop.noise import pool, replicate

    if args.seeds < 2:
        raise UsageError(f"--seeds {args.seeds}: one seed has no spread", hint="--seeds 10")
    attach.hear_signals()
    ground, ticker = Ground(project.root()), Ticker()
    try:
        named = entry.read(args.config, root=ground.root, ground=ground)
        if named.run and named.experiment:
            say(f"{named.text}: goes on with {named.run.name}")
        found = pool(named, ground=ground, seeds=args.seeds, report=ticker)
        again = replicate(found.run, ground=ground, report=ticker) if args.aa else None
    except KeyboardInterrupt:
        words = shlex.join(["rlx", "noise", args.config, "--seeds", str(args.seeds), *(["--aa"] if args.aa else [])])
        hint = f"it goes on where it was: {words}"
        raise Interrupted("stopped; every seed saved `latest`", hint=hint) from None
    finally:
        ticker.close()
    data = found.document()
    return {**data, "aa": again.document(), "exit_code": again.settlement.exit_code} if again else data


def render(data: dict[str, Any]) -> str:
    scores = list(data["seeds"].values())
    lines = [
        f"run: {data['run']} ({data['n']} seeds, {data['trained']} trained now)",
        f"{data['metric']}: {figure(data['mean'])} ± {figure(data['sd'])} (median {figure(data['median'])}); "
        f"random policy {figure(data['random'])}",
        f"seeds: {figure(data['min'])} {strip(scores)} {figure(data['max'])}",
        f"failing: {_failing(data)}",
        "",
        *_found(data),
    ]
    if "aa" in data:
        lines += ["", *_aa(data["aa"])]
    following = f"rlx plot {data['run']}" if "aa" in data else f"rlx noise {data['run']} --aa"
    return "\n".join([*lines, f"next: {following}"])


def strip(scores: list[float], *, columns: int = COLUMNS) -> str:
    """Draw how many seeds lie where between the worst and the best."""
    low, high = min(scores), max(scores)
    counts = [0] * columns
    for score in scores:
        counts[min(columns - 1, int((score - low) / (high - low) * columns)) if high > low else 0] += 1
    drawn = sparkline([float(count) for count in counts], width=columns)
    return "".join(mark if count else " " for mark, count in zip(drawn, counts, strict=True))


def _failing(data: dict[str, Any]) -> str:
    failing, total = data["failing"], data["n"] + len(data["crashed"])
    crashed = f", {len(data['crashed'])} of them crashed" if data["crashed"] else ""
    below = f" (below {figure(failing['threshold'])}: {failing['rule']})" if failing["threshold"] is not None else ""
    return f"{failing['count']} of {total} seeds{crashed}{below}; at most {failing['bound']:.0%} of all (95 %)"


def _found(data: dict[str, Any]) -> list[str]:
    """Say what can be found at which look and at which cost."""
    rows = [
        [f"{one['share']:.0%} of the gain over random", figure(one["effect"]), *_price(one["seeds"], one["cost"])]
        for one in data["detects"]
    ]
    rows += [
        [f"the smallest that {seeds} a side find", figure(effect), *_price(int(seeds), data["costs"][seeds])]
        for seeds, effect in data["finds"].items()
    ]
    lines = [
        table(["a difference of", data["metric"], "seeds a side", "to train", "CPU", "wall"], rows, right=range(1, 6))
    ]
    if not data["detects"]:
        why = (
            "the random policy was not measured" if data["random"] is None else "it is no better than the random policy"
        )
        lines.append(f"note: shares of the gain over random are undefined: {why}")
    elif any(one["seeds"] is None for one in data["detects"]):
        lines.append("note: – is more than the plan's 24 seeds a side can find (4 times in 5)")
    return lines


def _price(seeds: int | None, cost: dict[str, Any] | None) -> list[str]:
    if seeds is None or cost is None:
        return ["–"] * 4
    cpu = "–" if cost["cpu_seconds"] is None else duration(cost["cpu_seconds"])
    return [str(seeds), str(cost["seeds"]), cpu, duration(cost["wall_seconds"])]


def _aa(aa: dict[str, Any]) -> list[str]:
    answer = {
        True: "a false alarm: the same config was called different from itself",
        False: "as it should be: the same config, on seeds nobody used, is not called better or worse",
    }
    lines = [f"A/A: {aa['line']}", f"answer: {answer[aa['is_alarm']]}"]
    if aa["verdict"] == "invalid":
        lines[1] = "answer: none, the two cannot be compared"
    lines += [f"note: {note}" for note in aa["notes"]]
    lines.append(f"so far: {plural(aa['alarms'], 'false alarm')} in {plural(aa['asked'], 'A/A test')} of this pool")
    lines.append(f"expected: at most {aa['error']:.0%} of them; many more, and its seeds are not independent")
    return lines
