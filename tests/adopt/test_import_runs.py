"""Imported runs: seeds become one run, a second import changes nothing, and the commands read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.adopt.import_runs import import_path
from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.main import call
from rlx.runs.run import Run, names
from rlx.runs.tensorboard_writer import EventWriter


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "rlx.toml").touch()
    monkeypatch.chdir(root)
    monkeypatch.setenv("RLX_ROOT", str(root))
    return root


def cleanrl_logs(folder: Path, *, seeds: int = 3, gain: float = 1.0, name: str = "ppo") -> Path:
    for seed in range(seeds):
        writer = EventWriter(folder / f"Cart-v1__{name}__{seed}__179499000{seed}")
        for step in range(0, 400, 10):
            values = {"charts/episodic_return": gain * step + seed, "Episode_Reward/alive": 0.5, "losses/clipfrac": 0.1}
            writer.write(step, values, wall_time=float(step))
        writer.close()
    return folder


def test_seeds_become_one_run_with_the_names_of_rlx(project: Path, tmp_path: Path) -> None:
    report = import_path(cleanrl_logs(tmp_path / "logs"), root=project)
    assert (report.format, report.seeds, len(report.created)) == ("tensorboard", 3, 1)
    run = Run(project / "runs" / report.created[0])
    assert (run.status, [seed.number for seed in run.seeds], run.is_imported) == ("completed", [0, 1, 2], True)
    last = run.seed(2).rows[-1]
    assert (last["charts/episodic_return"], last["rollout/return_mean"]) == (392.0, 392.0)
    assert (last["reward/term/alive"], last["train/clip_fraction"]) == pytest.approx((0.5, 0.1))


def test_a_second_import_changes_nothing_and_new_content_makes_a_new_run(project: Path, tmp_path: Path) -> None:
    logs = cleanrl_logs(tmp_path / "logs")
    first = import_path(logs, root=project)
    stamps = {path: path.stat().st_mtime_ns for path in (project / "runs").rglob("*")}
    again = import_path(logs, root=project)
    assert (again.created, again.present) == ([], first.created)
    assert {path: path.stat().st_mtime_ns for path in (project / "runs").rglob("*")} == stamps
    cleanrl_logs(tmp_path / "more", seeds=2, gain=2.0)
    assert len(import_path(tmp_path / "more", root=project).created) == 1
    assert len(names(project)) == 2


def test_the_commands_read_imported_runs_and_never_train_them(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["import", str(cleanrl_logs(tmp_path / "a"))]) == 0
    assert call(["import", str(cleanrl_logs(tmp_path / "b", gain=2.0, name="sac")), "--as", "tensorboard"]) == 0
    first, second = sorted(names(project))
    for words in (
        ["ls"],
        ["info", first],
        ["plot", first],
        ["compare", first, second, "--metric", "rollout/return_mean"],
        ["analyze", first],
        ["diagnose", first],
        ["export", first, "--to", "csv", "--out", "-"],
    ):
        assert call(words) == 0, words
    capsys.readouterr()
    assert call(["resume", first]) == 2
    assert "was imported" in capsys.readouterr().err
    assert call(["eval", first]) == 2
    assert "was imported" in capsys.readouterr().err


def test_mistakes_are_explained(project: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        import_path(tmp_path / "absent", root=project)
    (tmp_path / "a.csv").write_text("step,x\n1,2\n")
    with pytest.raises(UsageError, match="has no wandb data"):
        import_path(tmp_path / "a.csv", root=project, format_name="wandb")


def test_an_empty_log_is_named_and_makes_no_run(project: Path, tmp_path: Path) -> None:
    EventWriter(tmp_path / "logs" / "nothing").close()
    (tmp_path / "logs" / "nothing" / "events.out.tfevents.1").touch()
    report = import_path(tmp_path / "logs", root=project)
    assert (report.created, report.empty) == ([], ["nothing"])


def test_nothing_is_suggested_that_an_imported_run_refuses(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = import_path(cleanrl_logs(tmp_path / "logs", seeds=2), root=project).created[0]
    assert call(["suggest", name, "--json"]) == 0
    verbs = [row["command"].split()[1] for row in json.loads(capsys.readouterr().out)["commands"]]
    assert verbs == ["plot"]
    assert call(["ls"]) == 0
    assert "rlx eval" not in capsys.readouterr().out
    assert call(["diagnose", name]) == 0
    assert "rlx does not have its policies" in capsys.readouterr().out


def test_a_table_without_numbers_is_refused(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "junk.csv").write_text("a,b\nx,y\n")
    assert call(["import", str(tmp_path / "junk.csv")]) == 2
    error = capsys.readouterr().err
    assert "has no metrics that rlx can read (format csv)" in error
    assert "hint: a table needs a header" in error
    assert names(project) == []
