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
    told = el("pre", row_text(steps[0]), data_told=True, aria_live="off")
    data = el("script", content, type="application/json")
    left = el("div", picture, el("div", play, slider, class_="controls"))
    right = el("div", told, el("div", _traces(steps), class_="traces"))
    viewer = el("div", left, right, data, class_="replay", data_replay=True)
    return el("section", head, viewer, _rows(steps))


def _traces(steps: list[Data]) -> list[Html]:
    """Draw reward, value and entropy over the steps; the browser moves the line of the current step."""
    figures = []
    for number, (key, label) in enumerate((("reward", "reward"), ("value", "value estimate"), ("entropy", "entropy"))):
        points = [(row["step"], row[key]) for row in steps if files.is_number(row[key])]
        values = [files.number(value) for _, value in points]
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) < 2:
            continue
        low = min(finite)
        span = (max(finite) - low) or 1.0
        pairs = zip(points, values, strict=True)
        line = " ".join(f"{step},{58 - 52 * (value - low) / span:.1f}" for (step, _), value in pairs
                        if math.isfinite(value))  # fmt: skip
        now = el("line", x1=0, x2=0, y1=0, y2=64, class_="now", vector_effect="non-scaling-stroke", data_now=True)
        drawing = el("svg", el("polyline", points=line), now, viewBox=f"0 0 {max(1, len(steps) - 1)} 64",
                     preserveAspectRatio="none", role="img", aria_label=f"{label} over the steps",
                     class_=f"s{number}")  # fmt: skip
        caption = f"{label}: {figure(low)} to {figure(max(finite))}"
        figures.append(el("figure", el("figcaption", caption), drawing))
    return figures


def row_text(row: Data) -> str:
    """Spell one step; `replay.js` spells it the same way."""
    lines = [f"step {row['step']}   reward {figure(row['reward'])}   return so far {figure(row['total'])}"]
    lines.append(f"value {figure(row['value'])}   entropy {figure(row['entropy'])}")
    if row["action"] is not None:
        lines.append(f"action {', '.join(figure(value) for value in row['action'])}")
    for name, values in row["distribution"].items():
        lines.append(f"{name} {', '.join(figure(value) for value in values[:12])}")
    for name, value in row["terms"].items():
        lines.append(f"term {name} {figure(value)}")
    return "\n".join(lines)


def _rows(steps: list[Data]) -> Html:
    every = -(-len(steps) // MOST_ROWS)
    rows: list[list[Part]] = []
    for row in steps[::every]:
        action = NOTHING if row["action"] is None else ", ".join(figure(value) for value in row["action"])
        rows.append([row["step"], figure(row["reward"]), figure(row["total"]), figure(row["value"]),
                     figure(row["entropy"]), action])  # fmt: skip
    header = ["step", "reward", "return so far", "value", "entropy", "action"]
    title = "Steps" if every == 1 else f"Every {every}th step"
    return el("details", el("summary", title), table(header, rows, right=range(5), caption="steps"))


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
            row_text(row)
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
