"""The page of one run: curves, evaluations, films, findings, config, provenance and logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlx import files
from rlx.errors import RlxError
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import NOTHING, counted, duration, figure, setting, size, spread, steps, when
from rlx.hosts.cli.output import harmless
from rlx.hosts.ui.chart import Marking, line_chart
from rlx.hosts.ui.curve_data import CurveData
from rlx.hosts.ui.html import Html, Part, el, facts, link, state, table, url, words
from rlx.hosts.ui.layout import Site, breadcrumb, section
from rlx.hosts.ui.replay_view import stored_replays
from rlx.hosts.ui.run_list import STAR
from rlx.runs.run import Run

Data = dict[str, Any]
AXES = {"steps": "steps", "wall": "training time (minutes)", "episodes": "episodes"}
MOST_EPISODES = 200
LOG_BYTES = 16_384
LONGEST_WORD = 32
FILM_KINDS = (".mp4", ".gif", ".png")


def run_page(site: Site, data: CurveData, name: str, query: Mapping[str, str]) -> str:
    """Return the page."""
    info = document("info", "--", data.run(name).name)
    run = data.run(name)
    diagnosis = data.remembered(run, "diagnosis", compute=lambda: _diagnosis(name), may_lag=True)
    metric, axis = chosen_curve(data, name, query)
    is_running = info["status"] == "running"
    markings = _markings(diagnosis) if axis == "steps" else []
    chart = el(
        "div",
        curve_part(data, name, metric, axis, markings=markings),
        id="curve",
        data_curves=url("curves", run=name, metric=metric, x=axis),
        data_fragment=url("part", "curve", run=name, metric=metric, x=axis),
        data_markings=files.encode([[marking.start, marking.end, marking.name] for marking in markings]).decode(),
    )
    parts = [
        breadcrumb(("Runs", "/"), (name, url("run", name))),
        el("h1", "★ " if STAR in info["tags"] else "", name),
        el(
            "div",
            el("div", summary_part(info), id="summary", data_fragment=url("part", "summary", run=name)),
            el("p", "waiting for news …", id="news", aria_live="off", class_="muted") if is_running else None,
            _controls(site, info, is_running),
            class_="headline",
        ),
        section("Curve", _curve_form(data, name, metric, axis), chart, identity="curves"),
        findings_part(diagnosis),
        el(
            "div",
            el("div", seeds_part(info), id="seeds", data_fragment=url("part", "seeds", run=name)),
            el("div", _checkpoints(info)),
            class_="columns",
        ),
        evaluations_part(info),
        _recordings(data.run(name)),
        _reward_terms(data, name),
        el(
            "div",
            section("All metrics", _metrics(data, name), identity="metrics"),
            section("Config", config_part(info)),
            class_="columns",
        ),
        section("Code and provenance", provenance_part(info), _files(data.run(name))),
        section("Logs", el("div", logs_part(name), id="logs", data_fragment=url("part", "logs", run=name))),
        el("p", "next: ", el("code", info["next"])),
    ]
    live = url("live", "run", name) if is_running else None
    return site.page(name, parts, live=live)


def chosen_curve(data: CurveData, name: str, query: Mapping[str, str]) -> tuple[str, str]:
    """Return the metric and the axis that an address asks for, or the usual ones."""
    known = data.metrics(name)
    metric = query.get("metric", "")
    if metric not in known:
        metric = (known or [""])[0]
    axis = query.get("x", "steps")
    if axis not in AXES:
        axis = "steps"
    return metric, axis


def curve_part(
    data: CurveData, name: str, metric: str, axis: str, *, markings: Sequence[Marking] = ()
) -> Html:  # fmt: skip
    """Return the chart of one metric."""
    if not metric:
        return el("p", "This run has logged no metrics yet.", class_="muted")
    run = data.run(name)

    def draw() -> Html:
        return line_chart([data.curves(name, metric, axis=axis)], x_label=AXES[axis], y_label=metric, markings=markings)

    return data.remembered(run, "chart", metric, axis, tuple(markings), compute=draw)


def _curve_form(data: CurveData, name: str, metric: str, axis: str) -> Html:
    metrics = [el("option", word, value=word, selected=word == metric) for word in data.metrics(name)]
    axes = [el("option", label, value=word, selected=word == axis) for word, label in AXES.items()]
    return el("form", el("label", "metric", el("select", metrics, name="metric")),
              el("label", "over", el("select", axes, name="x")), el("button", "Draw"), class_="bar", method="get",
              action=url("run", name) + "#curves", data_submits=True)  # fmt: skip


def _diagnosis(name: str) -> Data:
    try:
        return document("diagnose", "--", name)
    except RlxError as error:
        return {"findings": [], "health": "", "what": error.message}


def _markings(diagnosis: Data) -> list[Marking]:
    """Return the stretches of steps that findings point to, one per finding."""
    markings = []
    for finding in diagnosis["findings"]:
        spans = [row["steps"] for row in finding["evidence"] if row.get("steps")]
        if spans:
            start = min(span[0] for span in spans)
            end = max(span[1] for span in spans)
            label = f"{finding['rule']}: steps {start:,} to {end:,}"
            markings.append(Marking(start, end, finding["rule"], label))
    return markings


def summary_part(info: Data) -> Html:
    """Return the state, the score and the progress of a run."""
    score: list[Part] = [spread(info["return"])]
    if info["return"]:
        score.append(el("small", f" {info['return']['source']}, n = {counted(info['return']['n'], 'seed')}"))
    progress: list[Part] = [steps(info["steps"], info["planned_steps"])]
    if info["steps"] < (info["planned_steps"] or 0):
        progress.append(el("progress", value=info["steps"], max=info["planned_steps"],
                           aria_label="progress"))  # fmt: skip
    return facts([
        ("status", [state(info["status"]), el("small", f" {info['tally']}")]),
        ((info["return"] or {}).get("metric", "return"), score),
        ("steps per seed", progress),
        ("environment", info["env"]),
        ("algorithm", f"{info['algo']} ({info['backend']})"),
        ("created", f"{when(info['created'])}, trained {duration(info['seconds'])}"),
        ("reason", info["reason"]),
        ("tags", [el("span", tag, class_="tag") for tag in info["tags"] if tag != STAR]),
        ("note", info["note"]),
        *((key.replace("_", " "), _origin(key, info["lineage"])) for key in info["lineage"] if _is_short(info, key)),
    ])  # fmt: skip


def _is_short(info: Data, key: str) -> bool:
    """Return whether a fact about a run's origin is a word. The provenance shows hashes, limits and lists."""
    value = info["lineage"][key]
    is_word = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return is_word and len(str(value)) <= LONGEST_WORD


