"""A replay as HTML: the picture with a scrubber, and a table of the steps for readers without JavaScript."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import FileDamaged, NotFound
from rlx.hosts.cli.format import NOTHING, figure
from rlx.hosts.ui.curve_data import CurveData
from rlx.hosts.ui.file_page import inside
from rlx.hosts.ui.html import Html, Part, el, empty, facts, link, table, url
from rlx.hosts.ui.layout import Site, breadcrumb, offline

Data = dict[str, Any]
LARGEST = 40_000_000
MOST_ROWS = 40
MOST_NAMES = 24
MOST_NUMBERS = 12
MOST_OPTIONS = 12
PROBABILITIES = "probabilities"
FIGURES = ("step", "reward", "total", "value", "entropy", "action")
"""The figures that every step has."""


def replay_view(document: Data) -> Html:
    """Return the viewer of one replay."""
    steps = document["steps"]
    episode = document["episode"]
    first = f"data:image/jpeg;base64,{steps[0]['frame']}"
    content = Html(files.encode({"steps": steps}).decode().replace("<", "\\u003c"))
    head = facts([
        ("policy", document["title"]),
        ("environment", document["env"]),
        ("return", f"{figure(episode['return'])} in {episode['length']:,} steps"),
        ("end", document["end"]),
        ("frames", "drawings of the state" if document["is_drawn"] else "rendered"),
    ])  # fmt: skip
    picture = el("img", src=first, alt="frame of step 0", class_="frame", data_frame=True)
    slider = el("input", type="range", min=0, max=len(steps) - 1, value=0, aria_label="step", data_scrub=True)
    play = el("button", "Play", type="button", data_play=True)
    data = el("script", content, type="application/json")
    left = el("div", picture, el("div", play, slider, class_="controls"), _probabilities(steps))
    right = el("div", _reading(steps), el("div", _traces(steps), class_="traces"))
    viewer = el("div", left, right, data, class_="replay", data_replay=True)
    return el("section", head, viewer, _rows(steps))


def _reading(steps: list[Data]) -> Html:
    """Return the figures of the first step by name; `replay.js` fills in those of another step."""
    names = list(FIGURES)
    names += [f"distribution.{name}" for name in _names(steps, "distribution") if name != PROBABILITIES]
    names += [f"terms.{name}" for name in _names(steps, "terms")]
    rows = [el("div", el("dt", _label(name)), el("dd", spelt(steps[0], name), data_value=name)) for name in names]
    return el("dl", rows, class_="facts reading", aria_live="off")


def _names(steps: list[Data], part: str) -> list[str]:
    return list(dict.fromkeys(name for row in steps for name in row[part]))[:MOST_NAMES]


def _label(name: str) -> str:
    part, _, rest = name.partition(".")
    if part == "terms":
        return f"reward term {rest}"
    if part == "distribution":
        return f"{rest} of the action"
    return {"total": "return so far", "value": "value estimate"}.get(name, name)


def spelt(row: Data, name: str) -> str:
    """Spell one figure of a step; `replay.js` spells it the same way."""
    part, _, rest = name.partition(".")
    value = row[part].get(rest) if rest else row[part]
    if value is None:
        return NOTHING
    if name == "step":
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(figure(number) for number in value[:MOST_NUMBERS])
    return figure(value)


def _probabilities(steps: list[Data]) -> Html | None:
    """Draw the probability of every option as a bar; the chosen one is bold."""
    shares = steps[0]["distribution"].get(PROBABILITIES)
    if not shares:
        return None
    chosen = steps[0]["action"] or []
    rows = []
    for number, share in enumerate(shares[:MOST_OPTIONS]):
        bar = el("progress", value=f"{files.number(share):.4f}", max=1, aria_label=f"probability of {number}",
                 data_bar=number)  # fmt: skip
        word = "chosen" if len(chosen) == 1 and chosen[0] == number else None
        rows.append(el("div", el("dt", f"action {number}"), el("dd", bar, el("span", figure(share), data_share=number)),
                       class_=word, data_option=number))  # fmt: skip
    more = len(shares) - len(rows)
    note = el("small", f"{more} more options are not shown") if more else None
    return el("div", el("h3", "Action probabilities"), el("dl", rows, class_="bars"), note)


def _traces(steps: list[Data]) -> list[Html]:
    """Draw reward, value and entropy over the steps; the browser moves the line of the current step.

    A drawing is 64 high, with a margin of 6 above and below.
    """
    figures = []
    for number, (key, label) in enumerate((("reward", "reward"), ("value", "value estimate"), ("entropy", "entropy"))):
        points = [(row["step"], row[key]) for row in steps if files.is_number(row[key])]
        values = [files.number(value) for _, value in points]
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) < 2:
            continue
        low = min(finite)
        high = max(finite)
        middle = (low + high) / 2
        span = (high - low) or 1.0
        pairs = zip(points, values, strict=True)
        line = " ".join(f"{step},{32 - 52 * (value - middle) / span:.1f}" for (step, _), value in pairs
                        if math.isfinite(value))  # fmt: skip
        now = el("line", x1=0, x2=0, y1=0, y2=64, class_="now", vector_effect="non-scaling-stroke", data_now=True)
        drawing = el("svg", el("polyline", points=line), now, viewBox=f"0 0 {max(1, len(steps) - 1)} 64",
                     preserveAspectRatio="none", role="img", aria_label=f"{label} over the steps",
                     class_=f"s{number}")  # fmt: skip
        caption = f"{label}: {figure(low)} to {figure(high)}"
        if low == high:
            caption = f"{label}: {figure(low)} at every step"
        figures.append(el("figure", el("figcaption", caption), drawing))
    return figures


def _rows(steps: list[Data]) -> Html:
    every = -(-len(steps) // MOST_ROWS)
    terms = _names(steps, "terms")
    rows: list[list[Part]] = []
    for row in steps[::every]:
        action = NOTHING if row["action"] is None else ", ".join(figure(value) for value in row["action"])
        rows.append([row["step"], figure(row["reward"]), figure(row["total"]), figure(row["value"]),
                     figure(row["entropy"]), *(figure(row["terms"].get(name)) for name in terms),
                     action])  # fmt: skip
    header = ["step", "reward", "return so far", "value", "entropy", *terms, "action"]
    title = "All steps as a table"
    if every > 1:
        title = f"Steps as a table, one row per {every} steps"
    return el("details", el("summary", title), table(header, rows, right=range(5 + len(terms)), caption="steps"))


def replay_file(document: Data) -> str:
    """Return a page of one replay that needs no server."""
    return offline(f"Replay of {document['title']}", el("h1", f"Replay of {document['title']}"), replay_view(document))


def stored_replays(run: Path) -> list[str]:
    """Return the names of a run's replays."""
    return sorted(path.stem for path in (run / "replays").glob("*.json") if path.is_file())


