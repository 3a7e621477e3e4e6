"""A fast list of all runs: a SQLite cache over the run folders that can be deleted at any time.

A row is valid as long as its run folder's modification time is unchanged. Creating, labelling, adding seeds,
evaluating, and the start or end of a trainer or supervisor all change that time, and rsync preserves it. Runs that may
change on their own (running, queued, lost on another machine, broken) are read every time and never stored. The
database uses no write-ahead log, so it works on network disks. If it cannot be written, the same rows are held in
memory.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rlx.errors import UsageError, hint_for
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.runs.index_rows import IndexRow, Stamp, Watch
    from rlx.runs.run import Run

T = TypeVar("T")
VERSION = 5
STATES = ("prepared", "queued", "running", "completed", "failed", "interrupted", "lost", "broken")
RACY_NANOSECONDS = 2_000_000_000
BUSY_SECONDS = 2.0
SHORTEST_PAUSE = 1.0
PAUSE_FACTOR = 20
SLOW_UPDATE = 0.1
SORT_KEYS = {
    "created": "created", "name": "name", "status": "status", "env": "env", "algo": "algo", "seeds": "seeds",
    "steps": "steps", "return": "score", "best": "best", "duration": "seconds",
}  # fmt: skip
DESCENDING = ("created", "return", "best", "steps", "seeds", "duration")
_COLUMNS = (
    "name TEXT PRIMARY KEY, mtime INTEGER, inode INTEGER, is_run INTEGER, status TEXT, env TEXT, algo TEXT, tags TEXT,"
    " created REAL, seeds INTEGER, steps INTEGER, metric TEXT, score REAL, best REAL, seconds REAL, document TEXT"
)
_SCHEMA = f"""
CREATE TABLE run ({_COLUMNS}) WITHOUT ROWID;
CREATE INDEX run_created ON run (created);
CREATE INDEX run_score ON run (metric, score DESC, created DESC, name DESC);
CREATE INDEX run_is_run ON run (is_run);
PRAGMA user_version = {VERSION};
"""
_TEMPORARY = f"""
PRAGMA temp_store = MEMORY;
PRAGMA synchronous = NORMAL;
CREATE TEMP TABLE moving ({_COLUMNS});
"""
# Another process may store a run between our update and our query. The row that we read ourselves counts.
_SOURCES = ("main.run WHERE name NOT IN (SELECT name FROM moving)", "moving WHERE true")
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

    `env` and `name` match a part, and `name` also a pattern such as `cartpole_*`. The other filters must be
    equal.
    """
    from rlx.runs.run import Run

    root = project.root()
    page = summaries(root, env=env, algo=algo, tag=tag, status=status, name=name)
    return [Run(project.runs_folder(root) / row["name"]) for row in page.rows if row["status"] != "broken"]


class Page:
    """Some rows of a list, and the total number of rows."""

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
    """Return the matching summaries (see `runs.summary`): newest, highest and longest first, names from A to Z.

    `watch(done, total)` is called with the number of folders that were read so far.
    """
    query = _query(env=env, algo=algo, tag=tag, status=status, name=name, sort=sort, reverse=reverse)
    return _consult(root, lambda connection: _page(connection, query, limit, offset), watch)