def _origin(key: str, lineage: Data) -> Part:
    """Return the origin of a run; a sweep or a study of this project as a link."""
    value = str(lineage[key])
    if key == "sweep":
        return link(value, url("sweep", value))
    if key == "study" and lineage.get("task"):
        return link(value, url("study", str(lineage["task"]), value))
    return value


def _controls(site: Site, info: Data, is_running: bool) -> Html:
    """Return the forms that change something: tags, the star, the note, and stopping a run that trains."""
    name = info["name"]
    is_starred = STAR in info["tags"]
    forms = [
        site.form(url("run", name, "untag" if is_starred else "tag"),
                  el("input", type="hidden", name="tag", value=STAR),
                  el("button", "Remove the star" if is_starred else "☆ Star"), class_="inline"),
        site.form(url("run", name, "tag"), el("input", name="tag", aria_label="new tag", size=12, maxlength=60),
                  el("button", "Tag"), class_="inline"),
        site.form(url("run", name, "note"), el("input", name="note", aria_label="note", value=info["note"], size=34,
                  maxlength=2000), el("button", "Save the note"), class_="inline"),
    ]  # fmt: skip
    for tag in info["tags"]:
        if tag != STAR:
            forms.append(site.form(url("run", name, "untag"), el("input", type="hidden", name="tag", value=tag),
                                   el("button", f"Remove {tag}"), class_="inline"))  # fmt: skip
    if is_running:
        forms.append(site.form(url("run", name, "stop"), el("button", "Stop this run"), class_="inline"))
    plot = link("file list", url("run", name, "files"))
    return el("details", el("summary", "Tags, note, actions"), forms, el("p", plot))


def findings_part(diagnosis: Data) -> Html:
    """Return what happened, and every finding with its evidence and what to try."""
    parts: list[Part] = [el("p", diagnosis["what"])]
    for finding in diagnosis["findings"]:
        evidence = {row["what"]: row for row in finding["evidence"]}
        claim = _plain_minus(finding["claim"])
        seen = []
        for row in evidence.values():
            if files.is_number(row.get("value")) and files.is_number(row.get("limit")):
                line = f"{row['what']} {figure(row['value'])} (limit {figure(row['limit'])})"
                if _plain_minus(line) not in claim:  # the claim already says it
                    seen.append(line)
        tries = el("ul", [el("li", line) for line in finding["try"]])
        parts.append(el("div", el("h3", f"{finding['rule']} ({finding['severity']})"), el("p", finding["claim"]),
                        el("p", "; ".join(seen[:4]), class_="muted") if seen else None, el("p", "Try:"), tries,
                        class_="finding"))  # fmt: skip
    if not diagnosis["findings"]:
        parts.append(el("p", "No failure found.", class_="muted"))
    return section("Findings", parts, identity="findings")


