"""A crash, a full disk or a broken disk at every single write, fsync, rename …: nothing torn is ever read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlx import files
from rlx.runs import index, store
from rlx.runs.metrics import MetricsWriter, rows
from rlx.runs.run import Run
from tests.faults.sweep import TRACER, can_trace, sweep

pytestmark = pytest.mark.slow


@pytest.fixture
def tracer() -> str:
    """Who injects the fault: the kernel's tracer, or the process itself where nobody may trace it."""
    return TRACER


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
        assert "Traceback" not in outcome.talk or "rlx.errors." in outcome.talk
        store.create(root, name="demo", snapshot="env: {id: CartPole-v1}\n", metadata={}, seeds=[])


def test_labels_are_the_old_or_the_new_ones(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        store.tag(store.create(root, name="demo", snapshot="env: {id: CartPole-v1}\n", metadata={}, seeds=[]), "A")

    for root, outcome in sweep("label", tmp_path, prepare, tracer=tracer):
        tags = Run(root / "runs" / "demo_001").tags
        assert tags in (("A",), ("A", "B"))
        assert set(outcome.acknowledged) <= set(tags)
        assert store.tag(Run(root / "runs" / "demo_001"), "C").tags == (*tags, "C")


def test_an_evaluation_is_the_old_or_the_new_one(tmp_path: Path, tracer: str) -> None:
    def prepare(root: Path) -> None:
        made = store.create(root, name="demo", snapshot="env: {id: CartPole-v1}\n", metadata={}, seeds=[0])
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
            made = store.create(root, name="demo", snapshot="env: {}\n", metadata={"env": str(number)}, seeds=[0])
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
