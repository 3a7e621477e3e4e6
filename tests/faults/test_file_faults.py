"""A crash, a full disk or a broken disk at every single write, fsync, rename …: nothing torn is ever read.

The fault strikes the N-th call, for every N that an undisturbed process makes (SQLite's I/O error tests): injected by
strace into the kernel's calls, or, on a machine that forbids tracing, from inside the process into Python's.
What is not covered: power loss (the page cache survives a kill).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlx import files
from rlx.runs import index, store
from rlx.runs.metrics import MetricsWriter, rows
from rlx.runs.run import Run

OPERATIONS = Path(__file__).with_name("operations.py")
KILL, FULL, BROKEN = "signal=KILL", "error=ENOSPC", "error=EIO"
WRITES = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate")
CALLS = (*WRITES, "rename", "renameat2", "mkdir", "unlink", "unlinkat", "rmdir")


@dataclass(frozen=True)
class Outcome:
    """What a disturbed process acknowledged, and what strace saw."""

    acknowledged: list[str]
    was_killed: bool
    trace: str
    talk: str


def can_trace() -> bool:
    program = shutil.which("strace")
    return program is not None and subprocess.run([program, "-o", "/dev/null", "true"], check=False).returncode == 0


pytestmark = pytest.mark.slow
TRACER = "strace" if can_trace() else "inside"


@pytest.fixture
def tracer() -> str:
    """Who injects the fault: the kernel's tracer, or the process itself where nobody may trace it."""
    return TRACER


def run(operation: str, root: Path, *inject: str, tracer: str) -> Outcome:
    """Do an operation in a process of its own, under faults."""
    trace = root.parent / "trace.txt"
    argv: list[str | Path] = [os.path.realpath(sys.executable), "-S", "-B", OPERATIONS, operation, root]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if tracer == "strace":
        options = [f"--inject={fault}" for fault in inject]
        argv = ["strace", "-f", "-qq", "-o", trace, f"--trace={','.join(CALLS)}", *options, *argv]
    else:
        environment |= {"FAULT_TRACE": str(trace), "FAULTS": " ".join(inject)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True)
    seen = trace.read_text()
    return Outcome(done.stdout.split(), "+++ killed by SIGKILL +++" in seen, seen, done.stderr)


def calls_of(trace: str) -> dict[str, int]:
    counts = dict.fromkeys(CALLS, 0)
    for line in trace.splitlines():
        name = line.split(maxsplit=1)[1].split("(", 1)[0]
        if name in counts:
            counts[name] += 1
    return {name: count for name, count in counts.items() if count}


def sweep(
    operation: str, tmp_path: Path, prepare: Callable[[Path], None], *, tracer: str, always: tuple[str, ...] = ()
) -> Iterator[tuple[Path, Outcome]]:
    """Yield the state after every fault at every call; each fault must really have struck."""

    template = tmp_path / "template"
    template.mkdir()
    prepare(template)

    def fresh() -> Path:
        root = tmp_path / "state"
        shutil.rmtree(root, ignore_errors=True)
        return Path(shutil.copytree(template, root))

    undisturbed = run(operation, fresh(), *always, tracer=tracer)
    assert undisturbed.acknowledged, undisturbed.talk
    counts = calls_of(undisturbed.trace)
    assert counts, "the operation makes no call that could fail"
    for call, count in counts.items():
        if any(fault.startswith(call) for fault in always):
            continue
        for fault in (KILL, FULL, BROKEN):
            for number in range(1, count + 1):
                root = fresh()
                outcome = run(operation, root, f"{call}:{fault}:when={number}", *always, tracer=tracer)
                has_struck = outcome.was_killed if fault == KILL else f"{call}(" in _injected(outcome.trace)
                assert has_struck, f"{call} {fault} {number} never happened\n{outcome.trace}"
                yield root, outcome


def _injected(trace: str) -> str:
    return "\n".join(line for line in trace.splitlines() if "(INJECTED)" in line and "ENOSYS" not in line)


