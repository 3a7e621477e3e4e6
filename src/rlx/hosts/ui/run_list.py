"""The page of all runs: a table with filter, order, groups, tags, stars, curves and live progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlx.hosts.cli.format import NOTHING, duration, figure, spread, steps, when
from rlx.hosts.cli.ls import groups_of
from rlx.hosts.ui.html import Html, Part, el, empty, link, state, table, url
from rlx.hosts.ui.layout import Site, run_link
from rlx.runs.index import SORT_KEYS, STATES, LiveIndex
from rlx.runs.status import QUEUED

Data = dict[str, Any]
PAGE = 50
MOST = 500
STAR = "star"
"""A starred run has this tag."""
FILTERS = ("name", "env", "algo", "status", "tag")
_SORTED_COLUMNS = {"run": "name", "status": "status", "env": "env", "algo": "algo", "seeds": "seeds", "steps": "steps",
                   "return": "return", "best": "best", "time": "duration", "created": "created"}  # fmt: skip


def choices(query: Mapping[str, str]) -> Data:
    """Read filter, order and place from an address; unknown words are refused by the index."""
    chosen: Data = {key: query[key][:200] for key in FILTERS if query.get(key)}
    chosen["sort"] = query.get("sort") or "created"
    chosen["reverse"] = query.get("reverse") == "1"
    return chosen


def _number(query: Mapping[str, str], key: str, default: int, most: int) -> int:
    word = query.get(key, "")
    if not word.isascii() or not word.isdigit() or len(word) > 9:
        return default
    return min(int(word), most)


def run_list(site: Site, index: LiveIndex, query: Mapping[str, str]) -> str:
    """Return the page."""
    chosen = choices(query)
    is_grouped = query.get("group") == "1"
    offset = _number(query, "offset", 0, 10**8)
    limit = max(1, _number(query, "limit", PAGE, MOST))
    if is_grouped:
        groups = groups_of(index.page(**chosen).rows)
        total = len(groups)
        body = _group_table(groups[offset : offset + limit])
    else:
        page = index.page(limit=limit, offset=offset, **chosen)
        total = page.total
        if any(row["status"] == QUEUED for row in page.rows):
            from rlx.launch.launch import explain_queued

            explain_queued(index.root, page.rows)
        body = _run_table(site, page.rows, chosen)
    kept = {**chosen, "reverse": "1" if chosen["reverse"] else "", "group": "1" if is_grouped else "", "limit": limit}
    count = "1 run" if total == 1 else f"{total:,} {'configs' if is_grouped else 'runs'}"
    table_part = el("div", body, _paging(kept, offset, limit, total), id="runs")
    return site.page("Runs", el("h1", count), _filter_form(chosen, is_grouped), table_part, live="/live/runs")


def _filter_form(chosen: Data, is_grouped: bool) -> Html:
    """Return the filters; with htmx the table follows while typing, without it the button sends them."""
    fields = [
        el("label", label, el("input", type="search", name=name, value=chosen.get(name, ""), size=size, id=f"f-{name}"))
        for name, label, size in (("name", "name or pattern", 18), ("env", "environment", 14), ("algo", "algorithm", 8),
                                  ("tag", "tag", 8))
    ]  # fmt: skip
    states = [el("option", word or "any", value=word, selected=chosen.get("status", "") == word)
              for word in ("", *STATES)]  # fmt: skip
    orders = [el("option", word, value=word, selected=chosen["sort"] == word) for word in SORT_KEYS]
    return el(
        "form",
        *fields,
        el("label", "status", el("select", states, name="status")),
        el("label", "order", el("select", orders, name="sort")),
        tick("reverse", name="reverse", value="1", checked=chosen["reverse"]),
        tick("pool seeds per config", name="group", value="1", checked=is_grouped),
        el("button", "Show", class_="main"),
        class_="bar", method="get", action="/", role="search",
        hx_get="/", hx_target="#runs", hx_select="#runs", hx_swap="outerHTML", hx_push_url="true",
        hx_trigger="input delay:250ms, submit",
    )  # fmt: skip


def tick(label: str, **attributes: object) -> Html:
    """Return a box to tick with its label on the same line."""
    return el("label", el("input", type="checkbox", **attributes), label, class_="tick")


def _heading(label: str, chosen: Data) -> Part:
    key = _SORTED_COLUMNS.get(label)
    if key is None:
        return label
    is_current = chosen["sort"] == key
    again = {**chosen, "sort": key, "reverse": "1" if is_current and not chosen["reverse"] else ""}
    arrow = ""
    if is_current:
        arrow = " ▴" if chosen["reverse"] else " ▾"
    return link(label + arrow, url("", **again))


def _run_table(site: Site, rows: list[Data], chosen: Data) -> Html:
    if not rows:
        return empty(el("p", "No run matches."), el("p", link("Show all runs", "/"), " or train one: ",
                                                    el("code", "rlx train CONFIG")))  # fmt: skip
    labels = (
        "",
        "run",
        "return",
        "status",
        "curve",
        "best",
        "seeds",
        "steps",
        "env",
        "algo",
        "time",
        "created",
        "tags",
    )
    header = [_heading(label, chosen) for label in labels]
    header[0] = el("span", "select", class_="hidden")
    body = table(header, [_cells(row) for row in rows], right=(2, 5, 6, 7, 10), caption="runs")
    actions = [el("button", label, formaction=address) for label, address in
               (("Compare", "/compare"), ("Plot together", "/plot"))]  # fmt: skip
    note = el("small", "tick two or more runs; the oldest one is the baseline")
    form = el("form", el("div", actions, note, class_="inline"), body, method="get", action="/compare", id="selection")
    return el("section", form)


def _cells(row: Data) -> list[Part]:
    name = row["name"]
    box = el("input", type="checkbox", name="run", value=name, aria_label=f"select {name}")
    title: list[Part] = [run_link(name)]
    if STAR in row["tags"]:
        title.insert(0, el("span", "★ ", title="starred"))
    curve = el("img", src=url("spark", name, at=f"{row['created']:.0f}"), alt="", class_="spark", width=120, height=28,
               loading="lazy")  # fmt: skip
    progress: list[Part] = [steps(row["steps"], row["planned_steps"])]
    if row["status"] == "running" and row["planned_steps"]:
        progress.insert(0, el("progress", value=row["steps"], max=row["planned_steps"], aria_label="progress"))
    tags = [el("span", tag, class_="tag") for tag in row["tags"] if tag != STAR]
    score, best = score_cells(row["return"])
    return [
        box, title, score, el("span", state(row["status"]), title=row["reason"]), curve, best, row["seeds"],
        el("span", progress, data_steps=name), row["env"] or NOTHING, row["algo"] or NOTHING, duration(row["seconds"]),
        when(row["created"]), tags,
    ]  # fmt: skip


def score_cells(score: Data | None) -> list[Part]:
    """Return mean ± sd with the number of seeds, and the best; an asterisk marks a return during training."""
    if not score:
        return [NOTHING, NOTHING]
    label = spread(score)
    if score["metric"] != "return":
        label += f" {score['metric']}"
    if "rollout" in score["source"]:
        label += "*"
    title = f"mean ± sd over {score['n']} seeds, {score['source']}"
    return [el("span", label, " ", el("small", f"n={score['n']}"), title=title), figure(score["best"])]


def _group_table(groups: list[Data]) -> Html:
    header = ["env", "algo", "seeds", "steps", "return", "best", "runs", ""]
    rows = []
    for group in groups:
        names = group["runs"]
        links: list[Part] = [[run_link(name), " "] for name in names[:8]]
        if len(names) > 8:
            links.append(f"and {len(names) - 8} more")
        plot = link("plot", url("plot", run=names[:40], by="config"))
        rows.append([group["env"] or NOTHING, group["algo"] or NOTHING, group["seeds"], f"{group['planned_steps']:,}",
                     *score_cells(group["return"]), links, plot])  # fmt: skip
    return el("section", table(header, rows, right=(2, 3, 4, 5), caption="configs with pooled seeds"))


def _paging(kept: Data, offset: int, limit: int, total: int) -> Html:
    parts: list[Part] = []
    if offset:
        parts.append(link("← newer", url("", **kept, offset=max(0, offset - limit)), rel="prev"))
    if total:
        parts.append(f" {offset + 1:,}–{min(offset + limit, total):,} of {total:,} ")
    if offset + limit < total:
        parts.append(link("more →", url("", **kept, offset=offset + limit), rel="next"))
    return el("p", parts, class_="paging")
