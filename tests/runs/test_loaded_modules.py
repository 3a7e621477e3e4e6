"""Every process writes down what it loaded, also programs that have no rlx."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlx import files
from rlx.runs import loaded_modules


def run(seed: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    told = loaded_modules.recorded(seed)
    place = {**os.environ, **told, "PYTHONPATH": os.pathsep.join([told["PYTHONPATH"], path])}
    return subprocess.run([sys.executable, *words], env=place, capture_output=True, text=True, check=True, cwd=seed)


def files_of(seed: Path) -> dict[str, Path]:
    return {module.name: module.file for module in loaded_modules.read(seed).modules}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("")
    (folder / "pkg" / "reward.py").write_text("WEIGHT = 1\n")
    (folder / "pkg" / "train.py").write_text("import json, numpy\nfrom pkg import reward\n")
    return folder


def test_a_program_without_rlx_writes_its_modules_and_their_hashes(tmp_path: Path, code: Path) -> None:
    run(tmp_path, "-m", "pkg.train", path=str(code))
    found = {module.name: module for module in loaded_modules.read(tmp_path).modules}
    assert {"pkg", "pkg.reward", "pkg.train"} <= set(found)
    assert found["pkg.reward"].sha256 == files.sha256(b"WEIGHT = 1\n")
    assert found["numpy"].sha256
    assert "json" not in found


def test_every_process_writes_a_file_of_its_own_and_an_earlier_attempts_are_gone(tmp_path: Path, code: Path) -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import pkg.reward'], check=True)"
    run(tmp_path, "-c", child, path=str(code))
    assert len(list((tmp_path / "loaded").iterdir())) == 2
    run(tmp_path, "-c", "pass")
    assert len(list((tmp_path / "loaded").iterdir())) == 1


def test_the_sitecustomize_that_was_there_still_runs(tmp_path: Path, code: Path) -> None:
    (code / "sitecustomize.py").write_text("print('still here')\n")
    assert run(tmp_path, "-c", "import pkg", path=str(code)).stdout == "still here\n"
    assert files_of(tmp_path)["sitecustomize"] == code / "sitecustomize.py"
    (code / "sitecustomize.py").write_text("raise ValueError\n")
    run(tmp_path, "-c", "import pkg", path=str(code))
    assert "pkg" in files_of(tmp_path)


def test_a_program_that_raises_is_recorded_and_one_that_cannot_write_is_not_disturbed(
    tmp_path: Path, code: Path
) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run(tmp_path, "-c", "import pkg; raise SystemExit(3)", path=str(code))
    assert "pkg" in files_of(tmp_path)
    done = run(tmp_path, "-c", "import os, shutil; shutil.rmtree(os.environ['RLX_LOADED']); print('fine')")
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_this_process_can_write_itself_down(tmp_path: Path) -> None:
    loaded_modules.write(tmp_path)
    assert files_of(tmp_path)["rlx.runs.loaded_modules"] == Path(loaded_modules.__file__).resolve()


@pytest.mark.parametrize(
    "content",
    [
        b"[",
        b"5",
        b'{"modules": 5}',
        b'{"modules": {"a": 1}}',
        b'{"modules": {"a": {"file": 5}}}',
        b'{"modules": {"a": {"file": "x\\u0000y"}}}',
        b'{"modules": {"a": {"file": "x", "sha256": []}}}',
        b"\xff",
        b"[" * 200_000,
        None,
    ],
)
def test_a_file_that_is_no_record_is_named_and_the_others_are_read(tmp_path: Path, content: bytes | None) -> None:
    loaded_modules.write(tmp_path)
    path = tmp_path / "loaded" / "1_a.json"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    found = loaded_modules.read(tmp_path)
    assert found.damage == ("loaded/1_a.json does not list the loaded modules",)
    assert "rlx.runs.loaded_modules" in {module.name for module in found.modules}


def test_a_project_that_was_moved_has_its_modules_where_it_lies_now(tmp_path: Path) -> None:
    project = tmp_path / "before"
    seed, tree = project / "runs" / "walk_001" / "seed_0", project / ".rlx" / "c001"
    for folder in (seed, tree):
        folder.mkdir(parents=True)
    (tree / "reward.py").write_text("WEIGHT = 1\n")
    run(seed, "-c", "import reward, numpy", path=str(tree))
    project.rename(tmp_path / "after")
    found = files_of(tmp_path / "after" / seed.relative_to(project))
    assert found["reward"] == tmp_path / "after" / ".rlx" / "c001" / "reward.py"
    assert found["numpy"].is_file(), "what is installed elsewhere keeps its place"
