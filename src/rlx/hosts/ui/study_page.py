"""The pages of studies: contract, budget, candidates, decisions, and the ledger from which every number comes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rlx.errors import RlxError
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import NOTHING, duration, figure, interval, signed, when
from rlx.hosts.ui.html import Html, Part, el, empty, facts, link, state, table, url, words
from rlx.hosts.ui.layout import Site, breadcrumb, run_link, section
from rlx.hosts.ui.study_charts import budget_bar, effect_chart, timeline

Data = dict[str, Any]
MOST_EVENTS = 400
NEWEST = 12
MOST_DEPTH = 40
_SHOWN_FIELDS = 6
_LEDGER_COLUMNS = ("line", "time", "event", "content")


def study_list(site: Site, root: Path) -> str:
    """Return all studies with their state."""
    from rlx.study.study_folder import list_studies

    rows: list[list[Part]] = []
    for study in list_studies(root):
        address = url("study", study.task_name, study.name)
        try:
            status = document("status", "--", study.full_name)
            cells: list[Part] = [state(status["status"]), status["metric"], status["incumbent"] or NOTHING]
            cells += [status["head"], len(status["candidates"]), el("code", status["command"])]
        except RlxError as error:
            cells = [state("broken"), error.message, NOTHING, NOTHING, 0, ""]
        rows.append([link(study.full_name, address), *cells])
    header = ["study", "contract", "metric", "incumbent", "head", "candidates", "next"]
    body = el("section", table(header, rows, right=(5,), caption="studies", stacks=True))
    if not rows:
        command = "rlx study new NAME --config FILE"
        body = empty(el("p", "No study yet."), el("p", "Start one: ", el("code", command)))
    return site.page("Studies", el("h1", "Studies"), body, here="/studies")


def study_page(site: Site, root: Path, task: str, name: str) -> str:
    """Return one study."""
    study = find(root, task, name)
    home = url("study", task, name)
    parts = [breadcrumb(("Studies", "/studies"), (study.full_name, home)), el("h1", study.full_name)]
    return site.page(study.full_name, parts, study_parts(study), here="/studies")


def study_parts(study: Any) -> list[Html]:
    """Return the state of a study, its next step, its candidates, and the ledger behind every number."""
    full = study.full_name
    status = document("status", "--", full)
    following = document("next", "--", full)
    log = document("study", "log", "--", full)
    events = study.ledger.events()
    is_open = status["status"] != "approved"
    return [
        el("div", summary(status, study=study), class_="headline"),
        section("Next step", el("p", following["why"]), el("p", el("code", following["command"])),
                _notes(following["findings"])),
        section("Candidates", effect_chart(log["rows"]), candidates(status["candidates"], log["rows"], study=study)),
        section("Hypotheses", tree(study, status["candidates"])),
        section("Contract", link("contract.yaml", _file(study, "contract.yaml")),
                el("details", el("summary", "all points"), contract_part(study), open=is_open)),
        section("Approvals", _approvals(study, events)),
        section("Jobs", _jobs(status["jobs"])),
        section("Ledger", timeline(events), ledger(study, url("study", study.task_name, study.name))),
    ]  # fmt: skip


def find(root: Path, task: str, name: str) -> Any:
    """Return the study that an address names; nothing outside the project's studies can be named."""
    from rlx.errors import NotFound
    from rlx.study.study_folder import list_studies

    for study in list_studies(root):
        if (study.task_name, study.name) == (task, name):
            return study
    raise NotFound(f"no study `{task}/{name}`", hint="rlx status")


def summary(status: Data, *, study: Any = None) -> Html:
    """Return the state of a study; on a server, its figures link to the ledger."""
    left = status["left"]
    spent = status["spent"]
    rows: Part = str(status["events"])
    if study is not None:
        rows = link(rows, _file(study, "ledger.jsonl") + f"#L{status['events']}")
    seeds = f"{spent['seeds']} of {spent['seeds'] + left['seeds']} seeds"
    return facts([
        ("incumbent (confirmed)", status["incumbent"] or NOTHING),
        ("head", status["head"]),
        ("contract", [state(status["status"]), "; ".join(status["missing"])]),
        ("metric", status["metric"]),
        ("spent", budget_bar(spent["seeds"], left["seeds"], seeds)),
        ("time", f"{duration(spent['seconds'])} spent, {duration(left['seconds'])} left"),
        ("approval", status["approval"]),
        ("ledger rows", rows),
        ("ledger problems", "; ".join(status["violations"])),
        ("integrity", "; ".join(map(str, status["integrity"]))),
        ("warnings", "; ".join(status["warnings"])),
    ])  # fmt: skip


def _notes(lines: list[str]) -> Html | None:
    if not lines:
        return None
    return el("ul", [el("li", line) for line in lines])


def contract_part(study: Any) -> Html:
    """Return the eight points of the contract."""
    from rlx.loop.study.study_status import overview

    shown = overview(study)
    rows: list[list[Part]] = []
    for point in shown["points"]:
        lines = [
            *point["lines"],
            *(f"open: {text}" for text in point["problems"]),
            *(f"note: {text}" for text in point["notes"]),
        ]
        rows.append([point["title"], state("settled" if point["settled"] else "open"),
                     el("div", [el("div", line) for line in lines], class_="wrap")])  # fmt: skip
    return el("div", table(["point", "state", "promise"], rows, caption="contract", stacks=True),
              el("small", f"contract sha256 {shown['sha256'][:16]}; rehearsal: {shown['rehearsal']}"))  # fmt: skip