class LiveIndex:
    """An index that stays open for a server: pages come from the last update.

    An update runs when a page is asked for, at most every `SHORTEST_PAUSE` seconds. If updates are slow, because there
    are very many runs, they run in a thread meanwhile, and the pause is many times their duration.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._updating = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._totals: dict[tuple[str, ...], int] = {}  # of the filters that were asked for since the last update
        self._updated = 0.0
        self._seconds = 0.0

    def page(self, *, limit: int | None = None, offset: int = 0, **chosen: Any) -> Page:
        """Return a page of `summaries`, from an index that is at most a few seconds old."""
        query = _query(**chosen)
        pause = max(SHORTEST_PAUSE, PAUSE_FACTOR * self._seconds)
        if self._connection is None or time.monotonic() - self._updated > pause:
            if self._connection is None or self._seconds < SLOW_UPDATE:
                self._update()
            else:
                threading.Thread(target=self._update, daemon=True, name="index").start()
        key = (query[0], *query[1])
        with self._lock:
            assert self._connection is not None
            if key not in self._totals:
                self._totals[key] = _total(self._connection, query)
            return Page(_documents(self._connection, query, limit, offset), self._totals[key])

    def _update(self) -> None:
        is_first = self._connection is None
        if not self._updating.acquire(blocking=is_first):
            return  # another thread updates it
        try:
            if is_first and self._connection is not None:
                return
            started = time.monotonic()
            new = _consult(self.root, lambda connection: connection, None, stays_open=True)
            with self._lock:
                old = self._connection
                self._connection = new
                self._totals = {}
            if old is not None:
                old.close()
            self._updated = time.monotonic()
            self._seconds = self._updated - started
        finally:
            self._updating.release()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


Query = tuple[str, list[str], str]


def _query(*, sort: str = "created", reverse: bool = False, **filters: str | None) -> Query:
    """Return WHERE clause, its values, and ORDER BY clause."""
    every = {key: filters.get(key) for key in ("env", "algo", "tag", "status", "name")}
    where, values = _conditions(**every)
    return where, values, _order(sort, reverse=reverse)


def _page(connection: sqlite3.Connection, query: Query, limit: int | None, offset: int) -> Page:
    return Page(_documents(connection, query, limit, offset), _total(connection, query))


def _total(connection: sqlite3.Connection, query: Query) -> int:
    where, values, _ = query
    total = 0
    for source in _SOURCES:
        (count,) = connection.execute(f"SELECT count(*) FROM {source} AND {where}", values).fetchone()  # noqa: S608
        total += int(count)
    return total


def _documents(connection: sqlite3.Connection, query: Query, limit: int | None, offset: int) -> list[dict[str, Any]]:
    """Return the rows of a page. Each table is cut before they are joined, so that the index on its order is used."""
    where, values, order = query
    most = -1  # SQLite's word for no limit
    if limit is not None:
        most = limit + offset
    parts = [f"SELECT * FROM (SELECT * FROM {source} AND {where} ORDER BY {order} LIMIT ?)"  # noqa: S608
             for source in _SOURCES]  # fmt: skip
    rows = connection.execute(
        f"SELECT document FROM ({' UNION ALL '.join(parts)}) ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608
        (*values, most, *values, most, -1 if limit is None else limit, offset),
    )
    found: list[dict[str, Any]] = json.loads(f"[{','.join(document for (document,) in rows)}]")
    return found


def _conditions(
    *, env: str | None, algo: str | None, tag: str | None, status: str | None, name: str | None
) -> tuple[str, list[str]]:
    """Return a WHERE clause of fixed text and the values for its placeholders."""
    if status is not None and status not in STATES:
        raise UsageError(f"unknown status `{status}`", hint=hint_for(status, STATES, otherwise=", ".join(STATES)))
    name_clause = "instr(name, ?)"
    if name is not None and any(sign in name for sign in "*?["):
        name_clause = "name GLOB ?"
    known = [
        ("instr(lower(env), ?)", env and env.lower()),
        ("algo = ?", algo and algo.lower().replace("-", "_")),
        ("instr(tags, ?)", tag and f"\n{tag}\n"),
        ("status = ?", status),
        (name_clause, name),
    ]
    chosen = [(clause, value) for clause, value in known if value]
    return " AND ".join(["is_run", *(clause for clause, _ in chosen)]), [value for _, value in chosen]


def _order(sort: str, *, reverse: bool) -> str:
    if sort not in SORT_KEYS:
        hint = hint_for(sort, list(SORT_KEYS), otherwise=", ".join(SORT_KEYS))
        raise UsageError(f"cannot sort by `{sort}`", hint=hint)
    direction = ("ASC", "DESC")[(sort in DESCENDING) != reverse]
    if sort in ("return", "best"):  # a success rate has no place among returns
        return f"metric, {SORT_KEYS[sort]} {direction} NULLS LAST, created DESC, name DESC"
    return f"{SORT_KEYS[sort]} {direction} NULLS LAST, created DESC, name DESC"


def _consult(root: Path, use: Callable[[sqlite3.Connection], T], watch: Watch | None, *, stays_open: bool = False) -> T:
    """Update the index and use it: first the file, then the file made again if it is damaged, then memory."""
    runs = project.runs_folder(root.absolute())
    path = root.absolute() / ".rlx" / "index.db"
    folders = _run_folders(runs)

    def attempt(connection: sqlite3.Connection) -> T:
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            _synchronize(connection, runs, folders, watch)
            result = use(connection)
            if stays_open:
                stack.pop_all()
        return result

    for connect in (_open, _open, _open_copy):
        if not folders:
            break
        try:
            return attempt(connect(path))
        except OSError:
            continue
        except sqlite3.Error as error:
            if connect is _open and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _UNAVAILABLE:
                _discard(path)
    return attempt(_open_empty())


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        # The journal goes first: once the file is gone, a journal of that name belongs to another process's new file.
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(exist_ok=True)
    _refuse_special(path)
    return _prepared(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False))


def _refuse_special(path: Path) -> None:
    """Raise OSError if SQLite would open a pipe or a device in the place of the index or its journal."""
    for file in (path, path.with_name(f"{path.name}-journal"), path.with_name(f"{path.name}-wal")):
        if os.path.lexists(file) and not file.is_file():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(file))


def _open_copy(path: Path) -> sqlite3.Connection:
    """Copy a file that can be read but not written into memory."""
    _refuse_special(path)
    connection = _open_empty()
    try:
        connection.execute("ATTACH ? AS stored", (path.as_uri() + "?mode=ro",))  # backup() would wait forever
        if connection.execute("PRAGMA stored.user_version").fetchone() == (VERSION,):
            connection.execute("INSERT INTO main.run SELECT * FROM stored.run")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_empty() -> sqlite3.Connection:
    return _prepared(
        sqlite3.connect("file::memory:", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    )


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Create the tables of this version, and a temporary one for runs that may still change."""
    try:
        if connection.execute("PRAGMA user_version").fetchone() != (VERSION,):
            connection.executescript(f"BEGIN IMMEDIATE; DROP TABLE IF EXISTS run; {_SCHEMA} COMMIT;")
        connection.executescript(_TEMPORARY)
    except BaseException:
        connection.close()
        raise
    return connection


