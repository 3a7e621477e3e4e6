"""The page that compares runs: the verdict first, then why, the curves, the seeds and the changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlx.errors import RlxError, UsageError
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import NOTHING, counted, figure, guardrail_text, interval, setting, signed
from rlx.hosts.ui.chart import empty_chart, interval_chart, line_chart
from rlx.hosts.ui.curve_data import CurveData
from rlx.hosts.ui.html import Html, Part, el, link, state, table, url
from rlx.hosts.ui.layout import UPLOT, VENDOR, Site, breadcrumb, run_link, section
from rlx.hosts.ui.run_list import tick
from rlx.hosts.ui.run_page import AXES

Data = dict[str, Any]
MOST_COMPARED = 20
MOST_PLOTTED = 200
MOST_WITH_BAND = 12


def compare_page(site: Site, data: CurveData, names: Sequence[str], baseline: str | None) -> str:
    """Return the page; without a named baseline the oldest run is the baseline."""
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        raise UsageError("select at least two runs to compare", hint="go back and tick two runs")
    if len(names) > MOST_COMPARED:
        raise UsageError(f"{len(names)} runs: at most {MOST_COMPARED} can be compared", hint="rlx compare A B")
    runs = sorted((data.run(name) for name in names), key=lambda run: float(run.metadata.get("created") or 0.0))
    order = [run.name for run in runs]
    if baseline in order:
        order.remove(baseline)
        order.insert(0, baseline)
    comparison = document("compare", "--", *order)
    others = [link(name, url("compare", run=names, baseline=name)) for name in order[1:]]
    parts: list[Part] = [
        breadcrumb(("Runs", "/"), ("Compare", url("compare", run=names))),
        el("h1", f"{' and '.join(order[1:])} against {order[0]}"),
        *verdict_parts(comparison),
        el("p", "Baseline: ", run_link(order[0]), ". Use another one: ", [[other, " "] for other in others]),
        _curves(data, order),
        el("div", score_parts(comparison), _profile(data, order), class_="columns"),
        *[_changes(comparison["baseline"], candidate) for candidate in comparison["candidates"]],
    ]
    return site.page("Compare", parts)


def verdict_parts(comparison: Data) -> list[Html]:
    """Return each candidate's verdict with its reason and what would settle it."""
    parts = []
    for candidate in comparison["candidates"]:
        word = candidate["verdict"]
        lines: list[Part] = [
            el("p", el("strong", state(word)), f" {candidate['run']} against {comparison['baseline']}")
        ]
        if candidate["leaning"] is not None:
            level = f"{candidate['level']:.1%}" if candidate["level"] else "its"
            seeds = " v ".join(map(str, candidate["n"]))
            effect = (
                f"Difference {signed(candidate['leaning'])}, {level} interval {interval(candidate['interval'], signed)}"
            )
            lines.append(el("p", f"{effect}, seeds {seeds}, p = {figure(candidate['p'])}."))
        lines.append(el("p", f"Reason: {candidate['reason']}"))
        if candidate["settle"]:
            lines.append(el("p", f"What would settle it: {candidate['settle']}"))
        lines += [el("p", f"Terms: {term}") for term in candidate["terms"]]
        lines += [el("p", f"Note: {note}") for note in candidate["notes"]]
        guards = [
            el("p", f"Guardrail {name}: {guardrail_text(guard)}") for name, guard in candidate["guardrails"].items()
        ]
        commands = [el("p", "next: ", el("code", command)) for command in candidate["commands"]]
        parts.append(el("div", lines, guards, commands, class_=f"verdict {word}"))
    return parts


def score_parts(comparison: Data, *, with_links: bool = True) -> Html:
    """Return the scores per seed as a picture and as a table; on a server its numbers link to files."""
    from rlx.compare import bootstrap_interval, mean

    rows = []
    drawn = []
    for side in comparison["runs"]:
        seeds = side["seeds"]
        links: list[Part] = []
        for seed, score in seeds.items():
            path = f"eval/{side['fingerprint']}/seed_{seed}_latest.json"
            part: Part = figure(score)
            if with_links:
                part = link(figure(score), url("run", side["run"], "file", path=path), title=f"seed {seed}")
            links.append([part, " "])
        scores = el("div", links, class_="wrap narrow")
        name: Part = run_link(side["run"]) if with_links else side["run"]
        rows.append([name, side["n"], figure(side["mean"]), figure(side["sd"]), figure(side["median"]),
                     figure(side["min"]), figure(side["max"]), scores])  # fmt: skip
        values = [float(score) for score in seeds.values() if score is not None]
        estimate = None
        if len(values) > 1:
            band = bootstrap_interval(mean, values)
            estimate = (band.low, float(mean(values)), band.high)
        drawn.append((f"{side['run']} (n = {counted(len(values), 'seed')})", values, estimate))
    header = ["run", "n", "mean", "sd", "median", "min", "max", "score of each seed"]
    metric = next((side["metric"] for side in comparison["runs"]), "score")
    note = el(
        "small", "dots: seeds; bar: mean with its 95 % bootstrap interval. The verdict above uses the exact test."
    )
    return section("Scores per seed", interval_chart(drawn, label=metric), note,
                   table(header, rows, right=range(1, 7), caption="scores"))  # fmt: skip


def _curves(data: CurveData, names: Sequence[str]) -> Html:
    shared = _shared_metrics(data, names)
    if not shared:
        return section("Curves", el("p", "These runs share no logged metric.", class_="muted"))
    return section("Curves", curve_place(data, names, shared[0]))


