"""The list of all runs, fast: a disposable SQLite cache over the run folders, never the truth.

A run folder's modification time tells whether its row still holds: creating, labelling, adding seeds, evaluating and
a trainer's or supervisor's coming and going all change it, and rsync carries it over. What may change by itself
(running, lost on another machine, broken) is read afresh every time and never stored. There is no write-ahead log, so
the file works on network disks; where it cannot be written at all, the same rows are held in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rlx.errors import UsageError, did_you_mean
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.runs.run import Run

T = TypeVar("T")
Row = tuple[Any, ...]
Watch = Callable[[int, int], None]
VERSION = 3
STATES = ("prepared", "running", "completed", "failed", "interrupted", "lost", "broken")
RACY_NANOSECONDS = 2_000_000_000
BUSY_SECONDS = 2.0
SORT_KEYS = {
    "created": "created", "name": "name", "status": "status", "env": "env", "algo": "algo", "seeds": "seeds",
    "steps": "steps", "return": "score", "best": "best", "duration": "seconds",
}  # fmt: skip
DESCENDING = ("created", "return", "best", "steps", "seeds", "duration")
_COLUMNS = (
    "name TEXT PRIMARY KEY, mtime INTEGER, inode INTEGER, is_run INTEGER, status TEXT, env TEXT, algo TEXT, tags TEXT,"
    " created REAL, seeds INTEGER, steps INTEGER, score REAL, best REAL, seconds REAL, document TEXT"
)
_SCHEMA = f"""
CREATE TABLE run ({_COLUMNS}) WITHOUT ROWID;
CREATE INDEX run_created ON run (created);
CREATE INDEX run_score ON run (score);
PRAGMA user_version = {VERSION};
"""
_TEMPORARY = f"""
PRAGMA temp_store = MEMORY;
PRAGMA synchronous = NORMAL;
CREATE TEMP TABLE moving ({_COLUMNS});
CREATE TEMP VIEW every_run AS SELECT * FROM main.run UNION ALL SELECT * FROM moving;
"""  # noqa: S608
_UNAVAILABLE = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM,
)  # fmt: skip


def find(
    *,
    env: str | None = None,
    algo: str | None = None,
    tag: str | None = None,
    status: str | None = None,
    name: str | None = None,
) -> list[Run]:
    """Return the project's readable runs that match, newest first.

    `env` and `name` match a part, `name` also a pattern such as `cartpole_*`; `algo`, `tag` and `status` match whole.
    """
    from rlx.runs.run import Run

    root = project.root()
    page = summaries(root, env=env, algo=algo, tag=tag, status=status, name=name)
    return [Run(project.runs_folder(root) / row["name"]) for row in page.rows if row["status"] != "broken"]


class Page:
    """Some rows of a list, and how many there are altogether."""

    def __init__(self, rows: list[dict[str, Any]], total: int) -> None:
        self.rows = rows
        self.total = total


def summaries(
    root: Path,
    *,
    env: str | None = None,
    algo: str | None = None,
    tag: str | None = None,
    status: str | None = None,
    name: str | None = None,
    sort: str = "created",
    reverse: bool = False,
    limit: int | None = None,
    offset: int = 0,
    watch: Watch | None = None,
) -> Page:
    """Return the summaries (see `runs.summary`) that match: newest, highest, longest first; names from A to Z.

    `watch(done, total)` is told how many of the folders that have to be read have been.
    """
    where, values = _conditions(env=env, algo=algo, tag=tag, status=status, name=name)
    order = _order(sort, reverse=reverse)

    def use(connection: sqlite3.Connection) -> Page:
        (total,) = connection.execute(f"SELECT count(*) FROM every_run WHERE {where}", values).fetchone()  # noqa: S608
        rows = connection.execute(
            f"SELECT document FROM every_run WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608
            (*values, -1 if limit is None else limit, offset),
        )
        return Page(json.loads(f"[{','.join(document for (document,) in rows)}]"), total)

    return _consult(root, use, watch)


def _conditions(
    *, env: str | None, algo: str | None, tag: str | None, status: str | None, name: str | None
) -> tuple[str, list[str]]:
    """Return a WHERE clause of fixed text and the values for its placeholders."""
    if status is not None and status not in STATES:
        near = did_you_mean(status, STATES)
        raise UsageError(f"unknown status `{status}`", hint=f"did you mean `{near}`?" if near else ", ".join(STATES))
    is_pattern = name is not None and any(sign in name for sign in "*?[")
    known = [
        ("instr(lower(env), ?)", env and env.lower()),
        ("algo = ?", algo and algo.lower().replace("-", "_")),
        ("instr(tags, ?)", tag and f"\n{tag}\n"),
        ("status = ?", status),
        ("name GLOB ?" if is_pattern else "instr(name, ?)", name),
    ]
    chosen = [(clause, value) for clause, value in known if value]
    return " AND ".join(["is_run", *(clause for clause, _ in chosen)]), [value for _, value in chosen]


def _order(sort: str, *, reverse: bool) -> str:
    if sort not in SORT_KEYS:
        near = did_you_mean(sort, list(SORT_KEYS))
        raise UsageError(f"cannot sort by `{sort}`", hint=f"did you mean `{near}`?" if near else ", ".join(SORT_KEYS))
    direction = "DESC" if (sort in DESCENDING) != reverse else "ASC"
    return f"{SORT_KEYS[sort]} {direction} NULLS LAST, created DESC, name DESC"


def _consult(root: Path, use: Callable[[sqlite3.Connection], T], watch: Watch | None) -> T:
    """Bring the index up to date and use it: the file, the file made anew where it is damaged, else memory."""
    runs = project.runs_folder(root.absolute())
    path = root.absolute() / ".rlx" / "index.db"
    folders = _run_folders(runs)
    for connect in (_open, _open, _open_copy) if folders else ():
        try:
            with contextlib.closing(connect(path)) as connection:
                _synchronize(connection, runs, folders, watch)
                return use(connection)
        except OSError:
            continue
        except sqlite3.Error as error:
            if connect is _open and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _UNAVAILABLE:
                _discard(path)
    with contextlib.closing(_open_empty()) as connection:
        _synchronize(connection, runs, folders, watch)
        return use(connection)


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        # the journal first: once the file is gone, a journal would be that of somebody's new file
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(exist_ok=True)
    return _prepared(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None))


def _open_copy(path: Path) -> sqlite3.Connection:
    """Hold what the file says in memory: it can be read but not written."""
    connection = _open_empty()
    try:
        connection.execute("ATTACH ? AS stored", (path.as_uri() + "?mode=ro",))  # backup() would wait for ever
        if connection.execute("PRAGMA stored.user_version").fetchone() == (VERSION,):
            connection.execute("INSERT INTO main.run SELECT * FROM stored.run")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_empty() -> sqlite3.Connection:
    return _prepared(sqlite3.connect("file::memory:", uri=True, timeout=BUSY_SECONDS, isolation_level=None))


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Make the tables of this version; a temporary one beside them holds what is still moving."""
    try:
        if connection.execute("PRAGMA user_version").fetchone() != (VERSION,):
            connection.executescript(f"BEGIN IMMEDIATE; DROP TABLE IF EXISTS run; {_SCHEMA} COMMIT;")
        connection.executescript(_TEMPORARY)
    except BaseException:
        connection.close()
        raise
    return connection


