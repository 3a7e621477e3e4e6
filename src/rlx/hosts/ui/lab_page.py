"""The page of a lab: its mission, every attempt of each rung, and the study of the current rung below."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx import files
from rlx.errors import NotFound, RlxError
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import NOTHING, figure, signed, when
from rlx.hosts.ui import study_page
from rlx.hosts.ui.chart import Frame, axes, picture
from rlx.hosts.ui.html import Html, Part, el, facts, link, state, table, url
from rlx.hosts.ui.layout import Site, section
from rlx.loop.lab import lab_config
from rlx.loop.lab.attempt import Attempt, rung_attempts
from rlx.loop.lab.lab_folder import Lab
from rlx.number_format import counted
from rlx.study.study_folder import Study

if TYPE_CHECKING:
    from rlx.loop.lab.lab_config import Rung

COLOURS = {"keep": "s0", "confirmed": "s2"}
MOST_MISSION = 4000


def is_lab(root: Path) -> bool:
    return (root / lab_config.FILE).is_file()


def find_lab(root: Path) -> Lab:
    """Return the lab of a project. Raises if the project is not one."""
    if not is_lab(root):
        raise NotFound("this project is not a lab", hint="rlx lab new NAME --env ID")
    return Lab(root)


def lab_page(site: Site, root: Path) -> str:
    """Return the page."""
    lab = find_lab(root)
    parts: list[Part] = [el("h1", f"Lab {lab.name}"), headline(lab)]
    for rung in reversed(lab.begun):
        parts.append(rung_part(lab, rung))
    if lab.begun:
        parts.append(el("h1", f"The study of rung {lab.rung.name}"))
        parts += study_page.study_parts(lab.study)
    else:
        parts.append(section("Next step", el("p", el("code", "rlx lab approve"))))
    return site.page(f"Lab {lab.name}", parts, here="/lab")


def headline(lab: Lab, *, with_mission: bool = True) -> Html:
    """Return the state of the lab, and its mission."""
    tried = [attempt for rung in lab.begun for attempt in rung_attempts(lab.study_at(rung), rung)]
    counts = ", ".join(f"{count} {word}" for word, count in Counter(attempt.status for attempt in tried).most_common())
    rungs = [rung.name for rung in lab.config.ladder]
    shown: list[tuple[str, Part]] = [("attempts", [f"{len(tried):,} ", el("small", counts)])]
    if lab.begun:
        place = f"{rungs.index(lab.rung.name) + 1} of {len(rungs)}"
        current = lab.study.state()
        shown = [("incumbent (confirmed)", current.incumbent or NOTHING), ("head", current.head), *shown,
                 ("rung", [lab.rung.name, el("small", f" {place}")])]  # fmt: skip
    shown += [("kind", lab.config.kind), ("metric", lab.config.metric.name), *_driver()]
    details = el("details", el("summary", "Mission"), el("pre", mission(lab), class_="wrap"))
    return el("div", facts(shown), details if with_mission else None, class_="headline")


def _driver() -> list[tuple[str, Part]]:
    """Return the work of the lab's driver and its cost; empty without a driver."""
    if find_spec("rlx.hosts.cli.lab.status") is None:
        return []
    try:
        status = document("lab", "status")
    except RlxError:
        return []
    dollars = status.get("dollars")
    cost = NOTHING if dollars is None else f"${dollars:.2f}"
    word = "running" if status.get("is_running") else str(status.get("ended") or "not running")
    return [("driver", word), ("sessions", f"{status.get('sessions', 0):,}"), ("cost", cost),
            ("next", el("code", status.get("next", "")))]  # fmt: skip


def mission(lab: Lab) -> str:
    """Return the mission as the person wrote it, or its beginning."""
    try:
        return files.read_bytes(lab.program_path).decode("utf-8", "replace")[:MOST_MISSION]
    except OSError:
        return ""


def rung_part(lab: Lab, rung: Rung, *, with_links: bool = True) -> Html:
    """Return every attempt of one rung, as a picture and as rows: tried, refused, crashed or failed."""
    study = lab.study_at(rung)
    tried = rung_attempts(study, rung)
    title = f"Rung {rung.name}: {counted(len(tried), 'attempt')}"
    if not tried:
        return section(title, el("p", "No attempt yet.", class_="muted"))
    lines = study_page.decision_lines(study)
    rows = [_row(study, attempt, lines, with_links=with_links) for attempt in reversed(tried)]
    header = ["row", "time", "status", "score", "effect", "against", "idea and result"]
    body = table(header, rows, right=(3, 4), caption=f"attempts at {rung.name}", stacks=True)
    return section(title, progress_chart(tried), body)


def _row(study: Study, attempt: Attempt, lines: dict[str, int], *, with_links: bool) -> list[Part]:
    name = attempt.row.rpartition("/")[2]
    row: Part = name
    if with_links:
        number = lines.get(attempt.candidate) or name.removeprefix("row")
        home = url("study", study.task_name, study.name)
        row = link(name, home)
        if str(number).isdigit():
            row = link(name, url("study", study.task_name, study.name, "file", path="ledger.jsonl") + f"#L{number}")
    reasons = "; ".join(f"{reason.get('code')}: {reason.get('says', '')}" for reason in attempt.reasons)
    said = [part for part in (reasons, attempt.lesson) if part]
    effect = NOTHING if attempt.effect is None else signed(attempt.effect)
    words = el("div", attempt.description, [[el("br"), el("small", text)] for text in said], class_="wrap")
    return [row, when(attempt.time), state(attempt.status), figure(attempt.score), effect, attempt.against or NOTHING,
            words]  # fmt: skip


def progress_chart(tried: Sequence[Attempt]) -> Html | None:
    """Draw the score of every attempt in order, and the best that was kept so far."""
    scored = [(number, attempt) for number, attempt in enumerate(tried, start=1)
              if attempt.score is not None and math.isfinite(attempt.score)]  # fmt: skip
    if not scored:
        return None
    x = np.array([float(number) for number, _ in scored])
    y = np.array([float(attempt.score or 0.0) for _, attempt in scored])
    frame = Frame.around([np.array([1.0, float(len(tried))])], [y]).widened(0.04)
    parts: list[Any] = [axes(frame, "attempt", "score")]
    kept = [(number, attempt.score) for number, attempt in scored if attempt.status in COLOURS]
    if kept:
        steps_x = [float(number) for number, _ in kept for _ in (0, 1)]
        steps_x = [*steps_x[1:], float(len(tried))]
        steps_y = [float(score or 0.0) for _, score in kept for _ in (0, 1)]
        parts.append(el("polyline", points=frame.points(np.array(steps_x), np.array(steps_y)), class_="mean s0"))
    for (number, attempt), column, row in zip(scored, frame.columns(x).tolist(), frame.rows(y).tolist(), strict=True):
        colour = COLOURS.get(attempt.status, "s6")
        dot = el("circle", cx=f"{column:.1f}", cy=f"{row:.1f}", r=5, class_=f"fill {colour}")
        words = f"attempt {number}: {figure(attempt.score)}, {attempt.status}: {attempt.description}"
        parts.append(el("g", dot, el("title", words)))
    note = "blue: kept; green: confirmed on fresh seeds; dark: not kept; line: the newest attempt that was kept"
    return picture(parts, title="score of every attempt", note=note)
