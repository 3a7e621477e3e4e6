"""A scan finds the facts of a repository with their places, and runs nothing of it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlx.adopt.scan import Scan, scan
from rlx.errors import NotFound
from tests.adopt.foreign_repos import HYDRA, NESTED, ONE_FILE, TERMS, write_repo


def places(found: Scan, kind: str) -> dict[str, tuple[str, int]]:
    return {fact.name: (fact.file, fact.line) for fact in found.facts.of(kind)}


def codes(found: Scan) -> set[str]:
    return {defect.code for defect in found.defects}


def test_a_one_file_algorithm(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, ONE_FILE))
    assert found.profile.name == "CleanRL"
    assert list(places(found, "train")) == ["agent/walk.py"]
    assert places(found, "config system") == {"tyro": ("agent/walk.py", 22)}
    assert places(found, "seed") == {"--seed": ("agent/walk.py", 13)}
    assert [(fact.name, fact.value, fact.detail) for fact in found.facts.of("length")] == [
        ("--total-timesteps", 40000, "environment steps")
    ]
    assert places(found, "log folder") == {"runs": ("agent/walk.py", 24)}
    assert places(found, "metric tag")["charts/episodic_return"] == ("agent/walk.py", 30)
    assert places(found, "checkpoint")["walk.pt"] == ("agent/walk.py", 32)
    assert {"Gymnasium": ">=1.0", "tyro": "==0.9"}.items() <= {
        fact.name: fact.value for fact in found.facts.of("framework")
    }.items()
    assert [defect.line for defect in found.defects if defect.code == "gymnasium-api"] == [29]


def test_terms_of_a_manager_based_task(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, TERMS))
    assert found.profile.name == "Isaac Lab"
    assert [(fact.name, fact.value, fact.detail) for fact in found.facts.of("reward term")] == [
        ("forward", 1.5, "mdp.forward"),
        ("effort", -0.01, "mdp.effort"),
    ]
    assert {fact.name: fact.value for fact in found.facts.of("termination")} == {
        "time_out": "truncation",
        "late": "termination",
        "fell": "termination",
    }
    assert list(places(found, "randomisation")) == ["friction"]
    assert list(places(found, "curriculum")) == ["terrain"]
    assert list(places(found, "eval")) == ["scripts/play.py"]
    assert list(places(found, "launcher")) == ["slurm"]
    assert found.facts.of("interpreter")[0].value == ["./isaaclab.sh", "-p"]
    assert "iterations ×" in found.facts.of("length")[0].detail
    assert {"truncation-as-failure", "unsafe-load", "folder-by-second", "no-seed"} & codes(found) == {
        "truncation-as-failure",
        "unsafe-load",
        "folder-by-second",
    }


def test_nested_config_classes_and_a_weight_without_a_function(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, NESTED))
    assert {fact.name: fact.value for fact in found.facts.of("reward term")} == {
        "speed": 1.0,
        "ghost": -2.0,
        "off": 0.0,
    }
    assert list(places(found, "randomisation")) == ["push_robots"]
    without = [defect for defect in found.defects if defect.code == "weight-without-function"]
    assert [(defect.file, defect.line) for defect in without] == [("legs/config.py", 5)]
    assert {"no-seed", "truncation-as-failure"} <= codes(found)


def test_a_hydra_project_with_an_evaluation_on_training_seeds(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, HYDRA))
    assert found.profile.name == "Hydra project"
    options = found.programs["train.py"]
    assert {option.key: option.default for option in options.options} == {
        "seed": 2,
        "total_steps": 5000,
        "task": "hop",
        "algo.lr": 0.001,
    }
    assert list(places(found, "checkpoint")) == ["best.pt"]
    assert list(places(found, "metric tag")) == ["episode_return"]
    assert found.facts.of("interpreter")[0].value[-1] == "hop"
    assert {"evaluation-on-training-seeds", "best-is-newest"} & codes(found) == {"evaluation-on-training-seeds"}


def test_a_clean_environment_has_no_defects(tmp_path: Path) -> None:
    source = """class Env:
    def step(self, action):
        terminated = self.fell
        truncated = self.t >= self.limit
        return self.obs, 1.0, terminated, truncated, {}
"""
    assert scan(write_repo(tmp_path, {"env.py": source})).defects == ()


@pytest.mark.timeout(60)
def test_a_repository_that_is_a_package_itself_ends_the_scan(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "gait/__init__.py": "",
        **{f"gait/{Path(name).name}": text for name, text in ONE_FILE.items()},
    }
    assert list(places(scan(write_repo(tmp_path, files)), "train")) == ["gait/walk.py"]


def test_an_empty_folder_has_no_facts_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    found = scan(tmp_path)
    assert (found.profile.name, found.facts.found, found.defects) == ("generic", [], ())
    with pytest.raises(NotFound):
        scan(tmp_path / "absent")


def test_a_hostile_repository_runs_nothing_and_ends(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    repo = tmp_path / "repo"
    write_repo(
        repo,
        {
            "train.py": f"open({str(mark)!r}, 'w')\nif __name__ == '__main__':\n    model.learn(1)\n",
            "conftest.py": f"open({str(mark)!r}, 'w')\n",
            "setup.py": f"open({str(mark)!r}, 'w')\n",
            "broken.py": "def reward(:\n",
            "deep.py": "reward = " + "(" * 5000 + ")" * 5000,
            "minus.py": "reward = " + "-" * 50_000 + "1",
            "sum.py": "reward = " + " + ".join(f"a{i}" for i in range(900)) + "\nwriter.add_scalar(reward, 1)\n",
            "test_many.py": "def test_():\n  env.step(0)\n" * 20_000,
            "weights.yaml": "reward_weights: {" + "a" * 500_000 + "}\n",
            "binary.py": "reward\0\x01",
            "long.py": "# reward " + "x" * 900_000,
            "pyproject.toml": "[project\n",
            "conf/a.yaml": "a: &a [*a]\n",
        },
    )
    (repo / "huge.py").write_bytes(b"reward = 1\n" * 200_000)
    (repo / "loop").symlink_to(repo)
    folder = repo
    for _ in range(60):
        folder = folder / "d"
    folder.mkdir(parents=True)
    started = time.monotonic()
    found = scan(repo)
    assert time.monotonic() - started < 20
    assert not mark.exists()
    assert list(places(found, "train")) == ["train.py"]
    assert any("huge.py" in note for note in found.notes)
    assert any("broken.py" in note for note in found.notes)
    assert any("sum.py" in note for note in found.notes)


def test_a_scan_imports_nothing_of_the_repository(tmp_path: Path) -> None:
    write_repo(tmp_path, ONE_FILE)
    code = (
        "import sys; from pathlib import Path; from rlx.adopt.scan import scan; scan(Path(sys.argv[1]));"
        "print([name for name in ('torch', 'gymnasium', 'tyro', 'agent', 'walk') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr
