"""Recommend algorithms, networks, starting values and the number of environments, with reasons and sources.

rlx plays ENV for a few seconds and measures step cost, spaces, horizon, reward density and determinism. It measures
throughput to choose `num_envs`. The answer says how sure it is, and which two configs to `settle`.

Example: rlx recommend CartPole-v1
         rlx recommend Pendulum-v1 --write configs
         rlx recommend envs/boss.py:BossFight --partially-observable
"""

from __future__ import annotations

import shlex
from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, env_name
from rlx.hosts.cli.format import timespan
from rlx.hosts.cli.output import labelled

SHOWN = 4


def arguments(parser: Parser) -> None:
    parser.add_argument("env", metavar="ENV", help="an environment id, module:Class or file.py:Class")
    parser.add_argument("--seconds", default="3", metavar="TIME", help="play at most this long (default: %(default)s)")
    parser.add_argument("--demonstrations", type=int, default=0, metavar="N", help="expert episodes at hand")
    parser.add_argument("--offline-episodes", type=int, default=0, metavar="N", help="episodes of a dataset at hand")
    parser.add_argument("--partially-observable", action="store_true", help="one observation is not the whole state")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the first two configs there")


def run(args: Args) -> Data:
    from rlx.config.schema import Env
    from rlx.design.env_profile import profile_working_env
    from rlx.design.recommend import DataAtHand, recommend
    from rlx.design.step_cost import measure_throughput
    from rlx.runs import project

    seconds = timespan(args.seconds)
    if seconds <= 0:
        raise UsageError(f"--seconds {args.seconds}: must be above 0", hint="--seconds 3")
    env = Env(id=env_name(args.env))
    root = project.tree()
    profile = profile_working_env(env, root=root, seconds=seconds)
    throughput = measure_throughput(env, root=root)
    data = DataAtHand(args.demonstrations, args.offline_episodes, args.partially_observable)
    advice = recommend(profile, throughput, data)
    first_two = advice.ranked[:2]
    written: list[str] = []
    if args.write is not None:
        written = [_write(args.write, choice.config) for choice in first_two]
    answer: Data = {
        "env": args.env,
        "measured": profile.document(),
        "throughput": throughput.document(),
        "ranked": [choice.document() for choice in advice.ranked],
        "confidence": advice.confidence,
        "because": advice.because,
        "notes": list(advice.notes),
        "settle": [choice.config["run_name"] for choice in first_two],
        "written": written,
    }
    answer["next"] = _next(args, written)
    if any(finding.severity == "high" for finding in profile.findings):
        answer["next"] = f"rlx check env {shlex.quote(args.env)}"
    return answer


def _write(folder: Path, config: Data) -> str:
    import yaml

    from rlx import files

    path = folder / f"{config['run_name']}.yaml"
    if path.exists():
        raise UsageError(f"`{path}` already exists, and rlx does not overwrite it", hint="use another --write FOLDER")
    folder.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, yaml.safe_dump(config, sort_keys=False, allow_unicode=True).encode())
    return str(path)


def _next(args: Args, written: list[str]) -> str:
    if len(written) == 2:
        return f"rlx settle {shlex.quote(written[0])} {shlex.quote(written[1])}"
    if written:
        return f"rlx train {shlex.quote(written[0])}"
    return f"rlx recommend {shlex.quote(args.env)} --write configs"


def render(data: Data) -> str:
    measured = data["measured"]
    rates = data["throughput"]["steps_per_second"]
    head = labelled({
        data["env"]: f"{measured['observation']} → {measured['action']}",
        "measured": _measured(measured),
        "environments": f"{data['throughput']['num_envs']} ("
        + ", ".join(f"{count}: {rate:,}/s" for count, rate in rates.items()) + ")",
        "sure": f"{data['confidence']}: {data['because']}",
        "note": data["notes"],
    })  # fmt: skip
    blocks = [head]
    for number, choice in enumerate(data["ranked"][:SHOWN], start=1):
        points = f"{choice['points']:g} point" if choice["points"] == 1 else f"{choice['points']:g} points"
        lines = [f"{number}. {choice['algorithm']} ({points}): {_settings(choice['config'])}"]
        for reason in choice["reasons"]:
            card = reason["card"] or reason["sources"][0]
            lines.append(f"   {reason['points']:+g}  {reason['why']} ({card})")
        if number == 2 and any(other["points"] > choice["points"] for other in data["ranked"][2:]):
            lines.append("   second because it learns in another way: comparing it with the first tells you more")
        blocks.append("\n".join(lines))
    blocks.append(labelled({"settle": " against ".join(data["settle"]), "wrote": data["written"]}))
    return "\n\n".join([*filter(None, blocks), f"next: {data['next']}"])


def _measured(measured: Data) -> str:
    from rlx.design.recommend import step_text

    horizon = f"horizon {measured['horizon']}"
    if not measured["is_horizon_known"]:
        horizon = "horizon not known (no episode ended)"
    density = f"reward density {measured['reward_density']:.1%}"
    if not measured["is_density_known"]:
        density = "reward density not known (too few steps)"
    return f"{step_text(measured['step_microseconds'])} per step, {horizon}, {density}"


def _settings(config: Data) -> str:
    from rlx.config.labels import spell

    algo = config["algo"]
    keys = ("gamma", "learning_rate", "rollout_steps", "batch_size", "buffer_size")
    parts = [f"{key} {spell(algo[key])}" for key in keys if key in algo]
    parts += [f"num_envs {config['env']['num_envs']}", f"{config['policy']['type']} {config['policy']['hidden_sizes']}"]
    return ", ".join(parts)
