"""Play an environment and say what is wrong with it, with the evidence.

ENV is a Gymnasium id, module:Class, file.py:Class, a config, catalog:NAME or a run (with their kwargs and wrappers).
Tried are the API, spaces and bounds, seeding, actions without effect, how episodes end, the reward's sign over time,
the order of observations, aliasing, vector = single, and the cost of a step. It takes a few seconds at most; what
there was no time for is said. Exit code 1 where a defect (high) was found.

Example: rlx check env CartPole-v1
         rlx check env envs/boss.py:BossFight --seconds 30
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import UsageError
from rlx.hosts.cli.output import paint
from rlx.hosts.cli.words import figure, plural, timespan

if TYPE_CHECKING:
    from rlx.config.schema import Env
    from rlx.envs.inspect_record import Inspection

_COLOURS = {"high": "red", "medium": "yellow", "low": "dim"}


def arguments(parser: argparse.ArgumentParser) -> None:
    known = "an id, module:Class, file.py:Class, a config, catalog:NAME or a run"
    parser.add_argument("env", metavar="ENV", help=known)
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="override a config key")
    parser.add_argument(
        "--seconds", default="4", metavar="TIME", help="how long to play at most (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.inspect_course import returns
    from rlx.diagnose.inspect_env import judge
    from rlx.envs.inspect import inspect

    seconds = timespan(args.seconds)
    if seconds <= 0:
        raise UsageError(f"--seconds {args.seconds}: no time to play", hint="--seconds 4")
    root, env = _env(args.env, args.set)
    record = inspect(env, root=root, seconds=seconds)
    findings = judge(record)
    is_sound = not any(finding.severity == "high" for finding in findings)
    return {
        "env": args.env,
        "kind": _kind(args.env),
        "is_sound": is_sound,
        "findings": [finding.document() for finding in findings],
        "facts": _facts(record),
        "returns": returns(record),
        "checked": list(record.checked),
        "unchecked": [{"what": what, "why": why} for what, why in record.unchecked],
        "exit_code": 0 if is_sound else 1,
    }


def _kind(reference: str) -> str:
    """Say what a reference names: a run, a config or an environment."""
    from rlx.runs import project
    from rlx.runs.run import names

    if reference in names(project.root()):
        return "run"
    return "config" if reference.startswith("catalog:") or reference.endswith((".yaml", ".yml")) else "env"


def _env(reference: str, overrides: list[str]) -> tuple[Path, Env]:
    """Return the project's root and the environment that a reference names."""
    from rlx.config.load import read
    from rlx.config.schema import Env
    from rlx.runs import project
    from rlx.runs.run import SNAPSHOT

    kind = _kind(reference)
    if kind == "env":
        if overrides:
            raise UsageError(
                f"-s changes a config, and `{reference}` is none", hint="name a config file or catalog:NAME"
            )
        return project.tree(), Env(id=reference)
    path = project.runs_folder(project.root()) / reference / SNAPSHOT if kind == "run" else Path(reference)
    return project.root_of(path), read(path, overrides=overrides).env


def _facts(record: Inspection) -> dict[str, Any]:
    return {
        "observation": record.observation,
        "action": record.action,
        "horizon": record.horizon,
        "reward_threshold": record.threshold,
        "steps": record.cost.steps,
        "seconds": round(record.cost.total, 3),
        "microseconds_per_step": round(record.cost.step * 1e6, 1),
        "microseconds_per_reset": round(record.cost.reset * 1e6, 1),
    }


def render(data: dict[str, Any]) -> str:
    facts = data["facts"]
    lines = [
        f"{data['env']}: {_verdict(data['findings'])}",
        f"observation: {facts['observation']}",
        f"action: {facts['action']}",
        f"time limit: {facts['horizon'] or 'none known'}",
        f"cost: {figure(facts['microseconds_per_step'])} µs a step, {figure(facts['microseconds_per_reset'])} µs a "
        f"reset ({facts['steps']:,} steps in {facts['seconds']:.1f} s)",
        *_returns(data["returns"]),
    ]
    for finding in data["findings"]:
        lines += [
            "",
            f"{paint(finding['severity'], _COLOURS[finding['severity']])}  {finding['rule']}: {finding['claim']}",
        ]
        lines += [f"      try: {attempt}" for attempt in finding["try"]]
    lines += ["", f"checked: {', '.join(data['checked'])}"]
    lines += [f"not checked: {each['what']}: {each['why']}" for each in data["unchecked"]]
    return "\n".join([*lines, f"next: {_next(data)}"])


def _verdict(findings: list[dict[str, Any]]) -> str:
    counts = {severity: sum(finding["severity"] == severity for finding in findings) for severity in _COLOURS}
    words = {"high": "defect", "medium": "doubt", "low": "remark"}
    parts = [plural(count, words[severity]) for severity, count in counts.items() if count]
    return ", ".join(parts) or "nothing is wrong with it"


def _returns(rows: dict[str, dict[str, float]]) -> list[str]:
    if "random" not in rows:
        return []
    parts = [f"random {figure(rows['random']['return'])}"]
    constant = {name: row for name, row in rows.items() if name.startswith("constant")}
    if constant:
        name = max(constant, key=lambda each: constant[each]["return"])
        parts.append(f"{name}: {figure(constant[name]['return'])}")
    if "linear" in rows:
        parts.append(f"best linear policy of {rows['linear']['episodes']:.0f}: {figure(rows['linear']['best'])}")
    return [f"returns: {'; '.join(parts)}"]


def _next(data: dict[str, Any]) -> str:
    if not data["is_sound"]:
        return f"mend it, then rlx check env {data['env']}"
    is_own = ":" in data["env"]  # a file of this project, which a new one would not see
    after = {"run": "rlx diagnose", "config": "rlx train", "env": "rlx review" if is_own else "rlx init demo --env"}
    return f"{after[data['kind']]} {data['env']}"
