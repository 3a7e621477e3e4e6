from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import rlx
from rlx import external_programs, files
from rlx.errors import NotFound, UsageError
from rlx.runs import process, store, untrusted_rows
from rlx.runs import run as runs
from rlx.runs.metrics import MetricsWriter
from rlx.runs.provenance import provenance
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def test_a_run_is_read_from_its_folder(make_run: MakeRun) -> None:
    run = make_run(seeds={2: [1.0], 10: [2.0], 0: [3.0]})

    assert run.name == "cartpole_001"
    assert run.metadata["env"] == "CartPole-v1"
    assert run.config["algo"]["name"] == "ppo"
    assert [seed.number for seed in run.seeds] == [0, 2, 10]
    assert (run.tags, run.note) == ((), "")
    assert run.status == "completed"
    assert run.planned_steps == 200


def test_a_view_is_frozen_and_a_new_one_sees_what_changed(make_run: MakeRun) -> None:
    run = make_run()
    assert run.tags == ()

    store.tag(run, "new")

    assert run.tags == ()
    assert Run(run.path).tags == ("new",)


def test_a_seed_that_is_not_there_is_refused_with_those_that_are(make_run: MakeRun) -> None:
    with pytest.raises(NotFound) as error:
        make_run(seeds={0: [1.0], 4: [1.0]}).seed(7)

    assert error.value.hint == "its seeds: 0, 4"


def test_series_are_one_array_pair_a_seed(make_run: MakeRun) -> None:
    series = make_run(seeds={0: [1.0, 2.0], 1: [3.0]}).series("rollout/return_mean")

    assert series[0].steps.tolist() == [100.0, 200.0]
    assert series[1].values.tolist() == [3.0]


def test_metric_names_are_those_of_all_seeds(make_run: MakeRun) -> None:
    assert make_run().metric_names() == ["rollout/return_mean", "train/loss"]


def test_pandas_gets_one_row_a_seed_and_step(make_run: MakeRun) -> None:
    pytest.importorskip("pandas")
    frame = make_run(seeds={0: [1.0, float("nan")], 1: [3.0]}).to_pandas()

    assert frame["seed"].tolist() == [0, 0, 1]
    assert frame["rollout/return_mean"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"event": "evaluated", "step": 150, "mean": 1.0}, 200),  # rows have gone on since
        ({"event": "evaluated", "step": 250, "mean": 1.0}, 250),
        ({"event": "lost", "reason": "killed"}, 200),
        ({"event": "interrupted", "step": 180}, 180),
    ],
)
def test_the_step_is_where_a_seed_ended_or_the_newest_that_is_known(
    make_run: MakeRun, event: dict[str, object], expected: int
) -> None:
    run = make_run(state="lost", seeds={0: [1.0, 2.0]})
    files.append_line(run.path / "seed_0" / "events.jsonl", files.encode({"time": 1.0, **event}))

    assert Run(run.path).seeds[0].step == expected


def test_the_step_goes_back_with_a_resume(make_run: MakeRun) -> None:
    run = make_run(state="lost", seeds={0: [1.0, 2.0]})
    folder = run.path / "seed_0"
    writer = MetricsWriter(folder / "metrics.jsonl")
    writer.write_resume(100)
    writer.close()
    for event in ({"event": "started", "time": 2.0}, {"event": "resumed", "step": 100, "time": 2.0}):
        files.append_line(folder / "events.jsonl", files.encode(event))

    assert Run(run.path).seeds[0].step == 100


def test_a_living_supervisor_makes_a_run_running(make_run: MakeRun) -> None:
    run = make_run(state="prepared")
    files.write_json(run.path / "supervisor.json", {"schema": 1, **process.current().document()})
    assert Run(run.path).status == "running"

    files.write_json(run.path / "supervisor.json", {"place": process.place(), "pid": 2**22 + 1, "started": "1"})
    assert Run(run.path).status == "prepared"


def test_evaluations_come_with_fingerprint_and_name(make_run: MakeRun) -> None:
    run = make_run()
    store.save_evaluation(run.path, "abc", "seed_0_best", {"mean": 1.0})

    (document,) = run.evaluations()

    assert (document["fingerprint"], document["name"], document["mean"]) == ("abc", "seed_0_best", 1.0)


def test_finds_a_run_by_name_path_or_the_part_that_only_one_has(make_run: MakeRun, tmp_path: Path) -> None:
    first, other = make_run("cartpole"), make_run("acrobot")

    for reference in (first.name, str(first.path), "cart"):
        assert runs.find(reference, root=tmp_path).path == first.path.resolve()
    assert runs.find("acro", root=tmp_path).name == other.name


def test_a_run_whose_creation_was_killed_is_no_run(make_run: MakeRun, tmp_path: Path) -> None:
    """It would be trained, and deleted a day later."""
    run = make_run("cartpole")
    run.path.rename(run.path.parent / ".new-123-0c2f7a82")
    assert runs.names(tmp_path) == []
    with pytest.raises(NotFound):
        runs.find(".new-123-0c2f7a82", root=tmp_path)


def test_never_guesses_between_two_runs(make_run: MakeRun, tmp_path: Path) -> None:
    for _ in range(10):
        make_run()
    with pytest.raises(UsageError) as error:
        runs.find("cart", root=tmp_path)

    assert "10 runs" in error.value.message
    assert "cartpole_003 and 2 more" in str(error.value.hint)


def test_an_unknown_run_is_refused_with_the_near_one(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no run `x`") as nothing:
        runs.find("x", root=tmp_path)
    assert nothing.value.hint == "train one first: rlx train CONFIG"

    make_run()
    with pytest.raises(NotFound) as error:
        runs.find("cratpole_001", root=tmp_path)
    assert error.value.hint == "did you mean `cartpole_001`?"


@pytest.mark.parametrize("reference", ["", ".", "..", "/", "../..", "\x00", "a" * 5000, "caf\udce9"])
def test_odd_references_are_no_run(make_run: MakeRun, tmp_path: Path, reference: str) -> None:
    for _ in range(2):
        make_run()
    with pytest.raises((NotFound, UsageError)):
        runs.find(reference, root=tmp_path)


def test_open_looks_in_the_project_around(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run()
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "deep" / "inside").mkdir(parents=True)
    monkeypatch.delenv("RLX_ROOT", raising=False)
    monkeypatch.chdir(tmp_path / "deep" / "inside")

    assert rlx.open("cartpole_001").status == "completed"


def test_a_moved_project_reads_the_same(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(root=tmp_path / "old")
    shutil.move(tmp_path / "old", tmp_path / "new place")

    moved = runs.find(run.name, root=tmp_path / "new place")

    assert moved.status == "completed"
    assert moved.series("train/loss")[0].values.tolist() == [1.0, 0.5]


def test_what_provenance_writes_of_a_git_repository_is_no_damage(tmp_path: Path) -> None:
    external_programs.git("init", "--quiet", folder=tmp_path)
    (tmp_path / "new.py").write_text("")
    external_programs.git(
        "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x", folder=tmp_path
    )
    row = {"time": 1.0, **provenance(tmp_path)}
    assert row["git"]["untracked"] == ["new.py"]
    assert untrusted_rows.fault(row, untrusted_rows.ATTEMPTS) == ""