def _run_folders(runs: Path) -> dict[str, Stamp]:
    """Return modification time and inode of every folder in `runs/`: one scandir, one stat each."""
    stamps = {}
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
                stamps[entry.name] = (status.st_mtime_ns, status.st_ino)
    return stamps


def _synchronize(connection: sqlite3.Connection, runs: Path, folders: dict[str, Stamp], watch: Watch | None) -> None:
    """Read the folders whose stored row is out of date; write only rows of runs that are settled or gone."""
    stored = {name: (mtime, inode) for name, mtime, inode in connection.execute("SELECT name, mtime, inode FROM run")}
    # The clock is too coarse to show a change right after a newer stamp, so such rows are not stored.
    trusted_before = time.time_ns() - RACY_NANOSECONDS
    # A row that is newer than our list of folders stays: another process has just stored it.
    outdated = [(name,) for name in stored if name not in folders or stored[name][0] < folders[name][0]]
    settled: list[IndexRow] = []
    moving: list[IndexRow] = []
    unknown = {name: stamp for name, stamp in folders.items() if stored.get(name) != stamp}
    if unknown:
        from rlx.runs.index_rows import read_rows  # a list without changes needs none of its imports

        for row, is_settled in read_rows(runs, unknown, watch=watch):
            if is_settled and row[1] < trusted_before:
                settled.append(row)
            else:
                moving.append(row)
    if outdated or settled:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM run WHERE name = ?", outdated)
        _insert(connection, "main.run", settled)
        connection.execute("COMMIT")
    _insert(connection, "moving", moving)


def _insert(connection: sqlite3.Connection, table: str, rows: list[IndexRow]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608
