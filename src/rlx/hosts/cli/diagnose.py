"""List the failures of a run: findings with evidence and what to try, the likely cause first.

Findings do not depend on the unit of rewards. A rule whose metrics were not logged stays silent; the end of the output
says how many rules could not look. --rules describes every rule.

Example: rlx diagnose cartpole_ppo_001
         rlx diagnose --rules
"""

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, for_each_run, render_each
from rlx.hosts.cli.output import labelled
from rlx.hosts.cli.render_findings import paint_severity
from rlx.runs.run import Run


def arguments(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="the name of a run, or a pattern: 'cartpole_*'")
    parser.add_argument("--rules", action="store_true", help="describe the rules: limits, sources, blind spots")
    parser.add_argument("--all", action="store_true", help="name every rule that could not look")


def run(args: Args) -> Data:
    if args.rules:
        return {"rules": _rules()}
    if not args.run:
        raise UsageError("no run given", hint="rlx diagnose RUN; rlx ls lists the runs")
    return for_each_run(args.run, lambda run: _diagnosis(run, is_all=args.all))


def _diagnosis(run: Run, *, is_all: bool) -> Data:
    from rlx.diagnose.analyze import analyze, health
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.load_case import read_case

    case = read_case(run)
    diagnosis = diagnose(case)
    analysis = analyze(case)
    return {
        "run": case.name,
        "health": health(diagnosis.findings, analysis.answer),
        "what": analysis.line,
        **diagnosis.document(),
        "missing": list(analysis.missing),
        "is_all": is_all,
        "next": f"rlx suggest {case.name}",
    }


def _rules() -> list[Data]:
    from rlx.diagnose.explain import spell_limit
    from rlx.diagnose.rules import all_rules

    return [
        {"id": rule.id, "kind": rule.kind, "severity": rule.severity, "says": rule.summary, "needs": list(rule.needs),
         "algorithms": list(rule.algorithms), "limits": [spell_limit(limit) for limit in rule.limits],
         "source": rule.source, "cannot_see": rule.cannot_see, "try": [str(line) for line in rule.advice]}
        for rule in all_rules()
    ]  # fmt: skip


def render(data: Data) -> str:
    if "rules" in data:
        return "\n\n".join(_describe_rule(rule) for rule in data["rules"])
    return render_each(_render, data)


def _render(data: Data) -> str:
    blocks = [labelled({"run": data["run"], "health": data["health"], "what happened": data["what"]})]
    blocks += [_finding(number, finding) for number, finding in enumerate(data["findings"], start=1)]
    if not data["findings"]:
        blocks.append(f"no failure found by {len(data['silent'])} rules")
    blocks.append(labelled({"missing": data["missing"], **_blind_rules(data)}))
    return "\n\n".join([*filter(None, blocks), f"next: {data['next']}"])


def _finding(number: int, finding: Data) -> str:
    lines = [f"{number}. {finding['rule']} ({paint_severity(finding)}): {finding['claim']}"]
    for row in finding["evidence"]:
        if "steps" in row:
            lines.append(f"   seen: steps {row['steps'][0]:,} to {row['steps'][1]:,}")
            break
    return "\n".join([*lines, *(f"   try: {advice}" for advice in finding["try"])])


def _blind_rules(data: Data) -> dict[str, str]:
    """Return how many rules could not look; with --all, their names by reason."""
    blind = data["blind"]
    if data["is_all"]:
        names = {why: [rule for rule in blind if blind[rule] == why] for why in blind.values()}
        return {f"could not look ({why})": ", ".join(rules) for why, rules in names.items()}
    if not blind:
        return {}
    looked = len(data["silent"]) + len(data["findings"])
    return {"looked": f"{looked} rules; could not look: {len(blind)} (rlx diagnose {data['run']} --all says why)"}


def _describe_rule(rule: Data) -> str:
    fields = {
        "  healthy": rule["limits"],
        "  needs": ", ".join(rule["needs"]),
        "  algorithms": ", ".join(rule["algorithms"]),
        "  source": rule["source"],
        "  cannot see": rule["cannot_see"],
    }
    return f"{rule['id']} ({rule['kind']}, {rule['severity']}): {rule['says']}\n{labelled(fields)}"