def _plain_minus(text: str) -> str:
    return text.replace("−", "-")


def seeds_part(info: Data) -> Html:
    rows = []
    for seed in info["per_seed"]:
        reason = el("span", seed["reason"], title=seed["reason"])
        rows.append([seed["seed"], state(seed["status"]), steps(seed["step"], info["planned_steps"]),
                     figure(seed["return"]), duration(seed["seconds"]), reason])  # fmt: skip
    header = ["seed", "status", "step", (info["return"] or {}).get("metric", "return"), "time", ""]
    return section("Seeds", table(header, rows, right=(0, 2, 3, 4), caption="seeds"))


def _checkpoints(info: Data) -> Html:
    rows = [[row["seed"], row["name"], f"{row['step']:,}", row["resume"], size(row["bytes"])]
            for row in info["checkpoints"]]  # fmt: skip
    header = ["seed", "checkpoint", "step", "resume", "size"]
    body = table(header, rows, right=(0, 2, 4), caption="checkpoints")
    return section("Checkpoints", el("details", el("summary", counted(len(rows), "checkpoint")), body))


def evaluations_part(info: Data) -> Html:
    """Return the evaluations, each with a link to the page that lists every episode."""
    rows = []
    for row in info["evaluations"]:
        address = url("run", info["name"], "episodes", protocol=row["fingerprint"], checkpoint=row["checkpoint"])
        rows.append([row["purpose"], row["checkpoint"], row["return"]["n"], link(f"{row['episodes']:,}", address),
                     spread(row["return"]), row["return"]["metric"], row["fingerprint"]])  # fmt: skip
    header = ["purpose", "of", "seeds", "episodes", "score", "metric", "protocol"]
    return section("Evaluations", table(header, rows, right=(2, 3, 4), caption="evaluations"), identity="evaluations")


def episodes_page(site: Site, data: CurveData, name: str, query: Mapping[str, str]) -> str:
    """Return every episode of one protocol and checkpoint, with the file that holds it."""
    run = data.run(name)
    rows: list[list[Part]] = []
    for found in run.evaluations():
        checkpoint = re.sub(r"^seed_\d+_", "", found["name"])
        if (found["fingerprint"], checkpoint) != (query.get("protocol"), query.get("checkpoint")):
            continue
        path = f"eval/{found['fingerprint']}/{found['name']}.json"
        for episode in found["episodes"][:MOST_EPISODES]:
            end = "truncated" if episode.get("truncated") else "terminated"
            rows.append([found.get("seed", NOTHING), episode["seed"], figure(files.number(episode["return"])),
                         f"{episode['length']:,}", end, str(episode.get("success", NOTHING)),
                         link(path, url("run", name, "file", path=path))])  # fmt: skip
    header = ["training seed", "episode seed", "return", "length", "end", "success", "file"]
    where = breadcrumb(("Runs", "/"), (name, url("run", name)), ("Episodes", url("run", name, "episodes", **query)))
    title = f"Episodes of {query.get('checkpoint', '')} under {query.get('protocol', '')}"
    body = el("section", table(header, rows, right=(0, 1, 2, 3), caption="episodes"))
    return site.page(title, where, el("h1", title), body)


def _reward_terms(data: CurveData, name: str) -> Html | None:
    """Return the terms of the reward: the mean of each per step at the end, and its curve."""
    from rlx.diagnose.reward_terms.load_terms import TERM

    columns = list(data.columns(data.run(name)).values())
    rows: list[list[Part]] = []
    for metric in data.metrics(name):
        if metric.startswith(TERM):
            last = [value for value in (table.last(metric) for table in columns) if value is not None]
            mean = figure(sum(last) / len(last)) if last else NOTHING
            curve = link("curve", url("run", name, metric=metric) + "#curves")
            rows.append([metric.removeprefix(TERM), mean, counted(len(last), "seed"), curve])
    if not rows:
        return None
    header = ["term", "mean per step, at the end", "over", ""]
    return section("Reward terms", table(header, rows, right=(1,), caption="reward terms"))


