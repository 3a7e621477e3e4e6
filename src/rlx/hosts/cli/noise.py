"""Measure how noisy a config is: the spread of its seeds, how many fail, and which gains can be found at which cost.

A config (a file or catalog:NAME) continues the first run of the project with the same config, code and versions, so
nothing is trained twice. A run gets more seeds. --aa trains the same config again on unused seeds and judges them like
a candidate. The verdict should not be better or worse.

Example: rlx noise configs/cartpole.yaml
         rlx noise cartpole_ppo_001 --seeds 16 --aa
         rlx noise script_001 --metric rollout/success_rate
"""

import shlex
from dataclasses import replace

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.arguments import (
    Args,
    Data,
    Parser,
    add_executor,
    add_metric,
    add_reuse,
    add_trust,
    obey_trust,
    read_metric,
)
from rlx.hosts.cli.format import NOTHING, counted, duration, figure, sparkline
from rlx.hosts.cli.output import labelled, say, table
from rlx.runs import project

COLUMNS = 40


def arguments(parser: Parser) -> None:
    parser.add_argument("config", metavar="RUN|CONFIG", help="a run, a YAML config or catalog:NAME")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="at least N seeds in the pool (default: 10)")
    add_executor(parser)
    add_metric(parser)
    add_reuse(parser)
    parser.add_argument("--aa", action="store_true", help="judge fresh seeds of the same config against the pool")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.compare.code_version import CurrentCode
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.progress import SettleDisplay
    from rlx.loop.settle import run_or_config
    from rlx.loop.settle.noise import pool, replicate

    obey_trust(args)
    if args.seeds < 2:
        raise UsageError(f"--seeds {args.seeds}: a spread needs at least 2 seeds", hint="--seeds 10")
    attach.hear_signals()
    question = replace(read_metric(args), is_reuse=args.reuse)
    if args.aa and question.metric is not None:
        raise UsageError("--aa judges rlx's own evaluations, not --metric", hint="leave out one of them")
    ground = CurrentCode(project.root(), is_reuse=args.reuse)
    progress = SettleDisplay()
    try:
        named = run_or_config.read(args.config, root=ground.root, ground=ground)
        if named.run and named.experiment:
            say(f"{named.text}: continues {named.run.name}")
        elif named.experiment:
            for why in run_or_config.reasons_not_reused(named.experiment, root=ground.root, ground=ground):
                say(f"note: {why}")
        noise = pool(named, ground=ground, seeds=args.seeds, report=progress, question=question)
        data = noise.document()
        if args.aa:
            replicated = replicate(noise.run, ground=ground, report=progress)
            data |= {"aa": replicated.document(), "exit_code": replicated.settlement.exit_code}
    except KeyboardInterrupt:
        words = ["rlx", "noise", args.config, "--seeds", str(args.seeds), *shlex.split(question.options)]
        if args.aa:
            words.append("--aa")
        hint = f"continue with: {shlex.join(words)}"
        raise Interrupted("stopped; every seed saved `latest`", hint=hint) from None
    return data


def render(data: Data) -> str:
    score = f"{figure(data['mean'])} ± {figure(data['sd'])} (median {figure(data['median'])})"
    blocks = [labelled({
        "run": f"{data['run']} ({data['n']} seeds, {data['trained']} trained now)",
        data["metric"]: f"{score}; random policy {figure(data['random'])}",
        "seeds": f"{figure(data['min'])} {_histogram(list(data['seeds'].values()))} {figure(data['max'])}",
        "failing": _failing(data),
    }), _detectable(data)]  # fmt: skip
    if data["evidence"] == "reported":
        blocks.append(f"note: {data['metric']} is the last value that training logged; rlx did not measure it")
    if data["has_mixed_code"]:
        blocks.append("note: seeds of different code count together by --reuse")
    if "aa" in data:
        blocks.append(_aa(data["aa"]))
    following = f"rlx plot {data['run']}"
    can_replicate = data["can_train"] and data["evidence"] == "measured"  # --aa trains seeds and evaluates them
    if can_replicate and "aa" not in data:
        following = f"rlx noise {data['run']} --aa"
    return "\n\n".join(blocks) + f"\nnext: {following}"


def _histogram(scores: list[float]) -> str:
    """Draw how the seeds are distributed between the worst and the best."""
    low = min(scores)
    width = (max(scores) - low) or 1.0
    counts = [0.0] * COLUMNS
    for score in scores:
        counts[min(COLUMNS - 1, int((score - low) / width * COLUMNS))] += 1
    drawn = sparkline(counts, width=COLUMNS)
    return "".join(mark if count else " " for mark, count in zip(drawn, counts, strict=True))


def _failing(data: Data) -> str:
    failing = data["failing"]
    text = f"{failing['count']} of {data['n'] + len(data['crashed'])} seeds"
    if data["crashed"]:
        text += f", {len(data['crashed'])} of them crashed"
    if failing["threshold"] is not None:
        text += f" (below {figure(failing['threshold'])}: {failing['rule']})"
    return f"{text}; at most {failing['bound']:.0%} of all (95 %)"


def _detectable(data: Data) -> str:
    """Lay out which differences can be found with how many seeds and at which cost."""
    detects = data["detects"]
    rows = [
        [f"{row['share']:.0%} of the gain over random", figure(row["effect"]), *_price(row["seeds"], row["cost"])]
        for row in detects
    ]
    for seeds, effect in data["finds"].items():
        label = f"the smallest that {seeds} seeds per side find"
        rows.append([label, figure(effect), *_price(int(seeds), data["costs"][seeds])])
    text = table(["difference", data["metric"], "seeds per side", "to train", "CPU", "wall"], rows, right=range(1, 6))
    if not detects:
        reason = "it is not better than the random policy"
        if data["random"] is None:
            reason = "the random policy was not measured"
        return f"{text}\nnote: shares of the gain over random are undefined: {reason}"
    if any(row["seeds"] is None for row in detects):
        text += f"\nnote: {NOTHING} is more than the plan's 24 seeds per side can find (4 times in 5)"
    return text


def _price(seeds: int | None, cost: Data | None) -> list[str]:
    if seeds is None or cost is None:
        return [NOTHING] * 4
    return [str(seeds), str(cost["seeds"]), duration(cost["cpu_seconds"]), duration(cost["wall_seconds"])]


def _aa(aa: Data) -> str:
    answer = "as expected: the same config on unused seeds is not called better or worse"
    if aa["is_alarm"]:
        answer = "a false alarm: the same config was called different from itself"
    if aa["verdict"] == "invalid":
        answer = "none: the two cannot be compared"
    return labelled({
        "A/A": aa["line"],
        "answer": answer,
        "note": aa["notes"],
        "so far": f"{counted(aa['alarms'], 'false alarm')} in {counted(aa['asked'], 'A/A test')} of this pool",
        "expected": f"at most {aa['error']:.0%} of them; if there are many more, its seeds are not independent",
    })  # fmt: skip
