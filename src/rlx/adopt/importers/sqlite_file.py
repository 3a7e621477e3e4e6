"""Open another tool's SQLite file for reading only: nothing is written, and its SQL functions are not trusted."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

MARK = b"SQLite format 3\0"


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database read-only; a database with a write-ahead log is read without it if the folder is read-only."""
    database = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        yield database
    finally:
        database.close()


def has_tables(file: Path, *names: str) -> bool:
    """Return whether a file is a database with these tables; views do not count."""
    try:
        with file.open("rb") as stream:
            if stream.read(len(MARK)) != MARK:
                return False
        with opened(file) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (OSError, sqlite3.Error):
        return False
    return set(names) <= tables


def rows(database: sqlite3.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query; none if the database is damaged there."""
    found: list[tuple[Any, ...]] = []
    try:
        for row in database.execute(query, values):
            found.append(row)
    except sqlite3.Error:
        return found
    return found
