"""What the fault sweep does to files: run as a program, one operation a process, torch-free.

Every operation goes from state A to state B and then says so on stdout: what was acknowledged must be there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
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


def ledger(root: Path) -> None:
    """Append two events as a tool that gives up at an error."""
    from rlx.study.ledger.ledger import Ledger

    for word in ("B", "C"):
        Ledger(root / "ledger.jsonl").append("refused", key=word, word=word)
        acknowledge(word)


def ledger_again(root: Path) -> None:
    """Append two events as a tool that tries once more after an error: by its key an event is never there twice."""
    from rlx.study.ledger.ledger import Ledger

    log = Ledger(root / "ledger.jsonl")
    for word in ("B", "C"):
        try:
            log.append("refused", key=word, word=word)
        except OSError:
            log.append("refused", key=word, word=word)
        acknowledge(word)


def ledger_held(root: Path) -> None:
    """Append two events while the ledger is held, trying once more after an error."""
    from rlx.study.ledger.ledger import Ledger

    with Ledger(root / "ledger.jsonl").held() as held:
        for word in ("B", "C"):
            try:
                held.append("refused", key=word, word=word)
            except OSError:
                held.append("refused", key=word, word=word)
            acknowledge(word)


def ledger_writer(path: Path) -> None:
    """Append for ever, own keys and keys that another writer has too; `path` is the ledger's folder and a name."""
    from rlx.study.ledger.ledger import Ledger

    log, number = Ledger(path.parent / "ledger.jsonl"), 0
    while True:
        for key in (f"{path.name}-{number}", f"both-{number}"):
            log.append("refused", key=key, word=key)
            acknowledge(key)
        number += 1


OWN_CALLS = {"write": "write", "fsync": "fsync", "ftruncate": "ftruncate", "rename": "rename", "replace": "rename",
             "mkdir": "mkdir", "unlink": "unlink", "rmdir": "rmdir"}  # fmt: skip


def disturb_from_inside(trace: Path, faults: list[str]) -> None:
    """Where nobody may trace: in a process of its own, count Python's calls and fail the one that was asked for."""
    genuine = {name: getattr(os, name) for name in OWN_CALLS}
    log = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    seen = dict.fromkeys(OWN_CALLS.values(), 0)

    def disturbed(name: str, call: str) -> Callable[..., object]:
        def act(*args: object, **options: object) -> object:
            seen[call] += 1
            struck = next(
                (fault for fault in faults if fault.startswith(f"{call}:") and fault.endswith(f"={seen[call]}")), ""
            )
            is_kill = "signal=KILL" in struck
            genuine["write"](log, f"0 {call}({' (INJECTED)' if struck and not is_kill else ''}\n".encode())
            if is_kill:
                genuine["write"](log, b"0 +++ killed by SIGKILL +++\n")
                os.kill(os.getpid(), signal.SIGKILL)
            if struck:
                number = getattr(errno, struck.split("error=")[1].split(":")[0])
                raise OSError(number, os.strerror(number))
            return genuine[name](*args, **options)

        return act

    for name, call in OWN_CALLS.items():
        setattr(os, name, disturbed(name, call))
    if any(fault.startswith("renameat2") for fault in faults):
        from rlx import files

        files._exchange = lambda one, other: False


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
