"""Decide whether B is better than A. The first run is the baseline; the others are judged against it by training seed.

rlx compares the evaluations of the final policies that training (or rlx eval) stored, and evaluates nothing itself. A
pair is decided at 10, 16 or 24 seeds per side and never in between. Looks are recorded, so looking again changes
nothing. Several candidates are corrected for their number. If the evidence cannot be compared, the exit code is 6.
Guards watch other evaluated metrics (length, success_rate, reward terms). Proven harm prevents `better`. With
--require-safe, missing proof of safety prevents it too. Higher is better unless you add `lower`.
rlx judges a pair under the protocol of its reports. If both runs were also evaluated under another protocol, --protocol
chooses that one. --metric judges a metric that training logged instead, and the verdict says `reported`.
--budget-question allows different budgets, and the verdict names them. --pool judges several runs of one config as one.
--tasks compares algorithms over several environments instead: normalised scores, IQM with intervals, the probability of
improvement and a picture of the performance profile. Every algorithm needs runs on every environment. The algorithm of
the first run is the baseline.

Example: rlx compare cartpole_ppo_001 cartpole_ppo_002
         rlx compare ppo_500k_001 sac_50k_001 --budget-question
         rlx compare trot_001 trot_wide_001 --metric success
         rlx compare 'mine_*' 'other_*' --pool
         rlx compare base_001 wide_001 deep_001 --min-effect 10
         rlx compare base_001 wide_001 --guard success_rate --require-safe energy:0.5:lower
         rlx compare base_001 wide_001 --protocol 3616
         rlx compare base_001 wide_001 --latex
         rlx compare --tasks 'bench_*' --out profile.pdf
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlx.hosts.cli import compare_tasks
from rlx.hosts.cli.arguments import Args, Data, Parser, add_picture, add_question, find_runs, read_question
from rlx.hosts.cli.format import NOTHING, figure, guardrail_text, setting
from rlx.hosts.cli.output import VERDICT_COLOURS, exit_code_if, labelled, paint, table

if TYPE_CHECKING:
    from rlx.compare.guardrails import Guard

MOST_CHANGES = 12
_STATISTICS = ("mean", "sd", "median", "min", "max")


def arguments(parser: Parser) -> None:
    parser.add_argument("baseline", metavar="A", help="the baseline run")
    parser.add_argument("candidates", metavar="B", nargs="*", help="runs to judge against it, or patterns: 'wide_*'")
    add_question(parser)
    parser.add_argument("--pool", action="store_true", help="pool runs whose configs differ only in the seeds")
    parser.add_argument("--min-effect", type=float, default=0.0, metavar="X", help="the smallest gain that counts")
    for option, metavar, help_text in (
        ("--guard", "METRIC[:MARGIN]", "refuse a gain that harms this metric"),
        ("--require-safe", "METRIC:MARGIN", "require proof that this metric is not harmed"),
    ):
        parser.add_argument(option, action="append", default=[], metavar=metavar, help=help_text)
    parser.add_argument("--protocol", metavar="FINGERPRINT", help="the beginning of a shared protocol's fingerprint")
    parser.add_argument("--all", action="store_true", help="show every config difference")
    parser.add_argument("--tasks", action="store_true", help="compare algorithms over several environments")
    parser.add_argument("--by", default="algo.name", metavar="KEY", help="with --tasks: what is compared (algo.name)")
    reference = "with --tasks: the scores that count as 0 and 1 on a task; may be repeated"
    parser.add_argument("--reference", action="append", default=[], metavar="TASK=LOW:HIGH", help=reference)
    add_picture(parser, where="with --tasks: plots/tasks.png")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--csv", dest="shape", action="store_const", const="csv", help="print one CSV row per run")
    shape.add_argument("--latex", dest="shape", action="store_const", const="latex", help="print a booktabs table")


def run(args: Args) -> Data:
    from rlx.compare.comparison import compare
    from rlx.compare.run_pool import pooled
    from rlx.errors import EvidenceInvalid, UsageError

    if args.tasks:
        return compare_tasks.run(args)
    if args.reference or args.out:
        raise UsageError("--reference and --out need --tasks", hint="rlx compare --tasks 'bench_*'")
    if not 0 <= args.min_effect < float("inf"):
        raise UsageError(f"--min-effect {args.min_effect:g}: must be zero or more")
    runs = find_runs([args.baseline, *args.candidates])
    if args.pool:
        runs = pooled(runs)
    guards = [_guard(text) for text in args.guard] + [_guard(text, must_be_shown=True) for text in args.require_safe]
    comparison = compare(
        runs, minimum_effect=args.min_effect, guards=guards, protocol=args.protocol, question=read_question(args)
    )
    data = {**comparison.document(), "exit_code": exit_code_if(comparison.is_invalid, EvidenceInvalid)}
    if args.all and not args.json:
        data["shape"] = "all"
    elif args.shape:
        data["shape"] = args.shape
    return data


def _guard(text: str, *, must_be_shown: bool = False) -> Guard:
    """Read METRIC, METRIC:margin or METRIC:margin:lower."""
    from rlx.compare.guardrails import Guard
    from rlx.errors import UsageError

    metric, *rest = text.split(":")
    numbers = [part for part in rest if part not in ("lower", "higher")]
    try:
        margin = float((numbers or ["0"])[0])
    except ValueError:
        margin = float("nan")
    if not metric or len(numbers) > 1 or not 0 <= margin < float("inf") or (must_be_shown and not numbers):
        option = "--require-safe" if must_be_shown else "--guard"
        raise UsageError(f"{option} {text}: not a metric and a margin", hint=f"{option} success_rate:0.05")
    return Guard(metric, margin, "lower" if "lower" in rest else "higher", must_be_shown)


def render(data: Data) -> str:
    if "aggregates" in data:
        return compare_tasks.render(data)
    shape = data.get("shape")
    if shape == "csv":
        return _csv(data)
    if shape == "latex":
        return _latex(data)
    candidates = data["candidates"]
    blocks = ["\n".join(_answer(data["baseline"], candidate) for candidate in candidates)]
    judged = sum(candidate["verdict"] != "invalid" for candidate in candidates)
    if judged > 1:
        blocks.append(f"note: {judged} candidates, corrected for their number (Holm)")
    blocks += _tables(data["runs"])
    most = MOST_CHANGES
    if shape == "all":
        most = max(len(candidate["changes"]) for candidate in candidates)
    blocks += [_candidate(data["baseline"], candidate, most=max(most, 1)) for candidate in candidates]
    return "\n\n".join(blocks)


def _answer(baseline: str, candidate: Data) -> str:
    """Return the verdict with its reason and its guardrails."""
    verdict = candidate["verdict"]
    reason = candidate["reason"]
    if verdict == "invalid" or reason in candidate["line"]:
        reason = ""
    guards = [f"{name} {guardrail_text(guardrail)}" for name, guardrail in candidate["guardrails"].items()]
    lines = [
        paint(f"verdict: {candidate['line']}", VERDICT_COLOURS[verdict]),
        f"  {candidate['run']} against {baseline}",
        labelled({"reason": reason, "guard": guards}),
    ]
    return "\n".join(filter(None, lines))


def _tables(sides: list[Data]) -> list[str]:
    """Return the scores of the runs, one table per protocol."""
    blocks = []
    for fingerprint in dict.fromkeys(side["fingerprint"] for side in sides):
        alike = [side for side in sides if side["fingerprint"] == fingerprint]
        header = ["run", "n", *_STATISTICS, "steps", "seeds"]
        blocks.append(table(header, [_row(side) for side in alike], right=range(1, 8)))
        if alike[0]["evidence"] == "reported":
            blocks.append(f"{alike[0]['metric']}: the last value that training logged; rlx did not measure it")
        else:
            measured = f"{alike[0]['metric']} of the final policies, report episodes, protocol {fingerprint}"
            blocks += [*_metrics(alike), measured]
    return blocks


def _row(side: Data) -> list[str]:
    first_and_last = dict.fromkeys([*side["steps"][:1], *side["steps"][-1:]])
    steps = "–".join(f"{step:,}" for step in first_and_last)
    seeds = [*side["seeds"], *(f"{seed}:crashed" for seed in side["crashed"])]
    for seed, state in side["pending"].items():
        seeds.append(f"{seed}:{state}".replace("completed", "not evaluated"))
    return [side["run"], str(side["n"]), *(figure(side[key]) for key in _STATISTICS), steps or NOTHING, " ".join(seeds)]


def _metrics(sides: list[Data]) -> list[str]:
    """Return a table of the other measured metrics."""
    rows = []
    for name in dict.fromkeys(name for side in sides for name in side["metrics"]):
        for side in sides:
            if name in side["metrics"]:
                metric = side["metrics"][name]
                figures = [figure(metric[key]) for key in ("mean", "sd", "min", "max")]
                rows.append([side["run"], name, str(metric["n"]), *figures])
    if not rows:
        return []
    return [table(["run", "metric", "n", "mean", "sd", "min", "max"], rows, right=range(2, 7))]


def _candidate(baseline: str, candidate: Data, *, most: int) -> str:
    """Return the config differences, notes, and what to do."""
    lines = [f"{candidate['run']} against {baseline}:"]
    changes = candidate["changes"]
    lines += [f"  {row['key']}: {setting(row['before'])} → {setting(row['after'])}" for row in changes[:most]]
    if not changes:
        lines.append("  the configs are equal")
    if len(changes) > most:
        lines.append(f"  and {len(changes) - most} more (--all)")
    fields = {"note": candidate["notes"], "settle": candidate["settle"], "next": candidate["commands"]}
    return "\n".join(filter(None, [*lines, labelled(fields)]))


def _sides_and_verdicts(data: Data) -> list[tuple[str, Data, Data]]:
    """Return each run's name, its side under its first protocol, and its verdict (empty for the baseline)."""
    sides = {side["run"]: side for side in reversed(data["runs"])}
    verdicts = {data["baseline"]: {}, **{candidate["run"]: candidate for candidate in data["candidates"]}}
    return [(name, sides.get(name, {}), verdict) for name, verdict in verdicts.items()]


