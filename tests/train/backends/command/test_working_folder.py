"""A program that writes into its current folder gets a writable one with links to the project."""

from __future__ import annotations

from pathlib import Path

from rlx.train.backends.command.argv import override_arguments
from rlx.train.backends.command.working_folder import link_project, written_names


def test_links_lead_to_the_project_and_written_folders_are_real(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    for name in ("src", "logs", "runs", ".git"):
        (root / name).mkdir(parents=True)
    (root / "train.py").write_text("print(1)\n")
    folder = link_project(root, tmp_path / "out" / "work", written=["logs"])
    assert sorted(path.name for path in folder.iterdir()) == ["src", "train.py"]
    assert (folder / "train.py").read_text() == "print(1)\n"
    assert link_project(root, folder, written=["logs"]) == folder
    (folder / "logs").mkdir()
    assert list((root / "logs").iterdir()) == []


def test_written_folders_are_those_of_the_metrics_and_checkpoints() -> None:
    places = ["{out}/work/logs/**/model_*.pt", "{out}/work/tb", "{out}/policy.pt", ""]
    assert written_names("{out}/work", places) == {"logs", "tb"}


def test_an_override_can_join_its_keys_behind_one_option() -> None:
    changes = {"lr": 0.1, "net": {"size": 8}}
    assert override_arguments("--set {key}:{value} ...", changes) == ["--set", "lr:0.1", "net.size:8"]
    assert override_arguments("--set {key}:{value}", changes) == ["--set", "lr:0.1", "--set", "net.size:8"]
    assert override_arguments("--set {key}:{value} ...", {}) == []