def _run_folders(runs: Path) -> dict[str, tuple[int, int]]:
    """Return modification time and inode of every folder in `runs/`: one scandir, one stat each."""
    found = {}
    try:
        entries = os.scandir(runs)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    with entries:
        for entry in entries:
            if entry.name[0] != "." and entry.is_dir():
                try:
                    status = entry.stat()
                except OSError:  # deleted meanwhile
                    continue
                found[entry.name] = (status.st_mtime_ns, status.st_ino)
    return found


def _synchronize(
    connection: sqlite3.Connection, runs: Path, folders: dict[str, tuple[int, int]], watch: Watch | None
) -> None:
    """Read the folders whose stored row does not hold any more; write only where something has settled or gone."""
    stored = {name: (mtime, inode) for name, mtime, inode in connection.execute("SELECT name, mtime, inode FROM run")}
    trusted_before = time.time_ns() - RACY_NANOSECONDS  # a later change within the clock's grain would go unnoticed
    stale = [(name,) for name in stored if folders.get(name) != stored[name]]
    settled: list[Row] = []
    moving: list[Row] = []
    unknown = [(name, stamp) for name, stamp in folders.items() if stored.get(name) != stamp]
    for number, (name, stamp) in enumerate(unknown):
        if watch:
            watch(number, len(unknown))
        row, is_settled = _row(runs / name, stamp)
        (settled if is_settled and stamp[0] < trusted_before else moving).append(row)
    if stale or settled:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM run WHERE name = ?", stale)
        _insert(connection, "main.run", settled)
        connection.execute("COMMIT")
    _insert(connection, "moving", moving)


def _insert(connection: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608


def _row(path: Path, stamp: tuple[int, int]) -> tuple[Row, bool]:
    from rlx import files
    from rlx.runs.summary import is_run_folder, summarize

    summary = summarize(path)
    is_settled = bool(summary.pop("is_settled"))
    score = summary["return"] or {}
    row = (
        summary["name"], *stamp, is_run_folder(path), summary["status"], summary["env"], summary["algo"],
        "\n" + "".join(f"{tag}\n" for tag in summary["tags"]), summary["created"], summary["seeds"], summary["steps"],
        score.get("mean"), score.get("best"), summary["seconds"], files.encode(summary).decode(),
    )  # fmt: skip
    return row, is_settled
