"""Measure the ledger: read, check and replay 10,000 events, next to a plain loop of `json.loads` over the same file.

    python bench/ledger.py [--rows 10000] [--rounds 7]

The rows are those of a running study: a candidate is proposed, checked, launched, run, scored on three seeds and
decided. Checking reads every row, its hash and its place in the chain. Replaying derives the study's state. Both are in
CPU seconds, so that a busy machine does not count. An append also checks the whole chain, under the lock, before it
writes. It is in wall seconds; the disk's fsync takes most of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rig import measure

from rlx.study.ledger.ledger import Held, Ledger
from rlx.study.ledger.state import replay

LIMIT_SECONDS = 0.3
MEMORY = Path("/dev/shm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        path = Path(place) / "ledger.jsonl"
        with Ledger(path).held() as held:
            make(held, args.rows)
        rows = _measure(path, args.rounds)
        size = path.stat().st_size / 1e6
    with tempfile.TemporaryDirectory() as place:
        rows += _appends(Path(place) / "ledger.jsonl", args.rounds)
    header = ["ledger", "seconds", "× json.loads", "promise"]
    measure.show(f"{args.rows:,} events, {size:.1f} MB, best of {args.rounds} rounds", header, rows)


def make(held: Held, rows: int) -> None:
    """Fill a ledger with a study of many candidates, all rows legal."""
    held.append("created", contract="c" * 64)
    held.append("approved", contract="c" * 64, level="asserted", by="ada", human=False, expires=9e9, nonce="n")
    stories = (row for number in range(rows) for row in _candidate(f"c{number:03d}"))
    for _ in range(rows - 2):
        kind, fields = next(stories)
        held.append(kind, **fields)


def _candidate(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    job, seeds, why = f"{name}-trial", [0, 1, 2], "a smaller step keeps the ratio inside the clip range for longer"
    yield "proposed", {"candidate": name, "kind": "hyperparameter", "sha256": "d" * 64}
    yield "moved", {"candidate": name, "before": "draft", "after": "validated", "why": why, "plan": "e" * 64}
    yield "intent", {"job": job, "candidate": name, "phase": "trial", "seeds": seeds, "plan": "e" * 64,
                     "reserve": {"seeds": 3, "seconds": 900.0}}  # fmt: skip
    yield "started", {"job": job, "run": f"{name}_001", "process": {"pid": 4711, "started": 123456, "boot": "b" * 36}}
    yield "ended", {"job": job, "outcome": "completed", "seeds": dict.fromkeys(map(str, seeds), "completed"),
                    "spent": {"seeds": 3, "seconds": 812.25}, "says": ""}  # fmt: skip
    yield "weights", {"candidate": name, "run": f"{name}_001", "checkpoints": {str(seed): "f" * 64 for seed in seeds}}
    for seed in seeds:
        yield "evaluated", {"candidate": name, "phase": "trial", "seed": seed, "level": "sealed", "score": 401.5,
                            "file": f"evidence/{name}-trial-{seed}.json", "sha256": "a" * 64}  # fmt: skip
    yield "decided", {"candidate": name, "decision": "rejected", "p": 0.41, "effect": -3.2, "interval": [-20.1, 9.7],
                      "n": 3, "provisional": True, "study": "continue", "says": why}  # fmt: skip


def _measure(path: Path, rounds: int) -> list[list[str]]:
    events = Ledger(path).events()
    state = replay(events)
    assert not state.violations, state.violations[0]
    plain = best(lambda: [json.loads(line) for line in path.read_bytes().splitlines()], rounds)
    took = {
        "json.loads of every row, nothing else": plain,
        "json.loads of every row and its body": best(lambda: _twice(path), rounds),
        "read and prove the chain": best(lambda: Ledger(path).events(), rounds),
        "replay the rows": best(lambda: replay(events), rounds),
    }
    whole = best(lambda: replay(Ledger(path).events()), rounds)
    rows = [[name, f"{seconds:.3f}", f"{seconds / plain:.1f}", ""] for name, seconds in took.items()]
    promise = f"≤ {LIMIT_SECONDS:g} s: {'kept' if whole <= LIMIT_SECONDS else 'BROKEN'}"
    return [*rows, ["read, prove and replay", f"{whole:.3f}", f"{whole / plain:.1f}", promise]]


def _twice(path: Path) -> list[Any]:
    return [json.loads(json.loads(line)["body"]) for line in path.read_bytes().splitlines()]


def _appends(path: Path, rounds: int) -> list[list[str]]:
    """Return the cost of one durable append on this disk, in a short ledger."""
    log = Ledger(path)
    log.append("created", contract="c" * 64)
    took = best(lambda: log.append("refused"), rounds, clock=time.perf_counter)
    return [["append one event durably, short ledger", f"{took:.4f}", "", ""]]


def best(act: Callable[[], object], rounds: int, *, clock: Callable[[], float] = time.process_time) -> float:
    """Return the best time of several rounds, in this process."""
    times = []
    for _ in range(rounds):
        start = clock()
        act()
        times.append(clock() - start)
    return min(times)


if __name__ == "__main__":
    main()
