"""One session of a lab's agent: a worktree of the head, the brief on stdin, a sandbox, a time limit, and one row.

`.rlx/labs/NAME/sessions/0007/` holds what happened: `session.json` when it began, `end.json` when it ended, the brief,
the logs and the change as a patch. A session without a row is finished by the next driver, whenever it was killed.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.command import rlx
from rlx.errors import FileDamaged, Refused, RlxError
from rlx.launch.agent_process import SessionEnd, SessionFiles, SessionLimits, run_session
from rlx.launch.git import worktree
from rlx.loop.lab.brief import brief
from rlx.loop.lab.lab_config import LabAgent
from rlx.loop.lab.lab_folder import CANDIDATE, SURFACE, Lab
from rlx.loop.lab.session.agent_command import AgentCommand
from rlx.loop.lab.session.session_record import NOTE, SessionOutcome, SessionRecord, read_usage
from rlx.loop.lab.session.usage_limit import UsageLimit, find_usage_limit
from rlx.loop.lab.staged_change import changed_files, stage_change
from rlx.loop.lab.try_attempt import LabIdea
from rlx.study.refusal import Refusal

SESSIONS = "sessions"
IDEA = f"{CANDIDATE}/idea.txt"
READ_BYTES = 4_000_000
"""How much of the end of a log is read."""
MOST_SAID = 400
MOST_IDEA = 4000
SCHEMA = 1
_FIELD = re.compile(r"(description|predicts|again)\s*:\s*(.*)", re.IGNORECASE)
_LESSON = re.compile(r"lesson\s+(c\d{3,})\s*:\s*(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class AgentSession:
    """One session by its number. Its folder tells how far it came."""

    lab: Lab
    number: int

    @property
    def folder(self) -> Path:
        return self.lab.folder / SESSIONS / f"{self.number:04d}"

    @property
    def tree(self) -> Path:
        return self.folder / "worktree"

    @property
    def scratch(self) -> Path:
        """The session's own home and temporary folder."""
        return self.folder / "scratch"

    @property
    def io(self) -> SessionFiles:
        return SessionFiles(self.folder / "brief.md", self.folder / "output.log", self.folder / "errors.log")

    @property
    def began(self) -> dict[str, Any]:
        """The facts at its start; empty if it did not come so far."""
        return _document(self.folder / "session.json")

    @property
    def ended(self) -> dict[str, Any]:
        return _document(self.folder / "end.json")

    @property
    def log(self) -> str:
        """The path of the output in the project."""
        return self.io.output.relative_to(self.lab.root).as_posix()


def new_session(lab: Lab, number: int, argv: tuple[str, ...], *, drive: str) -> AgentSession:
    """Make the folder, the worktree and the brief of a session of a drive."""
    session = AgentSession(lab, number)
    study = lab.study
    state = study.state()
    session.folder.mkdir(parents=True, exist_ok=True)
    files.write_json(
        session.folder / "session.json",
        {"schema": SCHEMA, "number": number, "began": time.time(), "argv": list(argv), "drive": drive,
         "study": study.name, "head": state.head},
    )  # fmt: skip
    contract = study.contract()
    assert contract.baseline is not None
    patch = None if state.head == "baseline" else study.patch(state.head)
    worktree.add(lab.root, session.tree, contract.baseline.commit, patch=patch)
    session.scratch.mkdir(exist_ok=True)
    session.io.brief.write_text(session_brief(lab), encoding="utf-8")
    return session


def session_brief(lab: Lab) -> str:
    """Return what an agent reads on stdin: the lab's brief, and how a session of the driver ends."""
    minutes = lab.config.agent.session_minutes
    return brief(
        lab,
        ending="## This session\n"
        f"- You have {minutes:g} minutes and this folder. Change {SURFACE[0]} or {SURFACE[1]}, one idea, then stop.\n"
        f"- Write your claim into {IDEA}: `description: what changes, and why it helps` and, on the next line,\n"
        "  `predicts: GAIN`. Add `again: WHY` only to repeat a settled idea, and `lesson c001: TEXT` if the result of\n"
        "  an earlier attempt taught you something.\n"
        "- Do not run `rlx lab try`: rlx tries your change after you stop. Nothing else can be written.",
    )


