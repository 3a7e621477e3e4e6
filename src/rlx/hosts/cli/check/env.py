"""Play an environment for a few seconds and list its defects with evidence.

ENV is a Gymnasium id, module:Class, file.py:Class, a config, catalog:NAME or a run. A config or run brings its kwargs
and wrappers. rlx checks the API, spaces and bounds, seeding, actions without effect, how episodes end, the sign of the
reward, the order of observations, aliasing, whether a vector of environments equals single ones, and the cost of a
step. It lists every check that it had no time for. If there is a defect of severity high, the exit code is 1.
The environment runs in a child process with limited memory, so one that crashes Python is a finding, too.

Example: rlx check env CartPole-v1
         rlx check env envs/boss.py:BossFight --seconds 30
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_settings, add_trust, env_name, obey_trust
from rlx.hosts.cli.check import survival
from rlx.hosts.cli.format import NOTHING, counted, figure, timespan
from rlx.hosts.cli.output import labelled
from rlx.hosts.cli.render_findings import paint_severity

if TYPE_CHECKING:
    from rlx.config.schema import Env
    from rlx.envs.inspect.record import Inspection


def arguments(parser: Parser) -> None:
    kinds = "an id, module:Class, file.py:Class, a config, catalog:NAME or a run"
    parser.add_argument("env", metavar="ENV", help=kinds)
    add_settings(parser)
    add_trust(parser)
    parser.add_argument("--seconds", default="4", metavar="TIME", help="play at most this long (default: %(default)s)")


def run(args: Args) -> Data:
    obey_trust(args)
    seconds = timespan(args.seconds)
    if seconds <= 0:
        raise UsageError(f"--seconds {args.seconds}: must be above 0", hint="--seconds 4")
    if survival.is_child():
        with survival.recorded_end():
            return survival.with_errors(lambda: _inspect(args, seconds))
    words = ["check", "env", args.env, *(word for setting in args.set for word in ("-s", setting))]
    if args.trust:
        words.append("--trust")
    outcome = survival.run_in_child([*words, "--seconds", args.seconds, "--json"], seconds=seconds)
    if isinstance(outcome, dict):
        return outcome
    return _killed(args, outcome)


def _killed(args: Args, death: survival.Death) -> Data:
    """Return the finding that the environment killed the process, as a report."""
    finding = {
        "rule": "kills_the_process",
        "severity": "high",
        "claim": f"{death.claim}, so training it would lose every seed",
        "evidence": [{"what": "end of the process", "value": death.code}],
        "try": list(death.tries),
        "changes": [],
    }
    nothing = {"observation": NOTHING, "action": NOTHING, "horizon": None, "reward_threshold": None, "steps": 0,
               "seconds": 0.0, "microseconds_per_step": 0.0, "microseconds_per_reset": 0.0}  # fmt: skip
    return {
        "env": args.env, "kind": _kind(args.env), "is_sound": False, "findings": [finding], "facts": nothing,
        "returns": {}, "checked": [], "unchecked": [{"what": "everything else", "why": "the process ended"}],
        "exit_code": 1,
    }  # fmt: skip


def _inspect(args: Args, seconds: float) -> Data:
    from rlx.diagnose.env_checks.env_findings import check_env
    from rlx.diagnose.env_checks.episode_findings import returns
    from rlx.envs.inspect.inspect_env import inspect

    root, env = _env(args.env, args.set)
    record = inspect(env, root=root, seconds=seconds)
    findings = check_env(record)
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
        "exit_code": int(not is_sound),
    }


def _kind(reference: str) -> str:
    """Return whether a reference names a run, a config or an environment."""
    from rlx.runs import project
    from rlx.runs.run import names

    if reference in names(project.root()):
        return "run"
    if reference.startswith("catalog:") or reference.endswith((".yaml", ".yml")):
        return "config"
    return "env"


def _env(reference: str, overrides: list[str]) -> tuple[Path, Env]:
    """Return the project's root and the environment that a reference names."""
    from rlx.config.load import read
    from rlx.config.schema import Env
    from rlx.evaluate.stored_code import refuse_stored_code
    from rlx.runs import project
    from rlx.runs.run import SNAPSHOT

    kind = _kind(reference)
    path = Path(reference)
    if kind == "run":
        path = project.runs_folder(project.root()) / reference / SNAPSHOT
    if kind != "env":
        refuse_stored_code(path, root=project.root())
        return project.root_of(path), read(path, overrides=overrides).env
    if overrides:
        raise UsageError(f"-s needs a config, and `{reference}` is not one", hint="name a config file or catalog:NAME")
    return project.tree(), Env(id=env_name(reference))


def _facts(record: Inspection) -> Data:
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


def render(data: Data) -> str:
    facts = data["facts"]
    costs = f"{figure(facts['microseconds_per_step'])} µs per step"
    costs += f", {figure(facts['microseconds_per_reset'])} µs per reset"
    head = labelled({
        data["env"]: _summary(data["findings"]),
        "observation": facts["observation"],
        "action": facts["action"],
        "time limit": facts["horizon"] or "unknown",
        "cost": f"{costs} ({facts['steps']:,} steps in {facts['seconds']:.1f} s)",
        "returns": _returns(data["returns"]),
    })  # fmt: skip
    blocks = [head]
    for finding in data["findings"]:
        advice = "".join(f"\n      try: {text}" for text in finding["try"])
        blocks.append(f"{paint_severity(finding)}  {finding['rule']}: {finding['claim']}{advice}")
    blocks.append(labelled({
        "checked": ", ".join(data["checked"]),
        "not checked": [f"{check['what']}: {check['why']}" for check in data["unchecked"]],
        "next": _next(data),
    }))  # fmt: skip
    return "\n\n".join(blocks)


def _summary(findings: list[Data]) -> str:
    counts = Counter(finding["severity"] for finding in findings)
    nouns = {"high": "defect", "medium": "doubt", "low": "remark"}
    parts = [counted(counts[severity], noun) for severity, noun in nouns.items() if counts[severity]]
    return ", ".join(parts) or "no defect found"


def _returns(rows: dict[str, dict[str, float]]) -> str:
    if "random" not in rows:
        return ""
    parts = [f"random {figure(rows['random']['return'])}"]
    constant = {name: row["return"] for name, row in rows.items() if name.startswith("constant")}
    if constant:
        best = max(constant, key=lambda name: constant[name])
        parts.append(f"{best}: {figure(constant[best])}")
    if "linear" in rows:
        parts.append(f"best linear policy of {rows['linear']['episodes']:.0f}: {figure(rows['linear']['best'])}")
    return "; ".join(parts)


def _next(data: Data) -> str:
    if not data["is_sound"]:
        return f"rlx check env {data['env']}, after you have fixed the defects"
    command = {"run": "rlx diagnose", "config": "rlx train", "env": "rlx init demo --env"}[data["kind"]]
    if data["kind"] == "env" and ":" in data["env"]:  # a file of this project, which a new project would not see
        command = "rlx review"
    return f"{command} {data['env']}"