def curve_place(
    data: CurveData, names: Sequence[str], metric: str, *, axis: str = "steps", is_pooled: bool = False,
    is_drawn: bool = False,
) -> Html:  # fmt: skip
    """Return the chart of several runs.

    A browser with uPlot draws many curves from one binary answer: as SVG, a hundred take it seconds. `is_drawn` asks
    for the SVG anyway.
    """
    address = url("curves", run=names, metric=metric, x=axis, by="config" if is_pooled else "")
    if len(names) <= MOST_WITH_BAND or is_drawn or not (VENDOR / UPLOT).is_file():
        groups = data.groups(names, metric, axis=axis, is_pooled=is_pooled)
        chart = line_chart(groups, x_label=AXES[axis], y_label=metric, with_band=len(groups) <= MOST_WITH_BAND)
        return el("div", chart, id="curve", data_curves=address)
    picture = url("plot", run=names, metric=metric, x=axis, by="config" if is_pooled else "", svg="1")
    chart = empty_chart(x_label=AXES[axis], y_label=metric)
    without = el("noscript", el("p", link("Show the curves as a picture", picture)))
    return el("div", chart, without, id="curve", data_curves=address)


def _shared_metrics(data: CurveData, names: Sequence[str]) -> list[str]:
    every = [data.metrics(name) for name in names]
    return [metric for metric in (every or [[]])[0] if all(metric in metrics for metrics in every)]


def _profile(data: CurveData, names: Sequence[str]) -> Html | None:
    """Return the share of seeds above every score."""
    from rlx.hosts.plots import profile, scores
    from rlx.hosts.plots.curves import Curve, Curves

    try:
        by_run = scores.evaluated([data.run(name) for name in names])
        scores.refuse_empty(by_run)
    except RlxError:
        return None
    levels = profile.thresholds(by_run, over="seeds")
    groups = []
    for each in by_run:
        shares, _ = profile.profile(each, levels, over="seeds")
        groups.append(Curves(each.name, (Curve(0, levels, shares),)))
    chart = line_chart(groups, x_label=f"τ, {by_run[0].metric}", y_label="share of seeds above τ",
                       note="for every score τ, the share of seeds above it")  # fmt: skip
    return section("Performance profile", chart)


def _changes(baseline: str, candidate: Data) -> Html:
    rows = [[row["key"], setting(row["before"]), setting(row["after"])] for row in candidate["changes"]]
    rows += _code_changes(baseline, candidate["run"])
    body: Part = el("p", "Config, code and packages are equal.", class_="muted")
    if rows:
        body = table(["key", baseline, candidate["run"]], rows, caption="config changes")
    return section(f"What {candidate['run']} changes", body)


def _code_changes(baseline: str, candidate: str) -> list[list[str]]:
    """Return the commit, the hash of the code and the packages in which two runs differ."""
    sides = [document("info", "--", name)["provenance"] for name in (baseline, candidate)]
    rows = []
    for label, read in (
        ("code: commit", lambda side: str((side.get("git") or {}).get("commit") or NOTHING)[:12]),
        ("code: hash", lambda side: str(side.get("code_sha256") or NOTHING)[:12]),
    ):
        before, after = map(read, sides)
        if before != after:
            rows.append([label, before, after])
    packages = [dict(side.get("versions") or {}) for side in sides]
    for name in sorted(set(packages[0]) | set(packages[1])):
        before, after = (str(side.get(name, NOTHING)) for side in packages)
        if before != after:
            rows.append([f"package: {name}", before, after])
    return rows


def plot_page(site: Site, data: CurveData, names: Sequence[str], query: Any) -> str:
    """Return the curves of many runs in one chart, pooled by config if asked."""
    names = list(dict.fromkeys(names))
    if not names:
        raise UsageError("select at least one run to plot", hint="go back and tick a run")
    if len(names) > MOST_PLOTTED:
        raise UsageError(
            f"{len(names)} runs: at most {MOST_PLOTTED} can be drawn", hint="rlx plot 'NAME_*' --by config"
        )
    # Reading every run only to list its metrics would delay the page: the curves come in a second answer.
    shared = _shared_metrics(data, names[:MOST_WITH_BAND])
    metric = query.get("metric", "")
    if metric not in shared:
        metric = (shared or [""])[0]
    axis = query.get("x", "steps")
    if axis not in AXES:
        axis = "steps"
    options = [el("option", word, value=word, selected=word == metric) for word in shared]
    axes = [el("option", label, value=word, selected=word == axis) for word, label in AXES.items()]
    hidden = [el("input", type="hidden", name="run", value=name) for name in names]
    is_pooled = query.get("by") == "config"
    form = el("form", hidden, el("label", "metric", el("select", options, name="metric")),
              el("label", "over", el("select", axes, name="x")),
              tick("pool seeds per config", name="by", value="config", checked=is_pooled),
              el("button", "Draw"), class_="bar", method="get", action="/plot", data_submits=True)  # fmt: skip
    drawn: Part = el("p", "These runs share no logged metric.", class_="muted")
    if metric:
        drawn = curve_place(data, names, metric, axis=axis, is_pooled=is_pooled, is_drawn=query.get("svg") == "1")
    where = breadcrumb(("Runs", "/"), ("Plot", url("plot", run=names)))
    listed = el("ul", [el("li", run_link(name)) for name in names], class_="legend")
    return site.page("Plot", where, el("h1", f"Curves of {counted(len(names), 'run')}"), el("section", form, drawn),
                     section("Runs", listed))  # fmt: skip
