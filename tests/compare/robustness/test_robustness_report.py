"""Probing and stressing a run, end to end: what is measured, judged and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx import files
from rlx.compare.robustness.robustness_report import probe, stress
from rlx.evaluate.robustness.env_parameter import parse_parameter
from rlx.evaluate.robustness.stress import parse_stress_plan
from rlx.runs.run_reference import resolve
from tests.evaluate.linear import GOOD, make_run, register


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    make_run(tmp_path, "cartpole", {0: GOOD, 1: GOOD, 2: GOOD})
    return tmp_path


def test_a_probe_is_kept_in_the_run_with_every_score_and_the_weights_it_is_about(root: Path) -> None:
    (found,) = probe(resolve("cartpole_001", root), [parse_parameter("attr:gravity=9.8,12")], root=root, episodes=2)
    assert found.file is not None
    assert found.file.parent == root / "runs/cartpole_001/probes"
    kept = files.read_json(found.file)
    assert (kept["schema"], kept["parameter"], kept["nominal"], kept["run"]) == (1, "attr:gravity", 9.8, "cartpole_001")
    assert [one["at"] for one in kept["scores"]] == [None, 9.8, 12]
    assert kept["scores"][0]["seeds"] == {"0": 500.0, "1": 500.0, "2": 500.0}
    assert all(seed["identity"] for seed in kept["seeds"].values())


def test_the_same_question_is_the_same_file_and_another_is_another(root: Path) -> None:
    def asked(text: str, *, share: float = 0.8) -> Path | None:
        (found,) = probe(resolve("cartpole_001", root), [parse_parameter(text)], root=root, episodes=1, share=share)
        return found.file

    first = asked("attr:gravity=9.8,12")
    assert asked("attr:gravity=9.8,12") == first
    assert len({first, asked("attr:gravity=9.8,13"), asked("attr:gravity=9.8,12", share=0.5)}) == 3


def test_parameters_are_varied_one_at_a_time(root: Path) -> None:
    gravity, length = probe(
        resolve("cartpole_001", root),
        [parse_parameter("attr:gravity=9.8"), parse_parameter("attr:length=0.5")],
        root=root,
        episodes=1,
    )
    assert gravity.document["scores"][0]["seeds"] == length.document["scores"][0]["seeds"]


def test_no_evaluation_of_a_probe_stands_among_the_reports(root: Path) -> None:
    probe(resolve("cartpole_001", root), [parse_parameter("attr:gravity=9.8,12")], root=root, episodes=1)
    stress(resolve("cartpole_001", root), parse_stress_plan(["noise=0.1"], is_only=True), root=root, episodes=1)
    assert not (root / "runs/cartpole_001/eval").exists()


def test_a_stress_test_is_kept_with_its_worst_condition_first(root: Path) -> None:
    plan = parse_stress_plan(["noise=0.01", "delay=20"], is_only=True)
    found = stress(resolve("cartpole_001", root), plan, root=root, episodes=2)
    assert [one.name for one in found.drops] == ["delay", "noise"]
    assert found.drops[0].is_brittle
    assert found.file is not None
    kept = files.read_json(found.file)
    assert kept["conditions"][0]["name"] == "delay"
    assert kept["nominal"]["mean"] == 500.0
    assert [one["at"] for one in kept["scores"]] == [None, "noise=0.01", "delay=20.0"]


def test_a_folder_that_cannot_be_written_to_is_told(root: Path) -> None:
    (root / "runs/cartpole_001/probes").write_text("in the way")
    (found,) = probe(resolve("cartpole_001", root), [parse_parameter("attr:gravity=9.8")], root=root, episodes=1)
    assert found.file is None