def run(session: AgentSession, command: AgentCommand, rules: LabAgent, *, seconds: float) -> None:
    """Run the agent once and write down how it ended. A program that cannot start is an end, too."""
    limits = SessionLimits(
        seconds=min(seconds, rules.session_minutes * 60),
        stall_seconds=rules.stall_minutes * 60,
        folder=session.folder,
        folder_bytes=int(rules.disk_mb * 2**20),
    )
    repository = replace(command, reads=(*command.reads, session.lab.root / ".git"))  # for `git diff` in the worktree
    sandboxed = repository.sandboxed(
        session.tree, session.scratch, session.tree / CANDIDATE, may_go_unenforced=may_go_unenforced(session.lab)
    )
    says = ""
    try:
        end = run_session(sandboxed, session.io, limits)
    except Refused as error:
        end = SessionEnd("exited", 125, 0.0)
        says = error.message
    how = end.how
    shutil.rmtree(session.scratch, ignore_errors=True)
    if how == "disk":
        clean(session)
    try:
        _write_end(session, end, how, says)
    except OSError:  # the disk is full: what the session stored makes room for its row
        clean(session)
        _write_end(session, end, "disk", "the disk was full")


def may_go_unenforced(lab: Lab) -> bool:
    """Say whether the lab's contract lets programs run on a kernel that cannot enforce a sandbox."""
    automation = lab.study.contract().automation
    return automation is not None and automation.sandbox == "if available"


def _write_end(session: AgentSession, end: SessionEnd, how: str, says: str) -> None:
    for log in (session.io.output, session.io.errors):
        if log.is_file() and log.stat().st_size > READ_BYTES:  # keep the end, which is what rlx reads
            files.write_atomic(log, _read(log).encode())
    document = {"schema": SCHEMA, "how": how, "code": end.code, "seconds": end.seconds, "says": says}
    files.write_json(session.folder / "end.json", {**document, "time": time.time()})


@dataclass(frozen=True)
class SessionResult:
    """A session that has ended: its record, and why there is nothing to try, if so."""

    record: SessionRecord
    says: str = ""

    @property
    def is_attempt(self) -> bool:
        return self.record.outcome == "attempt"

    def refusal(self) -> Refusal:
        """Return the session's row as a refusal."""
        return Refusal("SESSION", f"{self.record.outcome}: {self.says}", rlx("lab", "log"))


def result_of(session: AgentSession, *, now: float) -> SessionResult:
    """Judge a session by its folder. One without an end was interrupted with its driver."""
    facts = session.began
    began = float(facts.get("began", now))
    output = _read(session.io.output)
    errors = _read(session.io.errors)
    record = SessionRecord(
        session.number, "attempt", str(facts.get("drive", "")), began, max(0.0, now - began), read_usage(output),
        log=session.log,
    )  # fmt: skip
    ended = session.ended
    if not ended:
        return SessionResult(replace(record, outcome="interrupted"), "the driver ended during the session")
    record = replace(record, seconds=float(ended["seconds"]), exit_code=ended["code"])
    how: dict[str, tuple[SessionOutcome, str]] = {
        "timeout": ("timeout", f"the session was ended after {record.seconds:.0f} s"),
        "stalled": ("stalled", f"no output, no edit and no work for {session.lab.config.agent.stall_minutes:g} min"),
        "disk": ("disk", f"it stored more than {session.lab.config.agent.disk_mb:g} MB"),
    }
    if ended["how"] in how:
        outcome, says = how[ended["how"]]
        return SessionResult(replace(record, outcome=outcome), str(ended["says"]) or says)
    limit = find_usage_limit(f"{output}\n{errors}", now=float(ended["time"]))
    if limit is not None and (record.exit_code != 0 or not has_change(session)):
        return _limited(record, limit)
    if record.exit_code != 0:
        says = str(ended["says"]) or last_words(output, errors)
        return SessionResult(replace(record, outcome="crash"), f"the agent exited {record.exit_code}: {says}")
    return SessionResult(record)


def _limited(record: SessionRecord, limit: UsageLimit) -> SessionResult:
    return SessionResult(replace(record, outcome="usage limit", resets=limit.resets), limit.says)