def read_replay(run: Path, name: str) -> Data:
    """Return a stored replay. Raises if it is not one."""
    path = inside(run, f"replays/{name}.json")
    if path.stat().st_size > LARGEST:
        raise FileDamaged(f"{path.name} is too large to show", hint=str(path))
    document = files.read_json(path)
    try:
        for row in document["steps"]:
            for figure_name in FIGURES:
                spelt(row, figure_name)
            for part in ("distribution", "terms"):
                for entry in row[part]:
                    spelt(row, f"{part}.{entry}")
            if not isinstance(row["frame"], str) or not row["frame"].isascii():
                raise TypeError
        return {
            **document,
            "episode": {"return": document["episode"]["return"], "length": document["episode"]["length"]},
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FileDamaged(f"{path.name} is not a replay", hint="rlx replay RUN") from None


def replay_page(site: Site, data: CurveData, name: str, chosen: str) -> str:
    """Return the replays of a run, and the chosen one."""
    run = data.run(name)
    names = stored_replays(run.path)
    where = breadcrumb(("Runs", "/"), (name, url("run", name)), ("Replays", url("run", name, "replay")))
    if not names:
        hint = empty(el("p", "No replay yet."), el("p", "Make one: ", el("code", f"rlx replay {name}")))
        return site.page("Replays", where, el("h1", f"Replays of {name}"), hint)
    if chosen and chosen not in names:
        raise NotFound(f"no replay `{chosen[:80]}` of {name}", hint=f"rlx replay {name}")
    chosen = chosen or names[0]
    links = None
    if len(names) > 1:
        entries = [link(each, url("run", name, "replay", name=each), aria_current="page" if each == chosen else None)
                   for each in names]  # fmt: skip
        links = el("ul", [el("li", entry) for entry in entries], class_="legend")
    shown = replay_view(read_replay(run.path, chosen))
    script = el("script", src="/static/replay.js", defer=True)
    return site.page("Replays", where, el("h1", f"Replays of {name}"), links, shown, script)
