"""Show on one screen what happened in a run, when, and how sure that is.

The returns of all seeds are drawn on one scale. `sure` is 1 minus the chance that noise alone produces this shape.

Example: rlx analyze cartpole_ppo_001
         rlx analyze 'cartpole_*'
"""

import math

from rlx.hosts.cli.arguments import Args, Data, add_runs, for_each_run, render_each
from rlx.hosts.cli.format import NOTHING, counted, figure, sparkline, steps
from rlx.hosts.cli.output import labelled, table
from rlx.runs.run import Run

MOST_SEEDS = 12

arguments = add_runs


def run(args: Args) -> Data:
    return for_each_run(args.run, _analysis)


def _analysis(run: Run) -> Data:
    from rlx.diagnose.analyze import analyze, health
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.load_case import read_case

    case = read_case(run)
    analysis = analyze(case)
    findings = diagnose(case).findings
    return {
        "run": case.name,
        "env": case.setting("env.id"),
        "algo": case.algorithm,
        "planned_steps": case.planned_steps,
        "random": case.random.mean if case.random else None,
        "health": health(findings, analysis.answer),
        **analysis.document(),
        "findings": [{"rule": row.rule, "severity": row.severity, "claim": row.claim} for row in findings],
        "next": f"rlx {'diagnose' if findings else 'suggest'} {case.name}",
    }


def run_title(data: Data) -> str:
    """Return a run's name with its algorithm and environment."""
    return f"{data['run']} ({data['algo'] or 'unknown algorithm'} on {data['env'] or 'unknown environment'})"


def render(data: Data) -> str:
    return render_each(_render, data)


def _render(data: Data) -> str:
    head = labelled({"run": run_title(data), "health": data["health"], "what happened": data["line"]})
    claims = [f"{row['rule']} ({row['severity']}): {row['claim']}" for row in data["findings"]]
    tail = labelled({"found": claims, "missing": data["missing"], "next": data["next"]})
    return "\n\n".join(filter(None, [head, _seed_table(data), tail]))


def _seed_table(data: Data) -> str:
    if not data["seeds"]:
        return ""
    finite = [value for seed in data["seeds"] for value in seed["curve"] if math.isfinite(value)]
    scale = (min(finite, default=0.0), max(finite, default=0.0))
    rows = []
    for seed in data["seeds"][:MOST_SEEDS]:
        sure = f"{seed['sure']:.0%}"
        if seed["answer"] in ("flat", "unknown", "unstable"):
            sure = NOTHING
        figures = [figure(seed[key]) for key in ("start", "end", "report")]
        reached = steps(seed["step"], data["planned_steps"])
        curve = sparkline(seed["curve"], width=40, scale=scale)
        rows.append([str(seed["seed"]), seed["status"], reached, seed["answer"], *figures, sure, curve])
    header = ["seed", "status", "step", "answer", "from", "to", "report", "sure", ""]
    text = table(header, rows, right=(0, 2, 4, 5, 6, 7))
    left = len(data["seeds"]) - len(rows)
    if left:
        text += f"\nand {counted(left, 'more seed')} (--json has all)"
    return text