def refused_by_study(error: RlxError) -> Refusal:
    """Return the row of a change that the study refused before it became a candidate."""
    return Refusal("SESSION", f"the study refused the change: {error.message}", rlx("lab", "log"))


def has_change(session: AgentSession) -> bool:
    """Say whether the worktree differs from the head."""
    try:
        return bool(changed_files(session.lab, session.tree))
    except RlxError:
        return True  # something is there that cannot be a change; the attempt says what


def last_words(output: str, errors: str) -> str:
    """Return the last line that an agent printed, of its errors if it has any."""
    for text in (errors, output):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1][:MOST_SAID]
    return "it printed nothing"


def take_idea(session: AgentSession, record: SessionRecord) -> LabIdea:
    """Return the agent's claim, and take its file out of the worktree: it is not part of the change."""
    path = session.tree / IDEA
    text = files.read_end(path, most=MOST_IDEA, within=session.tree).decode("utf-8", "replace")
    if path.is_file() or path.is_symlink():
        kept = session.folder / "idea.txt"
        kept.write_text(text, encoding="utf-8")
        path.unlink()
    elif (session.folder / "idea.txt").is_file():  # a driver that was killed took it out before
        text = (session.folder / "idea.txt").read_text(encoding="utf-8")
    values = _idea_fields(text)
    description = (values.get("description") or _described(session))[:MOST_SAID]
    return LabIdea(description, _number(values.get("predicts", "")), values.get("again", ""),
                note={NOTE: record.document()})  # fmt: skip


def _idea_fields(text: str) -> dict[str, str]:
    """Read `description: …`, `predicts: …` and `again: …`; lines without a field belong to the description."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        field = _FIELD.match(line.strip().lstrip("-*# "))
        if _LESSON.match(line.strip().lstrip("-*# ")):
            continue
        if field:
            values[field.group(1).lower()] = field.group(2).strip()
        elif line.strip():
            values["description"] = f"{values.get('description', '')} {line.strip()}".strip()
    return values


def lessons_of(session: AgentSession) -> list[tuple[str, str]]:
    """Return the lessons that the agent wrote into its idea file: candidate and text."""
    lines = _read(session.folder / "idea.txt").splitlines()
    found = [_LESSON.match(line.strip().lstrip("-*# ")) for line in lines]
    return [(match.group(1), match.group(2)) for match in found if match]


def _number(text: str) -> float | None:
    found = re.match(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text)
    return float(found.group()) if found else None


def _described(session: AgentSession) -> str:
    """Return a description for a change that the agent did not describe: the keys or files that differ."""
    try:
        change = stage_change(session.lab, session.tree)
    except RlxError as error:
        return f"(no description) {error.message}"[:MOST_SAID]
    keys = [f"{key}={value}" for key, value in change.keys.items()]
    names = keys or [one.path for one in change.changes]
    if not names:
        return "(no change)"
    return f"(no description) changes {', '.join(names)}"[:MOST_SAID]


def keep_patch(session: AgentSession) -> None:
    """Store the session's change as a patch, so that nothing is lost when the worktree goes."""
    if not session.tree.is_dir():
        return
    try:
        patch = worktree.patch_text(changed_files(session.lab, session.tree))
    except (RlxError, OSError):  # it is no change that a patch can hold
        return
    if patch:
        files.write_atomic(session.folder / "change.patch", patch)


def clean(session: AgentSession) -> None:
    """Remove the worktree and the scratch folder; logs, brief and patch stay."""
    worktree.remove(session.tree, root=session.lab.root)
    shutil.rmtree(session.scratch, ignore_errors=True)


def session_numbers(lab: Lab) -> list[int]:
    """Return the numbers of all sessions that have a folder."""
    folders = (lab.folder / SESSIONS).glob("[0-9]*")
    return sorted(int(folder.name) for folder in folders if folder.name.isdigit() and folder.is_dir())


def _document(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = files.read_json(path)
    except (FileNotFoundError, FileDamaged):
        return {}
    return document


def _read(path: Path) -> str:
    return files.read_end(path, most=READ_BYTES, within=path.parent).decode("utf-8", "replace")
