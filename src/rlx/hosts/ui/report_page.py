"""A report that can be mailed: one HTML file about runs, a study or a sweep, the answer first, and complete."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import RlxError
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import NOTHING, counted, duration, figure, interval, signed, size, spread, when
from rlx.hosts.ui import study_page
from rlx.hosts.ui.chart import interval_chart, line_chart
from rlx.hosts.ui.compare_page import score_parts, verdict_parts
from rlx.hosts.ui.curve_data import CurveData
from rlx.hosts.ui.file_page import MEDIA
from rlx.hosts.ui.html import Html, Part, el, facts, state, table
from rlx.hosts.ui.layout import offline, section
from rlx.hosts.ui.replay_view import read_replay, replay_view, stored_replays
from rlx.hosts.ui.run_page import config_part, findings_part, provenance_part, seeds_part
from rlx.hosts.ui.study_charts import effect_chart
from rlx.hosts.ui.sweep_page import read_sweep, sweep_parts
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.hosts.plots.curves import Curves

Data = dict[str, Any]
LARGEST_REPORT = 5_000_000
LARGEST_MEDIA = 3_000_000
"""The bytes that films, pictures and replays of one report may take together; larger ones are named instead."""


class _Attachments:
    """Films, pictures and replays, inside the report as long as they fit."""

    def __init__(self) -> None:
        self._left = LARGEST_MEDIA
        self.omitted: list[str] = []

    def media(self, path: Path) -> Html | None:
        kind = MEDIA.get(path.suffix.lower())
        count = path.stat().st_size * 4 // 3
        if kind is None:
            return None
        if count > self._left:
            self.omitted.append(f"{path.name} ({size(path.stat().st_size)})")
            return None
        self._left -= count
        address = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
        if kind.startswith("video"):
            film = el("video", src=address, controls=True, aria_label=path.name)
        else:
            film = el("img", src=address, alt=path.name, class_="film")
        return el("figure", film, el("figcaption", path.name))

    def replay(self, run: Run, name: str) -> Html | None:
        count = (run.path / "replays" / f"{name}.json").stat().st_size
        if count > self._left:
            self.omitted.append(f"replay {name} ({size(count)})")
            return None
        self._left -= count
        return replay_view(read_replay(run.path, name))


def runs_report(data: CurveData, names: Sequence[str]) -> str:
    """Return the report of one or more runs; several are compared with the first."""
    infos = [document("info", "--", name) for name in names]
    comparison = None
    problem = ""
    if len(names) > 1:
        try:
            comparison = document("compare", "--", *names)
        except RlxError as error:
            problem = error.message
    attachments = _Attachments()
    title = f"Report: {', '.join(names[:4])}" + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    parts: list[Part] = [el("h1", title), _answer(infos, comparison, problem)]
    if comparison:
        parts.append(score_parts(comparison, with_links=False))
    parts.append(_curves(data, names))
    for info in infos:
        parts.append(_run(data, info, attachments))
    parts.append(_omitted(attachments))
    return offline(title, parts)


def _answer(infos: list[Data], comparison: Data | None, problem: str) -> Html:
    """Return the text: question, answer, how sure that is, cost, and failures."""
    asked = f"How does {infos[0]['name']} perform?"
    if len(infos) > 1:
        asked = f"Is {' or '.join(info['name'] for info in infos[1:])} better than {infos[0]['name']}?"
    found: list[Part] = []
    for info in infos:
        metric = (info["return"] or {}).get("metric", "return")
        source = "no score"
        if info["return"]:
            source = f"{info['return']['source']}, n = {counted(info['return']['n'], 'seed')}"
        found.append(el("li", f"{info['name']}: {metric} {spread(info['return'])} ({source}); {info['tally']}"))
    sure: Part = el("p", "One run alone says nothing about a difference; the spread above is over its training seeds.")
    if comparison:
        sure = verdict_parts(comparison)
    elif problem:
        sure = el("p", f"These runs cannot be compared: {problem}")
    seconds = sum(float(seed["seconds"]) for info in infos for seed in info["per_seed"])
    steps = sum(int(seed["step"]) for info in infos for seed in info["per_seed"])
    seeds = sum(len(info["per_seed"]) for info in infos)
    failed = [f"{info['name']} seed {seed['seed']}: {seed['status']} {seed['reason']}" for info in infos
              for seed in info["per_seed"] if seed["status"] not in ("completed", "running")]  # fmt: skip
    trouble: Part = el("p", "Every seed completed.")
    if failed:
        trouble = el("ul", [el("li", line) for line in failed])
    return el(
        "div",
        section("Question", el("p", asked)),
        section("Answer", el("ul", found)),
        section("How sure that is", sure),
        section("Cost", el("p", f"{counted(seeds, 'seed')}, {steps:,} steps, {duration(seconds)} of training.")),
        section("What did not work", trouble),
    )


def _curves(data: CurveData, names: Sequence[str]) -> Html:
    every = [data.metrics(name) for name in names]
    shared = [metric for metric in every[0] if all(metric in metrics for metrics in every)]
    charts = []
    for metric in shared[:2]:
        groups = [data.curves(name, metric) for name in names]
        charts.append(line_chart(groups, x_label="steps", y_label=metric))
    return section("Curves", charts or el("p", "No metrics.", class_="muted"))


def _run(data: CurveData, info: Data, attachments: _Attachments) -> Html:
    run = data.run(info["name"])
    try:
        diagnosis = document("diagnose", "--", info["name"])
    except RlxError as error:
        diagnosis = {"findings": [], "what": error.message}
    media = [*sorted((run.path / "videos").glob("*")), *sorted((run.path / "plots").glob("*.png"))]
    films = [attachments.media(path) for path in media if path.is_file()]
    replays = [attachments.replay(run, name) for name in stored_replays(run.path)]
    shown = [part for part in films if part is not None]
    played = [part for part in replays if part is not None]
    return el(
        "div",
        el("h1", info["name"]),
        facts([("status", state(info["status"])), ("environment", info["env"]), ("algorithm", info["algo"]),
               ("created", when(info["created"])), ("note", info["note"]), ("tags", ", ".join(info["tags"]))]),
        findings_part(diagnosis),
        seeds_part(info),
        section("Videos and pictures", el("div", shown, class_="films")) if shown else None,
        section("Replays", played) if played else None,
        section("Config", config_part(info)),
        section("Provenance", provenance_part(info)),
    )  # fmt: skip


def _omitted(attachments: _Attachments) -> Html | None:
    if not attachments.omitted:
        return None
    names = el("ul", [el("li", name) for name in attachments.omitted])
    return section("Left out", el("p", "These are too large for this file. They are in the run's folder."), names)


def sweep_report(data: CurveData, name: str) -> str:
    """Return the report of a sweep: question, confirmed gain, how sure, the cost, and every trial."""
    found = read_sweep(name)
    space = ", ".join(found["plan"]["space"])
    confirmation = found["confirmation"]
    title = f"Sweep {name}"
    sure = "The winner was not trained on fresh seeds yet. The best score of a search is too high: it was selected."
    if confirmation:
        sure = "The winner and the base config were trained on fresh seeds, which the search had never used."
    failed = [f"trial {trial['trial']}: {trial['reason'] or trial['state']}" for trial in found["trials"]
              if trial["state"] == "failed"]  # fmt: skip
    dropped = sum(trial["state"] == "dropped" for trial in found["trials"])
    trouble: list[Part] = [el("p", f"{counted(dropped, 'trial')} were dropped early by halving.")]
    if failed:
        trouble.append(el("ul", [el("li", line) for line in failed]))
    confirmation_line, headline, *rest = sweep_parts(found, with_links=False)
    runs = [str(run) for run in confirmation.get("runs") or ()]
    parts: list[Part] = [
        el("h1", title),
        section("Question", el("p", f"Which values of {space} are better than {found['base']}?")),
        section("Answer", confirmation_line),
        section("How sure that is", el("p", sure)),
        section("Cost", headline),
        section("What did not work", trouble),
        _curves(data, runs) if runs else None,
        *rest,
    ]
    return offline(title, parts)


def lab_report(root: Path) -> str:
    """Return the report of a lab: its mission, confirmed attempts, every attempt of each rung, and their studies."""
    from rlx.hosts.ui import lab_page
    from rlx.loop.lab.attempt import attempts

    lab = lab_page.find_lab(root)
    rungs = lab.begun
    states = {rung.name: lab.study_at(rung).state() for rung in rungs}
    confirmed = [f"{current.incumbent} at rung {name}" for name, current in states.items() if current.incumbent]
    heads = [f"rung {name}: the head is {current.head}" for name, current in states.items()]
    sure: Part = el("p", "A kept attempt won a race of a few seeds. Only a confirmed one won on fresh seeds.")
    checked = [document("study", "verify", "--", lab.study_at(rung).full_name) for rung in rungs]
    problems = [line for each in checked for line in each["problems"]]
    if problems:
        sure = el("div", el("p", "Some numbers DIFFER from their files:"), _list(problems), class_="problem")
    costs = [f"rung {name}: {counted(current.spent.seeds, 'seed')}, {duration(current.spent.seconds)} of training"
             for name, current in states.items()]  # fmt: skip
    lost = [f"{attempt.rung.name}, {attempt.status}: {attempt.description}" for attempt in attempts(lab)
            if attempt.status not in ("keep", "confirmed", "open")]  # fmt: skip
    title = f"Lab {lab.name}"
    parts: list[Part] = [
        el("h1", title),
        section("Question", el("pre", lab_page.mission(lab), class_="wrap")),
        section("Answer", _list([f"Confirmed on fresh seeds: {', '.join(confirmed) or 'nothing'}.", *heads])),
        section("How sure that is", sure),
        section("Cost", _list(costs), lab_page.headline(lab, with_mission=False)),
        section("What did not work", _list(lost) if lost else el("p", "Every attempt was kept.")),
        *(lab_page.rung_part(lab, rung, with_links=False) for rung in reversed(rungs)),
    ]
    return offline(title, parts)


def _list(lines: Sequence[str]) -> Html:
    return el("ul", [el("li", line) for line in lines])


def study_report(study: Any) -> str:
    """Return the report of a study. Its numbers are recomputed from the evidence first."""
    from rlx.hosts.cli.study.report import learning_curves, write_report
    from rlx.loop.study.study_status import overview

    full = study.full_name
    written = write_report(study)
    task = overview(study)["points"][0]["lines"]
    log = document("study", "log", "--", full)
    status = document("status", "--", full)
    checked = document("study", "verify", "--", full)
    words = ", ".join(f"{count} {what}" for what, count in checked["checked"].items())
    agreement: Part = el("p", f"Recomputed from the raw episodes: {words}. Every number agrees with its files.")
    if checked["problems"]:
        lines = [el("li", line) for line in checked["problems"]]
        agreement = el("div", el("p", "Some numbers DIFFER from their files:"), el("ul", lines), class_="problem")
    claims = [row for row in written["rows"] if row["test"] == "claim"]
    failed = [row for row in written["rows"] if row["status"] not in ("baseline", "confirmed", "advanced")]
    title = f"Study {full}"
    spent = written["spent"]
    parts: list[Part] = [
        el("h1", title),
        _in_short(written),
        section("Question", el("p", f"Which change improves on the baseline? Goal: {status['metric']}."),
                [el("p", line) for line in task], study_page.summary(status)),
        section("Answer", el("p", el("strong", written["outcome"])), [_claim(row) for row in claims]),
        section("How sure that is", agreement, facts([
            ("evidence", written["level"]), ("approval", written["approval"]), ("enforced", written["enforced"]),
            ("warnings", "; ".join(written["warnings"]))])),
        section("Cost", el("p", f"{spent['seeds']} seeds, {duration(spent['seconds'])}.")),
        section("What did not work", _failures(failed)),
        section("Candidates", effect_chart(log["rows"]), _candidate_table(written["rows"])),
        section("Scores per seed", _scores(written)),
        _study_curves(learning_curves(study, written["curves"]), written["curves"]["metric"]),
        section("Hypotheses", study_page.tree(study, status["candidates"])),
        section("Contract", study_page.contract_part(study)),
        section("Ledger", study_page.ledger(study, "")),
        el("p", "next: ", el("code", written["command"])),
    ]  # fmt: skip
    return offline(title, parts)


def _in_short(written: Data) -> Part:
    """Return the answers for a reader who has not seen rlx; none if the numbers cannot be trusted."""
    answers = [(answer["question"], answer["answer"]) for answer in written["answers"]]
    return section("In short", facts(answers)) if answers else ""


def _study_curves(lines: Sequence[Curves], metric: str) -> Html | None:
    """Return how the baseline and the candidate learned."""
    if not lines:
        return None
    return section("Learning curves", line_chart(lines, x_label="steps", y_label=metric))


def _claim(row: Data) -> Html:
    text = f"{row['candidate']}: {signed(row['effect'])} against {row['against']}"
    if row["interval"]:
        text += f", interval {interval(row['interval'], signed)}"
    return el("p", state(row["status"]), f" {text}, p = {figure(row['p'])}, on {len(row['claimed'])} fresh seeds")


def _failures(rows: list[Data]) -> Html:
    if not rows:
        return el("p", "No candidate was rejected or failed.")
    items = [el("li", el("strong", row["candidate"]), f" ({row['standing']}): {row['description']} ",
                el("small", row["says"] or row["trouble"])) for row in rows]  # fmt: skip
    return el("ul", items)


def _scores(written: Data) -> Html:
    from rlx.compare import bootstrap_interval, mean

    drawn = []
    for row in written["rows"]:
        for which, label in (("scores", "search"), ("claimed", "claim")):
            values = [float(value) for value in row[which]]
            estimate = None
            if len(values) > 1:
                band = bootstrap_interval(mean, values)
                estimate = (band.low, float(mean(values)), band.high)
            if values:
                drawn.append((f"{row['candidate']}, {label} (n = {counted(len(values), 'seed')})", values, estimate))
    return interval_chart(drawn, label=f"{written['metric']} (dots: seeds; bar: mean with its 95 % interval)")


def _candidate_table(rows: list[Data]) -> Html:
    body: list[list[Part]] = []
    for row in rows:
        effect = NOTHING if row["effect"] is None else signed(row["effect"])
        ends = interval(row["interval"], signed) if row["interval"] else NOTHING
        changes = "; ".join(row["changed"]) or row["patch"] or NOTHING
        body.append([row["candidate"], state(row["status"]), row["seeds"], figure(row["score"]), row["test"] or NOTHING,
                     effect, ends, figure(row["p"]), el("div", row["description"], el("br"), el("small", changes),
                     class_="wrap")])  # fmt: skip
    header = ["candidate", "status", "seeds", "score", "test", "effect", "interval", "p", "change"]
    return table(header, body, right=(2, 3, 5, 7), caption="candidates", stacks=True)