def _metrics(data: CurveData, name: str) -> Html:
    """Return every metric with its last value and a link to its curve."""
    columns = data.columns(data.run(name))
    rows = []
    for metric in data.metrics(name):
        last = [figure(table.last(metric)) for table in list(columns.values())[:5]]
        rows.append([link(metric, url("run", name, metric=metric) + "#curves"), ", ".join(last)])
    search = el(
        "input", type="search", id="metric-filter", aria_label="filter metrics", placeholder="filter", hidden=True
    )
    return el("details", el("summary", f"{len(rows)} metrics"), search,
              table(["metric", "last value per seed"], rows, caption="metrics", identity="metric-table"))  # fmt: skip


def config_part(info: Data) -> Html:
    rows = [[key, setting(value)] for key, value in flat(info["config"])]
    return el("details", el("summary", f"{len(rows)} settings"), table(["key", "value"], rows, caption="config"))


def flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return a config as dotted keys."""
    pairs: list[tuple[str, Any]] = []
    for key, value in config.items():
        if isinstance(value, dict) and value:
            pairs += flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", value))
    return pairs


def provenance_part(info: Data) -> Html:
    newest = info["provenance"]
    git = newest.get("git") or {}
    versions = ", ".join(f"{name} {version}" for name, version in (newest.get("versions") or {}).items())
    return facts([
        ("run id", str(info["id"] or "")),
        ("config hash", str(info["config_hash"] or "")[:16]),
        ("commit", str(git.get("commit") or "")),
        ("code hash", str(newest.get("code_sha256") or "")[:16]),
        ("machine", f"{newest.get('host') or NOTHING}, {newest.get('cores') or NOTHING} cores"),
        ("folder", info["path"]),
        ("command", " ".join(map(str, newest.get("argv") or []))),
        ("versions", versions),
        ("differs between attempts", "; ".join(map(str, info["differences"]))),
        *((f"origin: {key.replace('_', ' ')}", words(value)) for key, value in info["lineage"].items()
          if not _is_short(info, key)),
    ], kind="facts wide")  # fmt: skip


def logs_part(name: str) -> Html:
    """Return the end of each log; control characters are spelt out."""
    logs = document("logs", "--tail", "60", "--", name)["logs"]
    parts = []
    filled = [stem for stem in sorted(logs) if logs[stem]]
    empty = [stem for stem in sorted(logs) if not logs[stem]]
    for stem in filled:
        text = logs[stem]
        title = el("summary", f"{stem} ({len(text):,} characters)")
        parts.append(el("details", title, el("pre", harmless(text[-LOG_BYTES:])), open=stem == filled[0]))
    if empty:
        parts.append(el("p", f"Empty: {', '.join(empty)}", class_="muted"))
    return el("div", parts or el("p", "No logs.", class_="muted"))


def _recordings(run: Run) -> Html:
    """Return the replays, videos and pictures of a run."""
    figures = []
    paths = [*sorted((run.path / "videos").glob("*")), *sorted((run.path / "plots").glob("*.png"))]
    for path in paths:
        if path.suffix.lower() not in FILM_KINDS or not path.is_file():
            continue
        address = url("run", run.name, "media", path=f"{path.parent.name}/{path.name}")
        if path.suffix.lower() == ".mp4":
            film = el(  # the fragment shows the first picture before anybody plays the film
                "video",
                src=f"{address}#t=0.01",
                controls=True,
                preload="metadata",
                width=480,
                height=320,
                aria_label=path.name,
            )
        else:
            film = link(el("img", src=address, alt=path.name, class_="film", loading="lazy"), address)
        figures.append(el("figure", film, el("figcaption", path.name)))
    replays = stored_replays(run.path)
    shown = [el("li", link(f"▶ {name}", url("run", run.name, "replay", name=name))) for name in replays]
    if not figures and not shown:
        hint = [el("code", f"rlx replay {run.name}"), " or ", el("code", f"rlx video {run.name}")]
        return section("Replays and videos", el("p", "None yet. Make one: ", hint, class_="muted"), identity="videos")
    return section("Replays and videos", el("ul", shown, class_="replays") if shown else None,
                   el("div", figures, class_="films"), identity="videos")  # fmt: skip


def _files(run: Run) -> Html:
    names = ("config_snapshot.yaml", "metadata.json", "labels.json")
    items = [el("li", link(name, url("run", run.name, "file", path=name))) for name in names
             if (run.path / name).is_file()]  # fmt: skip
    return el("ul", items, el("li", link("all files", url("run", run.name, "files"))), class_="legend")
