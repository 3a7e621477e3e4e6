"""Judge a candidate on its trained seeds. rlx measures the seeds that have no score yet, and decides nothing.

A candidate races the head. If both sides have their seeds, the head is compared with the original baseline.

Example: rlx verdict c001
"""

from rlx.hosts.cli.arguments import Args, Data, add_candidate, find_study
from rlx.hosts.cli.format import counted, figure, guardrail_text, interval, signed
from rlx.hosts.cli.output import labelled, say

arguments = add_candidate


def run(args: Args) -> Data:
    from rlx.loop.study.decide import verdict

    return verdict(find_study(args.study), args.candidate, say=say)


def render(data: Data) -> str:
    return labelled({**verdict_fields(data), "next": data["command"]})


def verdict_fields(data: Data) -> dict[str, object]:
    """Return a verdict with the level of its evidence and approval; the candidate's numbers come first."""
    effect = ""
    if data["effect"] is not None:
        effect = f"{data['metric']} {signed(data['effect'])} {interval(data['interval'])}"
    seeds = f"{data['n'][1]} v {data['n'][0]}"
    if data["crashed"]:
        seeds += f", {data['crashed']} crashed"
    baseline_seconds, candidate_seconds = data["seconds_a_seed"]
    seconds = ""
    if baseline_seconds is not None and candidate_seconds is not None:
        seconds = f"{figure(candidate_seconds)} v {figure(baseline_seconds)} s per seed"
    return {
        "candidate": f"{data['candidate']} against {data['against']} ({data['test']})",
        "verdict": data["verdict"],
        "effect": effect,
        "seeds": seeds,
        "why": data["words"],
        "guard": [f"{name}: {guardrail_text(guardrail)}" for name, guardrail in data["guardrails"].items()],
        "invalid": data["objections"],
        "note": data["notes"],
        "time": seconds,
        "complexity": _complexity(**data["complexity"]),
        "evidence": f"{data['level']}; approval: {data['approval']}; enforced: {data['enforced']}",
    }


def _complexity(*, lines: int, parameters: int | None) -> str:
    changed = f"{counted(lines, 'changed line')} (a config key counts as one)"
    if parameters is None:
        return f"{changed}, unknown number of parameters (a custom policy)"
    return f"{changed}, {parameters:,} parameters"