def _csv(data: Data) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", "n", *_STATISTICS, "verdict", "leaning", "low", "high", "p", "reason"])
    for name, side, verdict in _sides_and_verdicts(data):
        values: list[object] = ["baseline", "", "", "", "", ""]
        if verdict:
            keys = ("verdict", "leaning", "p", "reason")
            answer, leaning, p, reason = (verdict[key] for key in keys)
            values = [answer, leaning, *verdict["interval"], p, reason]
        writer.writerow([name, *(side.get(key, "") for key in ("n", *_STATISTICS)), *values])
    return out.getvalue()


def _latex(data: Data) -> str:
    """Return a booktabs table: mean ± sd over seeds, the difference with its interval, the verdict.

    All numbers have as many decimals as the smallest spread supports.
    """
    from rlx.number_format import spread_decimals

    sides = _sides_and_verdicts(data)
    decimals = spread_decimals(side.get("sd") for _, side, _ in sides)
    rows = []
    for name, side, verdict in sides:
        spread = "--"
        if side.get("mean") is not None:
            spread = f"${_number(side['mean'], decimals)} \\pm {_number(side['sd'], decimals)}$"
        effect = "--"
        if verdict and verdict["leaning"] is not None:
            low, high = verdict["interval"]
            ends = f"{_number(low, decimals, '+', infinite='-')}, {_number(high, decimals, '+', infinite='+')}"
            effect = f"${_number(verdict['leaning'], decimals, '+')}\\ [{ends}]$"
        answer = verdict.get("verdict", "baseline")
        if answer == "invalid":
            answer = verdict["line"]
        escaped_answer = compare_tasks.escape_latex(answer)
        rows.append([compare_tasks.escape_latex(name), str(side.get("n", "--")), spread, effect, escaped_answer])
    metrics = " ".join(dict.fromkeys(side["metric"] for side in data["runs"])) or "score"
    head = f"    run & seeds & {compare_tasks.escape_latex(metrics)} & difference & verdict \\\\"
    body = [f"    {' & '.join(row)} \\\\" for row in rows]
    return "\n".join(
        [r"\begin{tabular}{lrrrl}", r"    \toprule", head, r"    \midrule", *body, r"    \bottomrule", r"\end{tabular}"]
    )


def _number(value: float | None, decimals: int | None, sign: str = "", *, infinite: str = "") -> str:
    """Return a number for LaTeX, with four digits without decimals. An unknown end of an interval is infinite."""
    if value is not None and decimals is None:
        return f"{value:{sign}.4g}"
    if value is not None:
        return f"{value:{sign}.{decimals}f}"
    if infinite:
        return infinite + r"\infty"
    return r"\text{--}"
