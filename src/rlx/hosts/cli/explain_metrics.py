"""Explain every metric a run logged: what it means, which values are healthy and who says so, what this run's says.

Limits are those of the rules (rlx diagnose --rules); metrics that rlx does not know are listed as unknown.

Example: rlx explain-metrics cartpole_ppo_001
         rlx explain-metrics cartpole_ppo_001 --metric approx_kl
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import NotFound
from rlx.hosts.cli import words
from rlx.runs import project
from rlx.runs.run import find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--metric", metavar="NAME", help="only metrics with this in their name")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.explain import explain
    from rlx.diagnose.reading import read

    case = read(find(args.run, root=project.root()))
    told = explain(case, metric=args.metric)
    if args.metric and not told:
        raise NotFound(f"{case.name} logged no metric with `{args.metric}` in its name",
                       hint=f"rlx explain-metrics {case.name}")  # fmt: skip
    missing = [*case.missing, *(f"seed {seed.seed}: {what}" for seed in case.seeds for what in seed.missing)]
    return {"run": case.name, "algo": case.algorithm, "metrics": told, "missing": missing}


def render(data: dict[str, Any]) -> str:
    known = [_explained(one) for one in data["metrics"] if one["meaning"]]
    unknown = [one["metric"] for one in data["metrics"] if not one["meaning"]]
    lines = [f"run: {data['run']} ({data['algo'] or 'unknown algorithm'})", *known]
    lines += [f"unknown to rlx: {', '.join(unknown)}"] if unknown else []
    lines += ["no metrics were logged"] if not data["metrics"] else []
    lines += [f"missing: {what}" for what in data["missing"]]
    return "\n\n".join([*lines, f"next: rlx diagnose {data['run']}"])


def _explained(one: dict[str, Any]) -> str:
    figures = f"median {words.figure(one['median'])}, last {words.figure(one['last'])}"
    lines = [f"{one['metric']}: {one['meaning']}", f"  here: {figures}: {one['says']}"]
    lines += [f"  healthy: {', '.join(one['healthy'])}"] if one["healthy"] else []
    return "\n".join([*lines, *([f"  source: {one['source']}"] if one["source"] else [])])