def candidates(rows: list[Data], log: list[Data], *, study: Any = None) -> Html:
    """Return every candidate with its effect and decision; negative results are included.

    With a study, an effect links to its line in the ledger, and a score to the files of its episodes.
    """
    by_name = {row["candidate"]: row for row in log}
    lines = decision_lines(study)
    body: list[list[Part]] = []
    for row in rows:
        entry = by_name.get(row["candidate"], {})
        effect: Part = NOTHING if row["effect"] is None else signed(row["effect"])
        if row["candidate"] in lines:
            effect = link(effect, _file(study, "ledger.jsonl") + f"#L{lines[row['candidate']]}")
        evidence: Part = None
        if study is not None and entry.get("files"):
            items = [el("li", link(path, _file(study, path))) for path in entry["files"]]
            evidence = el("details", el("summary", f"{len(items)} files of evidence"), el("ul", items))
        ends = interval(entry["interval"], signed) if entry.get("interval") else NOTHING
        body.append([row["candidate"], row["kind"], state(row["standing"] or row["state"]), effect, ends,
                     figure(row["p"]),
                     row["against"] or NOTHING, entry.get("seeds", NOTHING), figure(entry.get("score")),
                     el("div", row["hypothesis"], el("br"), el("small", row["says"]), evidence,
                        class_="wrap")])  # fmt: skip
    if not body:
        return el("p", "No candidates yet.", class_="muted")
    header = ["candidate", "kind", "standing", "effect", "interval", "p", "against", "seeds", "score",
              "hypothesis and decision"]  # fmt: skip
    return table(header, body, right=(3, 4, 5, 7, 8), caption="candidates", stacks=True)


def decision_lines(study: Any) -> dict[str, int]:
    """Return the line of each candidate's last decision in the ledger."""
    if study is None:
        return {}
    events = enumerate(study.ledger.events(), start=1)
    return {str(event.get("candidate")): number for number, event in events if event.kind == "decided"}


def _file(study: Any, path: str) -> str:
    return url("study", study.task_name, study.name, "file", path=path)


def tree(study: Any, rows: list[Data]) -> Html:
    """Return the candidates as a tree: each below the one that it builds on."""
    below: dict[str, list[Data]] = {}
    names = {row["candidate"] for row in rows}
    for row in rows:
        parent = str(study.candidate(row["candidate"]).builds_on or "")
        if parent not in names or parent == row["candidate"]:
            parent = ""
        below.setdefault(parent, []).append(row)
    if not rows:
        return el("p", "No candidates yet.", class_="muted")
    root = el("li", el("strong", "baseline"), " the unchanged code", _branch(below, "", 0))
    return el("ul", root, class_="tree")


def _branch(below: dict[str, list[Data]], parent: str, depth: int) -> Html | None:
    if parent not in below or depth > MOST_DEPTH:
        return None
    items = []
    for row in below[parent]:
        effect = "" if row["effect"] is None else f" {signed(row['effect'])} "
        label = [el("strong", row["candidate"]), " ", state(row["standing"] or row["state"]), effect]
        said = el("span", row["hypothesis"], class_="said")
        items.append(el("li", label, said, _branch(below, row["candidate"], depth + 1)))
    return el("ul", items)


def _approvals(study: Any, events: Any) -> Html:
    """Return who approved the contract and its changes, each with its line in the ledger."""
    rows: list[list[Part]] = []
    for number, event in enumerate(events, start=1):
        if event.kind in ("approved", "amended"):
            line = link(str(number), _file(study, "ledger.jsonl") + f"#L{number}")
            rows.append([line, when(event.time), event.kind, str(event.get("by") or NOTHING)])
    if not rows:
        return el("p", "The contract needs an approval: ", el("code", f"rlx study approve {study.name}"))
    return table(["line", "time", "event", "by"], rows, right=(0,), caption="approvals")


def _jobs(jobs: list[Data]) -> Html:
    if not jobs:
        return el("p", "No open jobs.", class_="muted")
    rows = [[job["job"], job["candidate"], job["phase"], job["state"], run_link(job["run"])] for job in jobs]
    return table(["job", "candidate", "phase", "state", "run"], rows, caption="jobs", stacks=True)


def ledger(study: Any, home: str) -> Html:
    """Return the timeline: one row per event, with a link to its line in the ledger if there is a server."""
    rows: list[list[Part]] = []
    for number, event in enumerate(study.ledger.events(), start=1):
        line: Part = str(number)
        if home:
            line = link(str(number), f"{home}/file?path=ledger.jsonl#L{number}")
        shown = [f"{key} {_short(value)}" for key, value in event.fields.items() if value not in (None, "", [], {})]
        rows.append([line, when(event.time), event.kind,
                     el("div", "; ".join(shown[:_SHOWN_FIELDS]), class_="wrap")])  # fmt: skip
    rows = rows[::-1][:MOST_EVENTS]
    newest = table(_LEDGER_COLUMNS, rows[:NEWEST], right=(0,), caption="ledger, newest first", stacks=True)
    if len(rows) <= NEWEST:
        return newest
    older = table(_LEDGER_COLUMNS, rows[NEWEST:], right=(0,), caption="older rows of the ledger", stacks=True)
    return el("div", newest, el("details", el("summary", f"{len(rows) - NEWEST} older rows"), older))


def _short(value: object) -> str:
    """Spell a value of the ledger in a few words; a hash by its beginning."""
    text = re.sub(r"\s+", " ", words(value))
    text = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1…", text)
    if len(text) > 90:
        return text[:89] + "…"
    return text
