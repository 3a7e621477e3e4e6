"""`rlx compare --tasks`: algorithms × environments as a table, a LaTeX table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, find_runs, read_question, refuse_picture
from rlx.hosts.cli.format import NOTHING, counted, figure
from rlx.hosts.cli.output import labelled, table
from rlx.number_format import spread_decimals
from rlx.runs import project

PICTURE = "tasks.png"
ONE_PAIR_OPTIONS = ("guard", "require_safe", "protocol", "pool", "min_effect", "all")


def run(args: Args) -> Data:
    """Aggregate the runs over their tasks and draw the profile."""
    from rlx.compare.task_runs import aggregate
    from rlx.hosts.plots.task_profile import draw

    for name in ONE_PAIR_OPTIONS:
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for the comparison of two runs", hint=f"leave out {option}, or --tasks")
    refuse_picture(args.out)
    runs = find_runs([args.baseline, *args.candidates])
    references = dict(_reference(text) for text in args.reference)
    found = aggregate(runs, by=args.by, references=references, question=read_question(args))
    out = args.out or project.root() / "plots" / PICTURE
    draw(found, out)
    data: Data = {**found.document(), "by": args.by, "picture": _shown(out)}
    if args.shape:
        data["shape"] = args.shape
    return data


def _shown(path: Path) -> str:
    """Return a path relative to this folder if it is inside it."""
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def _reference(text: str) -> tuple[str, tuple[float, float]]:
    """Read TASK=FLOOR:REFERENCE."""
    task, equals, ends = text.partition("=")
    floor, colon, top = ends.partition(":")
    try:
        pair = (float(floor), float(top))
    except ValueError:
        equals = ""
        pair = (0.0, 0.0)
    if not (task and equals and colon):
        raise UsageError(f"--reference {text}: not a task with two scores", hint="--reference CartPole-v1=20:500")
    return task, pair


def render(data: Data) -> str:
    shape = data.get("shape")
    if shape == "latex":
        return latex(data)
    if shape == "csv":
        return _csv(data)
    notes = [*data["notes"], *_reference_notes(data)]
    blocks = [_score_table(data), _aggregate_table(data)]
    improvements = _improvement_table(data)
    if improvements:
        blocks.append(improvements)
    blocks.append(labelled({"note": notes, "picture": data["picture"]}))
    return "\n\n".join(blocks)


def _cells(data: Data) -> dict[tuple[str, str], Data]:
    return {(cell["algorithm"], cell["task"]): cell for cell in data["cells"]}


def _score_table(data: Data) -> str:
    cells = _cells(data)
    rows = []
    for task in data["tasks"]:
        row = [task["task"]]
        for algorithm in data["algorithms"]:
            cell = cells[algorithm, task["task"]]
            text = figure(cell["mean"])
            if cell["sd"] is not None:
                text += f" ± {figure(cell['sd'])}"
            text += f" ({cell['n']})"
            if task["best"] == algorithm:
                text += " *"
            row.append(text)
        rows.append([*row, figure(task["floor"]), figure(task["reference"])])
    header = ["task", *data["algorithms"], "random", "reference"]
    title = f"{data['metric']}: mean ± standard deviation (seeds), * the highest mean"
    return f"{title}\n{table(header, rows, right=range(1, len(header)))}"


def _aggregate_table(data: Data) -> str:
    names = list(next(iter(data["aggregates"].values())))
    rows = [[algorithm, *(interval_text(data["aggregates"][algorithm][name]) for name in names)]
            for algorithm in data["algorithms"]]  # fmt: skip
    title = f"normalised over {counted(len(data['tasks']), 'task')} (0: random policy, 1: reference), 95 % intervals"
    return f"{title}\n{table([data['by'], *names], rows, right=range(1, len(names) + 1))}"


def interval_text(value: dict[str, Any], *, digits: int = 2) -> str:
    """Return a figure with its interval."""
    if value["value"] is None:
        return NOTHING
    text = f"{value['value']:.{digits}f}"
    if value["low"] is not None:
        text += f" [{value['low']:.{digits}f}, {value['high']:.{digits}f}]"
    return text


def _improvement_table(data: Data) -> str:
    if not data["improvements"]:
        return ""
    rows = [[row["algorithm"], interval_text(row["probability"]), f"{row['p']:.3g}"] for row in data["improvements"]]
    title = f"probability of improvement over {data['algorithms'][0]}, and p of a higher mean (seeds permuted per task)"
    return f"{title}\n{table([data['by'], 'probability', 'p'], rows, right=(1, 2))}"


def _reference_notes(data: Data) -> list[str]:
    by_source: dict[str, list[str]] = {}
    for task in data["tasks"]:
        by_source.setdefault(str(task["reference_from"]).partition(" (")[0].partition(":")[0], []).append(task["task"])
    words = {
        "given": "given",
        "catalog": "the return of rlx's catalog config",
        "best mean": "the best algorithm's mean, so the best scores about 1",
    }
    return [f"reference of {', '.join(tasks)}: {words[source]}" for source, tasks in by_source.items()]


def _csv(data: Data) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([data["by"], "task", "n", "crashed", "mean", "sd"])
    for cell in data["cells"]:
        writer.writerow([cell[key] for key in ("algorithm", "task", "n", "crashed", "mean", "sd")])
    return out.getvalue()


def latex(data: Data) -> str:
    """Return a booktabs table with a label: tasks in rows, algorithms in columns, the best in bold, IQM at the end."""
    cells = _cells(data)
    algorithms = data["algorithms"]
    lines = []
    for task in data["tasks"]:
        of_task = [cells[algorithm, task["task"]] for algorithm in algorithms]
        digits = spread_decimals(cell["sd"] for cell in of_task)
        if digits is None:
            digits = 1
        row = [escape_latex(task["task"])]
        for cell in of_task:
            row.append(_latex_cell(cell, digits, is_best=cell["algorithm"] == task["best"]))
        lines.append(f"    {' & '.join(row)} \\\\")
    iqm = [f"${interval_text(data['aggregates'][algorithm]['IQM'])}$" for algorithm in algorithms]
    seeds = sorted({cell["n"] for cell in data["cells"]})
    count = "--".join(dict.fromkeys([str(seeds[0]), str(seeds[-1])]))
    caption = (
        f"{data['metric'].capitalize()}: mean $\\pm$ standard deviation over {count} seeds, the highest mean in bold. "
        "IQM: interquartile mean of normalised scores with 95\\,\\% stratified bootstrap intervals."
    )
    return "\n".join([
        r"\begin{table}", r"  \centering", f"  \\caption{{{escape_underscores(caption)}}}", r"  \label{tab:tasks}",
        f"  \\begin{{tabular}}{{l{'r' * len(algorithms)}}}", r"    \toprule",
        f"    task & {' & '.join(map(escape_latex, algorithms))} \\\\", r"    \midrule", *lines, r"    \midrule",
        f"    IQM & {' & '.join(iqm)} \\\\", r"    \bottomrule", r"  \end{tabular}", r"\end{table}",
    ])  # fmt: skip


def _latex_cell(cell: Data, digits: int, *, is_best: bool) -> str:
    text = f"{cell['mean']:.{digits}f}"
    if is_best:
        text = f"\\mathbf{{{text}}}"
    if cell["sd"] is not None:
        text += f" \\pm {cell['sd']:.{digits}f}"
    return f"${text}$"


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints as it is."""
    return text.replace("\\", r"\textbackslash{}").replace("%", r"\%").replace("&", r"\&").replace("_", r"\_")


def escape_underscores(text: str) -> str:
    return text.replace("_", r"\_")
