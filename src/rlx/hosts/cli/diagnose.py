"""Say what is wrong with a run: findings, the likely cause first, with evidence and what to try.

Findings do not depend on the unit of rewards. A rule whose metrics were not logged stays silent; which ones could not
look, and why, stands at the end. --rules shows what every rule goes by.

Example: rlx diagnose cartpole_ppo_001
         rlx diagnose --rules
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli.output import paint
from rlx.runs import project
from rlx.runs.run import find

COLOURS = {"high": "red", "medium": "yellow", "low": "dim"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="a run's name")
    parser.add_argument("--rules", action="store_true", help="describe the rules instead: limits, sources, blind spots")
    parser.add_argument("--all", action="store_true", help="name every rule that could not look")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.analyze import analyze, verdict
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.reading import read

    if args.rules:
        return {"rules": _rules()}
    if not args.run:
        raise UsageError("no run given", hint="rlx diagnose RUN; rlx ls lists them")
    case = read(find(args.run, root=project.root()))
    found, told = diagnose(case), analyze(case)
    health = verdict(found.findings, told.answer)
    what = {"run": case.name, "health": health, "what": told.line, **found.document(), "missing": list(told.missing)}
    return {**what, "is_all": args.all, "next": f"rlx suggest {case.name}"}


def _rules() -> list[dict[str, Any]]:
    from rlx.diagnose.explain import spelled
    from rlx.diagnose.rules import every

    return [
        {"id": rule.id, "kind": rule.kind, "severity": rule.severity, "says": rule.says, "needs": list(rule.needs),
         "algorithms": list(rule.algorithms), "limits": [spelled(limit) for limit in rule.limits],
         "source": rule.source, "cannot_see": rule.cannot_see, "try": list(rule.tries)}
        for rule in every()
    ]  # fmt: skip


def render(data: dict[str, Any]) -> str:
    if "rules" in data:
        return "\n\n".join(_described(rule) for rule in data["rules"])
    blocks = [f"run: {data['run']}\nhealth: {data['health']}\nwhat happened: {data['what']}"]
    blocks += [_finding(number, finding) for number, finding in enumerate(data["findings"], start=1)]
    if not data["findings"]:
        blocks.append(f"no failure found by {len(data['silent'])} rules")
    blocks.append(_unseen(data))
    return "\n\n".join([*filter(None, blocks), f"next: {data['next']}"])


def _finding(number: int, finding: dict[str, Any]) -> str:
    severity = paint(finding["severity"], COLOURS[finding["severity"]])
    lines = [f"{number}. {finding['rule']} ({severity}): {finding['claim']}"]
    steps = next((one["steps"] for one in finding["evidence"] if "steps" in one), None)
    lines += [f"   seen: steps {steps[0]:,} to {steps[1]:,}"] if steps else []
    return "\n".join([*lines, *(f"   try: {line}" for line in finding["try"])])


def _unseen(data: dict[str, Any]) -> str:
    lines = [f"missing: {what}" for what in data["missing"]]
    by_why: dict[str, list[str]] = {}
    for name, why in data["blind"].items():
        by_why.setdefault(why, []).append(name)
    if data["is_all"]:
        lines += [f"could not look ({why}): {', '.join(names)}" for why, names in by_why.items()]
    elif data["blind"]:
        looked, blind = len(data["silent"]) + len(data["findings"]), len(data["blind"])
        unlogged = sum(not why.startswith("not for") for why in data["blind"].values())
        lines.append(f"looked: {looked} rules; could not look: {blind}, {unlogged} of them for want of a metric "
                     f"(rlx diagnose {data['run']} --all)")  # fmt: skip
    return "\n".join(lines)


def _described(rule: dict[str, Any]) -> str:
    lines = [f"{rule['id']} ({rule['kind']}, {rule['severity']}): {rule['says']}"]
    lines += [f"  healthy: {limit}" for limit in rule["limits"]]
    lines += [f"  needs: {', '.join(rule['needs'])}"] if rule["needs"] else []
    lines += [f"  algorithms: {', '.join(rule['algorithms'])}"] if rule["algorithms"] else []
    return "\n".join([*lines, f"  source: {rule['source']}", f"  cannot see: {rule['cannot_see']}"])
