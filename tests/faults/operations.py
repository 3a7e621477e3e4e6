"""What the fault sweep does to files: run as a program, one operation a process, torch-free.

Every operation goes from state A to state B and then says so on stdout: what was acknowledged must be there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def acknowledge(word: str) -> None:
    with contextlib.suppress(OSError):  # the fault struck here: then it was not acknowledged
        os.write(1, word.encode() + b"\n")


def create(root: Path) -> None:
    from rlx.runs import store

    run = store.create(root, name="demo", snapshot="env: B\n", metadata={"env": "B"}, seeds=[0, 1])
    acknowledge(run.name)


def label(root: Path) -> None:
    from rlx.runs import store
    from rlx.runs.run import Run

    store.tag(Run(root / "runs" / "demo_001"), "B")
    acknowledge("B")


def evaluation(root: Path) -> None:
    from rlx.runs import store

    store.save_evaluation(root / "runs" / "demo_001", "f", "seed_0_latest", {"purpose": "report", "mean": 2.0})
    acknowledge("B")


def event(root: Path) -> None:
    from rlx import files

    for word in ("B", "C"):
        files.append_line(root / "events.jsonl", files.encode({"event": word}))
        acknowledge(word)


def metrics(root: Path) -> None:
    from rlx.runs.metrics import MetricsWriter

    writer = MetricsWriter(root / "metrics.jsonl")
    for step in (2, 3, 4):
        try:
            writer.write(step, {"loss": 0.5})
        except OSError:
            continue  # a full disk for a moment: training goes on
        acknowledge(str(step))


def whole_file(root: Path) -> None:
    from rlx import files

    files.write_json(root / "manifest.json", {"state": "B", "filling": "B" * 5000})
    acknowledge("B")


def folder(root: Path) -> None:
    from rlx import files

    staged = root / ".latest.new"
    staged.mkdir(exist_ok=True)
    for name in ("policy", "optimizer"):
        files.write_durable(staged / name, b"B" * 3000)
    files.sync_folder(staged)
    files.replace_folder(staged, root / "latest")
    acknowledge("B")


def listing(root: Path) -> None:
    from rlx.runs import index

    acknowledge(",".join(sorted(row["name"] for row in index.summaries(root).rows)))


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