def test_a_run_is_created_whole_or_not_at_all(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        store.create(root, name="demo", snapshot="env: A\n", metadata={"env": "A"}, seeds=[0])

    for root, outcome in sweep("create", tmp_path, prepare, tracer=tracer):
        names = [name for name in os.listdir(root / "runs") if not name.startswith(".")]
        assert set(names) >= {"demo_001", *outcome.acknowledged}
        for name in names:
            made = Run(root / "runs" / name)
            assert made.metadata["name"] == name
            assert made.config["env"] == made.metadata["env"]
            assert len(made.seeds) == (1 if name == "demo_001" else 2)
        assert {row["status"] for row in index.summaries(root).rows} == {"prepared"}
        assert "Traceback" not in outcome.talk or "RlxError" in outcome.talk
        store.create(root, name="demo", snapshot="", metadata={}, seeds=[])


def test_labels_are_the_old_or_the_new_ones(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        store.tag(store.create(root, name="demo", snapshot="", metadata={}, seeds=[]), "A")

    for root, outcome in sweep("label", tmp_path, prepare, tracer=tracer):
        tags = Run(root / "runs" / "demo_001").tags
        assert tags in (("A",), ("A", "B"))
        assert set(outcome.acknowledged) <= set(tags)
        assert store.tag(Run(root / "runs" / "demo_001"), "C").tags == (*tags, "C")


def test_an_evaluation_is_the_old_or_the_new_one(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        made = store.create(root, name="demo", snapshot="", metadata={}, seeds=[0])
        store.save_evaluation(made.path, "f", "seed_0_latest", {"purpose": "report", "mean": 1.0})

    for root, outcome in sweep("evaluation", tmp_path, prepare, tracer=tracer):
        (document,) = Run(root / "runs" / "demo_001").evaluations()
        assert document["mean"] in (1.0, 2.0)
        assert not outcome.acknowledged or document["mean"] == 2.0


@pytest.mark.parametrize("tracer", sorted({"inside", TRACER}))
def test_an_acknowledged_event_is_never_lost_and_a_torn_one_never_read(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        files.append_line(root / "events.jsonl", files.encode({"event": "A"}))

    for root, outcome in sweep("event", tmp_path, prepare, tracer=tracer):
        words = [row["event"] for row in files.read_rows(root / "events.jsonl")]
        assert words in (["A"], ["A", "B"], ["A", "B", "C"])
        assert set(outcome.acknowledged) <= set(words)
        files.append_line(root / "events.jsonl", files.encode({"event": "D"}))
        assert [row["event"] for row in files.read_rows(root / "events.jsonl")] == [*words, "D"]


def test_an_acknowledged_metrics_row_is_never_lost(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        writer = MetricsWriter(root / "metrics.jsonl")
        writer.write(1, {"loss": 0.5})
        writer.close()
        with (root / "metrics.jsonl").open("ab") as stream:
            stream.write(b'{"step":2,"lo')  # what a kill in the middle of a write left

    for root, outcome in sweep("metrics", tmp_path, prepare, tracer=tracer):
        steps = [row["step"] for row in rows(root / "metrics.jsonl")]
        assert steps[0] == 1
        assert {int(step) for step in outcome.acknowledged} <= set(steps)
        prepare(root)
        assert [row["step"] for row in rows(root / "metrics.jsonl")] == [*steps, 1]


def test_a_whole_file_is_the_old_or_the_new_one(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        files.write_json(root / "manifest.json", {"state": "A", "filling": "A" * 5000})

    for root, outcome in sweep("whole_file", tmp_path, prepare, tracer=tracer):
        document = files.read_json(root / "manifest.json")
        assert set(document["filling"]) == {document["state"]}
        assert not outcome.acknowledged or document["state"] == "B"


def folder_state(path: Path) -> str | None:
    """Return the letter every file of a folder is filled with; None where it is absent; a mixture is torn."""
    if not path.exists():
        return None
    letters = {(path / name).read_text() for name in ("policy", "optimizer")}
    assert len(letters) == 1, f"{path} is torn"
    (content,) = letters
    assert len(content) == 3000
    return content[0]


def prepare_folder(root: Path) -> None:
    (root / "latest").mkdir()
    for name in ("policy", "optimizer"):
        (root / "latest" / name).write_text("A" * 3000)


def test_a_replaced_folder_is_the_old_or_the_new_one(tmp_path: Path, tracer: str) -> None:
    for root, outcome in sweep("folder", tmp_path, prepare_folder, tracer=tracer):
        state = folder_state(root / "latest")
        assert state in ("A", "B")
        assert not outcome.acknowledged or state == "B"


def test_without_an_atomic_exchange_the_old_folder_is_never_lost(tmp_path: Path, tracer: str) -> None:
    for root, outcome in sweep("folder", tmp_path, prepare_folder, tracer=tracer, always=("renameat2:error=ENOSYS",)):
        state = folder_state(root / "latest")
        assert not outcome.acknowledged or state == "B"
        assert state in ("A", "B") or folder_state(root / ".latest.old") == "A"


@pytest.mark.skipif(not can_trace(), reason="NO FAULT SWEEP OF THE INDEX: SQLite's calls need strace and ptrace")
def test_the_index_is_right_whatever_happens_to_its_file(tmp_path: Path) -> None:
    def prepare(root: Path) -> None:
        for number in range(3):
            made = store.create(root, name="demo", snapshot="", metadata={"env": str(number)}, seeds=[0])
            files.append_line(made.path / "seed_0" / "events.jsonl", b'{"event":"started","time":1}')
            files.append_line(made.path / "seed_0" / "events.jsonl", b'{"event":"completed","time":2}')
            os.utime(made.path, (1e9, 1e9))
            if number == 1:
                assert len(index.summaries(root).rows) == 2

    for root, outcome in sweep("listing", tmp_path, prepare, tracer="strace"):
        assert outcome.was_killed or outcome.acknowledged in (["demo_001,demo_002,demo_003"], []), outcome.talk
        listed = index.summaries(root, sort="name").rows
        assert [(row["name"], row["status"], row["env"]) for row in listed] == [
            ("demo_001", "completed", "0"), ("demo_002", "completed", "1"), ("demo_003", "completed", "2"),
        ]  # fmt: skip
