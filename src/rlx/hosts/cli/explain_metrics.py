"""Explain every metric that a run logged: its meaning, its healthy values with their source, and this run's values.

The limits are those of the rules (rlx diagnose --rules). rlx lists the metrics that it does not know.

Example: rlx explain-metrics cartpole_ppo_001
         rlx explain-metrics cartpole_ppo_001 --metric approx_kl
"""

from rlx.errors import NotFound
from rlx.hosts.cli.arguments import Args, Data, Parser, add_run, find_run
from rlx.hosts.cli.format import figure, in_brackets
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--metric", metavar="NAME", help="only metrics with this text in their name")


def run(args: Args) -> Data:
    from rlx.diagnose.explain import explain
    from rlx.diagnose.load_case import read_case

    case = read_case(find_run(args.run))
    metrics = explain(case, metric=args.metric)
    if args.metric and not metrics:
        message = f"{case.name} logged no metric with `{args.metric}` in its name"
        raise NotFound(message, hint=f"rlx explain-metrics {case.name}")
    missing = [*case.missing, *(f"seed {seed.seed}: {what}" for seed in case.seeds for what in seed.missing)]
    return {"run": case.name, "algo": case.algorithm, "metrics": metrics, "missing": missing}


def render(data: Data) -> str:
    metrics = data["metrics"]
    blocks = [f"run: {data['run']} ({data['algo'] or 'unknown algorithm'})"]
    blocks += [_explanation(metric) for metric in metrics if metric["meaning"]]
    blocks.append(labelled({"unknown to rlx": ", ".join(row["metric"] for row in metrics if not row["meaning"])}))
    if not metrics:
        blocks.append("no metrics were logged")
    blocks += [f"missing: {what}" for what in data["missing"]]
    return "\n\n".join([*filter(None, blocks), f"next: rlx diagnose {data['run']}"])


def _explanation(metric: Data) -> str:
    last = f"last {figure(metric['last'])}"
    if metric["seeds"] > 1:
        last += f" (median over {metric['seeds']} seeds)"
    limits = [
        limit + in_brackets(_measured(ends)) for limit, ends in zip(metric["healthy"], metric["measured"], strict=True)
    ]
    return labelled({
        metric["metric"]: metric["meaning"],
        "  here": f"median {figure(metric['median'])}, {last}: {metric['says']}",
        "  healthy": ", ".join(limits),
        "  source": metric["source"],
    })  # fmt: skip


def _measured(ends: tuple[float, float] | None) -> str:
    """Spell this run's figures for a limit, from the lowest seed to the highest."""
    if ends is None:
        return ""
    return f"here {' to '.join(dict.fromkeys(map(figure, ends)))}"
