"""The ledger: an append-only, hash-chained file; replaying it gives the state of a study.

A row is `{"prev", "body", "hash"}`. The body is the event as JSON text, and the hash covers the previous hash and the
body. An acknowledged row is on disk. A row whose fsync failed may be there too, so a caller that may retry gives a
`key`: the same kind and key never appear twice. A ledger that was opened with a law refuses rows that break the law
(`state.lawful` opens a study's ledger).

Not covered: someone who can write the file can also rewrite it with a new chain, or remove rows at its end. Only a
head that is stored elsewhere shows that (`audit`); a `Ledger` object remembers the last head it saw. Power loss on
disks that lie about fsync, and locks on NFS, are not covered either.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import FileDamaged, Refused

GENESIS = "0" * 64
"""What the first row follows."""
_OWN = frozenset({"id", "time", "event"})


@dataclass(frozen=True, slots=True)
class Event:
    """One row's event; `event["candidate"]` is a field. Order is the file's, never the clock's."""

    id: str
    time: float
    kind: str
    fields: Mapping[str, Any]
    hash: str

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` if the event does not have it."""
        return self.fields.get(name, default)


Law = Callable[[Sequence[Event], Event], str | None]
"""Says what stands against an event that would follow others; None: nothing."""


@dataclass(frozen=True)
class Anchor:
    """A head that was kept elsewhere: the hash of the ledger's last row at the time, and how many rows it had."""

    head: str
    rows: int | None = None


@dataclass(frozen=True)
class Audit:
    """What an audit found: `rows` hold up to `head`; `bad_row` is the first that does not (None: the chain stands)."""

    rows: int
    head: str
    bad_row: int | None = None
    says: str = ""
    torn_bytes: int = 0

    @property
    def is_sound(self) -> bool:
        """Say whether every row holds and every anchor is in the chain."""
        return not self.says


class Held:
    """A ledger under an exclusive lock: read `events`, judge, `append`."""

    def __init__(
        self, path: Path, descriptor: int, *, law: Law | None = None, chain: _Chain | None = None
    ) -> None:  # fmt: skip
        self._path = path
        self._descriptor = descriptor
        self._law = law
        self._chain = chain or _Chain(path)
        self._catch_up()

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far, also those appended through this object."""
        return tuple(self._chain.events)

    @property
    def head(self) -> str:
        """The hash of the last row."""
        return self._chain.head

    def append(self, kind: str, /, *, key: str | None = None, **fields: Any) -> Event:
        """Append an event durably; if its kind and key already exist, return that event instead."""
        self._catch_up()
        if key is None:
            id_ = os.urandom(8).hex()
        else:
            id_ = f"{kind}:{key}"
        if (known := self._chain.ids.get(id_)) is not None:
            os.fsync(self._descriptor)  # whoever wrote it may have been told that it failed
            return self._chain.events[known]
        row = _row(self._chain.head, _body(id_, kind, fields))
        says = None
        if self._law:
            says = self._law(self._chain.events, _event(row, self._chain.head))
        if says is not None:
            raise Refused(f"`{kind}` cannot be written into the ledger: {says}", hint="see what can be done: rlx next")
        files.append_durable(self._descriptor, row, size=self._chain.size)
        self._chain.extend(row + b"\n")
        return self._chain.events[-1]

    def _catch_up(self) -> None:
        """Read what stands in the file and is not known yet: everything at first, then a row whose fsync failed."""
        files.trim_torn_tail(self._descriptor)
        self._chain.extend(files.complete_lines(self._path, offset=self._chain.size))


class Ledger:
    """A study's ledger file; every read proves the chain, every append is locked, lawful and durable.

    A ledger that `keeps_rows` proves at an append only the rows that are new to this object, if its last row is where
    it was. A log with many thousand rows needs that. `events` and `audit` prove all rows, always.
    """

    def __init__(self, path: Path, *, law: Law | None = None, keeps_rows: bool = False) -> None:
        self.path = path
        self._law = law
        self._seen = GENESIS
        self._keeps_rows = keeps_rows
        self._kept: _Chain | None = None

    def events(self) -> tuple[Event, ...]:
        """Return every event; an unfinished last line was never acknowledged and is ignored."""
        chain = _Chain(self.path)
        chain.extend(files.complete_lines(self.path))
        self._remember(chain.events)
        return tuple(chain.events)

    def head(self) -> str:
        """Return the hash of the last row."""
        self.events()
        return self._seen

    def append(self, kind: str, /, *, key: str | None = None, **fields: Any) -> Event:
        """Append one event durably; if its kind and key already exist, return that event instead."""
        if self._keeps_rows:
            return self._append_to_kept(kind, key=key, **fields)
        with self.held() as held:
            return held.append(kind, key=key, **fields)

    def _append_to_kept(self, kind: str, /, *, key: str | None, **fields: Any) -> Event:
        with files.locked_append(self.path) as (descriptor, _):
            chain = self._kept or _Chain(self.path)
            if not chain.ends_in(descriptor):
                raise _damaged(self.path, len(chain.events), "rows that were there a moment ago are gone or rewritten")
            self._kept = None  # if this fails, the next append proves every row
            event = Held(self.path, descriptor, law=self._law, chain=chain).append(kind, key=key, **fields)
            self._kept = chain
            self._seen = chain.head
        return event

    @contextlib.contextmanager
    def held(self) -> Iterator[Held]:
        """Lock the ledger: read, judge and append without another writer. Not re-entrant: use the `Held`."""
        with files.locked_append(self.path) as (descriptor, _):
            held = Held(self.path, descriptor, law=self._law)
            self._remember(held.events)
            yield held
            self._remember(held.events)

    def _remember(self, events: Iterable[Event]) -> None:
        """Keep the head; rows that were seen before and are gone now are damage, however sound the rest is."""
        hashes = [GENESIS, *(event.hash for event in events)]
        if self._seen not in hashes:
            raise _damaged(self.path, len(hashes), "rows that were there a moment ago are gone or rewritten")
        self._seen = hashes[-1]


def audit(path: Path, *, anchors: Iterable[Anchor] = ()) -> Audit:
    """Prove the chain and that every anchored head is in it; names the first row that does not hold."""
    chain = _Chain(path)
    says = ""
    lines = files.complete_lines(path)
    try:
        chain.extend(lines)
    except _BadRow as bad:
        says = bad.says
    bad_row = None
    if says:
        bad_row = len(chain.events) + 1
    for anchor in anchors:
        if not says and (missing := _missing(anchor, chain)):
            bad_row, says = missing
    torn = 0
    if path.exists():
        torn = path.stat().st_size - len(lines)
    return Audit(len(chain.events), chain.head, bad_row, says, torn)


def _missing(anchor: Anchor, chain: _Chain) -> tuple[int | None, str] | None:
    """Return how an anchored head is missing from the chain; the row is known if the anchor counts its rows."""
    hashes = [GENESIS, *(event.hash for event in chain.events)]
    if anchor.rows is None:
        if anchor.head in hashes:
            return None
        return (None, f"no row has the anchored hash {anchor.head}")
    if anchor.rows >= len(hashes):
        return len(hashes), f"{anchor.rows} rows were anchored and only {len(chain.events)} are there"
    if hashes[anchor.rows] != anchor.head:
        return anchor.rows, f"the row is not the one that was anchored as {anchor.head}"
    return None


class _BadRow(FileDamaged):
    """A row that breaks the chain."""

    def __init__(self, message: str, says: str) -> None:
        super().__init__(message, hint="restore the file from a copy; to see the change: rlx study audit")
        self.says = says


class _Chain:
    """The rows of a ledger file that hold so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self.ids: dict[str, int] = {}
        self.head = GENESIS
        self.size = 0
        self.last_line = b""

    def ends_in(self, descriptor: int) -> bool:
        """Say whether a file has the last of these rows at its place."""
        length = len(self.last_line)
        return os.pread(descriptor, length, self.size - length) == self.last_line

    def extend(self, lines: bytes) -> None:
        """Add complete lines; raises at the first that does not hold, with those before it added."""
        for line in lines.split(b"\n")[:-1]:
            try:
                event = _event(line, self.head)
                if event.id in self.ids:
                    raise ValueError(f"the event id {event.id} stands in an earlier row too")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                says = "the row is not what rlx writes"
                if type(error) is ValueError:
                    says = str(error)
                raise _damaged(self.path, len(self.events) + 1, says) from None
            self.ids[event.id] = len(self.events)
            self.events.append(event)
            self.head = event.hash
            self.size += len(line) + 1
            self.last_line = line + b"\n"


def _damaged(path: Path, row: int, says: str) -> _BadRow:
    return _BadRow(f"{path.parent.name}/{path.name}:{row}: {says}", says)


def _body(id_: str, kind: str, fields: Mapping[str, Any]) -> str:
    if taken := _OWN & fields.keys():
        raise TypeError(f"an event's fields cannot be named {', '.join(sorted(taken))}")
    return files.encode({"id": id_, "time": time.time(), "event": kind, **fields}).decode()


def _row(prev: str, body: str) -> bytes:
    return files.encode({"prev": prev, "body": body, "hash": _hash(prev, body)})


def _hash(prev: str, body: str) -> str:
    return files.sha256((prev + body).encode())


def _event(line: bytes, prev: str) -> Event:
    """Read a row that must follow the hash `prev`; a `ValueError` explains an invalid row."""
    row = files.decode(line)
    body = row["body"]
    hash_ = row["hash"]
    if row["prev"] != prev:
        raise ValueError("the row does not follow the one before it")
    if _hash(prev, body) != hash_:
        raise ValueError("the row's hash does not match its content")
    if files.encode({"prev": prev, "body": body, "hash": hash_}) != line:
        raise ValueError("the row is not written as rlx writes rows")
    fields = files.decode(body)
    if not (isinstance(fields["id"], str) and isinstance(fields["event"], str) and files.is_number(fields["time"])):
        raise TypeError
    return Event(fields.pop("id"), fields.pop("time"), fields.pop("event"), fields, hash_)
