"""A run from a stranger: no command executes the code that it names, unless somebody says --trust."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.envs.import_object import load_module
from rlx.errors import Refused
from rlx.evaluate.stored_code import code_problems, code_references
from rlx.runs import project, store
from rlx.runs.run import Run
from tests.conftest import Project
from tests.evaluate.linear import GOOD, make_run, register

EVIL = "import pathlib\npathlib.Path(PLACE).touch()\nclass Env: pass\n"
Make = Callable[[Path, Path], Run]


def plant(path: Path, root: Path) -> None:
    """Write a Python file that leaves a trace when it is executed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EVIL.replace("PLACE", repr(str(root / "PWNED"))))


def elsewhere(root: Path, tmp: Path) -> Run:
    """Put a run with a Python file into another folder, which names that file by its path from here."""
    run = make_run(tmp / "mail", "theirs", {0: GOOD})
    plant(run.path / "evil.py", root)
    return renamed(run, f"{os.path.relpath(run.path, root)}/evil.py:Env")


def unpacked(root: Path, tmp: Path) -> Run:
    """Put a run with a Python file into this project's folder, next to `runs`."""
    run = make_run(root / "mail", "theirs", {0: GOOD})
    plant(root / "mail/runs/theirs_001/evil.py", root)
    return renamed(run, "mail/runs/theirs_001/evil.py:Env")


def copied_module(root: Path, tmp: Path) -> Run:
    run = make_run(root, "theirs", {0: GOOD})
    plant(run.path / "evil.py", root)
    plant(run.path / "__init__.py", root)
    return renamed(run, "runs.theirs_001.evil:Env")


def copied_file(root: Path, tmp: Path) -> Run:
    plant(tmp / "evil.py", root)
    return renamed(make_run(root, "theirs", {0: GOOD}), "../evil.py:Env")


def linked_file(root: Path, tmp: Path) -> Run:
    plant(tmp / "evil.py", root)
    (root / "envs").mkdir()
    (root / "envs" / "mine.py").symlink_to(tmp / "evil.py")
    return renamed(make_run(root, "theirs", {0: GOOD}), "envs/mine.py:Env")


def wrapped(root: Path, tmp: Path) -> Run:
    plant(tmp / "evil.py", root)
    run = make_run(root, "theirs", {0: GOOD})
    path = run.path / "config_snapshot.yaml"
    path.write_text(path.read_text().replace("wrappers: []", "wrappers: [{name: '../evil.py:Env'}]"))
    assert "evil" in str(Run(run.path).config)
    return Run(run.path)


def own_program(root: Path, tmp: Path) -> Run:
    """Put a run into `runs/` whose config names a program that trains it."""
    program = f"command: {{train: [touch, {root / 'PWNED'}, '{{seed}}', '{{overrides}}']}}\n"
    run = make_run(root, "theirs", {0: GOOD})
    path = run.path / "config_snapshot.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(("backend:", "command:"))]
    path.write_text("\n".join([*lines, "backend: command", program]))
    metadata = run.path / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"fast"', '"command"'))
    (run.path / ".folder").write_text(f"{run.path.stat().st_ino:x}")  # as if they had guessed it
    shutil.rmtree(run.path / "seed_0" / "checkpoints")
    assert Run(run.path).config["backend"] == "command"
    return Run(run.path)


def package_function(root: Path, tmp: Path) -> Run:
    """Copy a run into `runs/` that names a function of a package; it executes a text."""
    return calling(root, "numpy.testing:runstring", astr=f"__import__('os').mkdir({str(root / 'PWNED')!r})", dict={})


def borrowed_function(root: Path, tmp: Path) -> Run:
    """Copy a run into `runs/` that names a function which a file of the project imports from elsewhere."""
    return calling(root, "envs/own.py:os.system", command=f"touch {root / 'PWNED'}")


def bound_function(root: Path, tmp: Path) -> Run:
    return calling(root, "envs/own.py:call", args=["touch", str(root / "PWNED")])


def calling(root: Path, name: str, **kwargs: object) -> Run:
    (root / "envs").mkdir()
    (root / "envs/own.py").write_text("import functools\nimport os\nimport subprocess\n"
                                      "call = functools.partial(subprocess.run, check=True)\n")  # fmt: skip
    project.mark_own(root)
    run = renamed(make_run(root, "theirs", {0: GOOD}), name)
    (run.path / ".folder").unlink()
    path = run.path / "config_snapshot.yaml"
    path.write_text(path.read_text().replace("  kwargs: {}", f"  kwargs: {json.dumps(kwargs)}", 1))
    assert Run(run.path).config["env"]["kwargs"] == kwargs
    return Run(run.path)


def clear(trace: Path) -> None:
    if trace.is_dir():
        trace.rmdir()
    else:
        trace.unlink(missing_ok=True)


def renamed(run: Run, env: str) -> Run:
    path = run.path / "config_snapshot.yaml"
    path.write_text(path.read_text().replace("CartPole-v1", env))
    assert Run(run.path).config["env"]["id"] == env
    return Run(run.path)


STRANGERS: tuple[Make, ...] = (
    elsewhere, unpacked, copied_module, copied_file, linked_file, wrapped, own_program, package_function,
    borrowed_function, bound_function,
)  # fmt: skip
RUNS_CODE = (
    ("eval", "RUN"), ("eval", "RUN:best"), ("eval", "own_001", "--like", "RUN"), ("video", "RUN"), ("stress", "RUN"),
    ("probe", "RUN", "gravity=1,2"), ("review", "RUN"), ("resume", "RUN"), ("resume", "RUN", "--prove"),
    ("train", "--more", "RUN", "--seeds", "1"), ("noise", "RUN", "--aa"), ("advisor", "RUN", "--execute"),
    ("research", "RUN", "--budget", "80"), ("replay", "RUN"), ("explain", "RUN"), ("check", "env", "RUN"),
    ("settle", "RUN", "RUN", "-s", "algo.gamma=0.9"), ("train", "RUN/config_snapshot.yaml"),
    ("settle", "RUN/config_snapshot.yaml", "RUN"), ("noise", "RUN/config_snapshot.yaml"),
    ("sweep", "RUN/config_snapshot.yaml", "-p", "algo.gamma=0.9,0.99", "--trials", "2"),
    ("resume", "RUN", "--fork", "-s", "algo.total_timesteps=4096"),
    ("check", "env", "RUN/config_snapshot.yaml"),
)  # fmt: skip
READS = (
    ("info", "RUN"), ("diagnose", "RUN"), ("analyze", "RUN"), ("suggest", "RUN"), ("summarize", "RUN"), ("logs", "RUN"),
    ("reflect", "RUN"), ("plot", "RUN"), ("compare", "own_001", "RUN"), ("export", "RUN", "--to", "csv", "--out", "-"),
    ("export", "RUN:best", "--to", "sb3"), ("export", "RUN:best", "--to", "dataset", "--episodes", "1"),
    ("ls",), ("explain-metrics", "RUN"), ("watch", "RUN", "--timeout", "1"),
    ("config", "check", "RUN/config_snapshot.yaml"), ("config", "show", "RUN/config_snapshot.yaml"),
    ("config", "diff", "own_001", "RUN"), ("config", "show", "RUN"), ("recommend", "RUN"), ("report", "RUN"),
    ("advisor", "RUN"), ("note", "RUN", "seen"), ("tag", "RUN", "seen"), ("wait", "RUN", "--timeout", "1"),
)  # fmt: skip


@pytest.mark.parametrize("make", STRANGERS)
def test_no_command_executes_what_a_strangers_run_names(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    user = Project(tmp_path / "project")
    user.write("rlx.toml", "")
    make_run(user.root, "own", {0: GOOD})
    run = make(user.root, tmp_path)
    name = run.name
    if run.path.parent != user.root / "runs":
        name = str(run.path)
    for words in (*RUNS_CODE, *READS):
        done = user._call([word.replace("RUN/", f"{run.path}/").replace("RUN", name) for word in words])
        assert not (user.root / "PWNED").exists(), words
        assert "Traceback" not in done.stderr, done.stderr
        if words in RUNS_CODE:
            assert done.returncode != 0, (words, done.stdout)
    refused = user._call(["eval", name])
    assert refused.returncode == 4
    assert "--trust" in refused.stderr
    if make is own_program:  # only training starts it
        return
    user._call(["eval", name, "--trust"])
    assert (user.root / "PWNED").exists() == (make is not copied_module)  # nothing runs inside `runs/` at all
    clear(user.root / "PWNED")
    user._call(["eval", name])  # trust is not remembered
    assert not (user.root / "PWNED").exists()


def test_code_is_found_wherever_a_config_names_it() -> None:
    config = {
        "env": {"id": "a.py:A", "wrappers": [{"name": "b:B"}, "c.py:C", "flatten"]},
        "eval": {"env": {"id": "d:D"}, "scenarios": {"hard": {"env": {"id": "e.py:E"}}}},
        "algo": {"name": "f:F"},
        "policy": {"type": "g.py:G", "kwargs": {"features_extractor_class": "h:H", "net_arch": [8]}},
    }
    assert code_references(config) == ["a.py:A", "d:D", "e.py:E", "b:B", "c.py:C", "f:F", "g.py:G", "h:H"]


@pytest.mark.parametrize(
    "name", ["envs/own.py:Own", "envs/own.py:make", "envs/own.py:longer", "numpy.linalg:LinAlgError"]
)
def test_a_copied_run_may_name_classes_and_functions_of_the_projects_own_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/own.py").write_text(
        "import functools\nimport gymnasium\nclass Own(gymnasium.Env): pass\n"
        "@functools.lru_cache\ndef make(size=1): return Own()\nlonger = functools.partial(make, size=2)\n"
    )
    project.mark_own(tmp_path)
    run = renamed(make_run(tmp_path, "copied", {0: GOOD}), name)
    (run.path / ".folder").unlink()
    assert list(code_problems(run.config, place=run.path, root=tmp_path)) == []


def test_a_run_may_name_any_function_in_the_folder_in_which_it_was_made_but_an_imported_one_may_not(
    tmp_path: Path,
) -> None:
    project.mark_own(tmp_path)
    made = renamed(make_run(tmp_path, "made", {0: GOOD}), "numpy.testing:runstring")
    assert list(code_problems(made.config, place=made.path, root=tmp_path)) == []
    snapshot = (made.path / "config_snapshot.yaml").read_text()
    brought = store.create(tmp_path, name="brought", snapshot=snapshot, metadata={"backend": "imported"}, seeds=[0])
    (problem,) = code_problems(brought.config, place=brought.path, root=tmp_path)
    assert "neither a class nor a function of its files" in problem


def test_a_module_that_starts_a_program_is_not_imported(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="a program, which its import would start"):
        load_module("IPython.__main__", root=tmp_path)


def test_whoever_trains_on_in_a_copy_with_trust_makes_it_their_own(tmp_path: Path) -> None:
    mine = Project(tmp_path / "mine")
    mine.write("rlx.toml", "")
    mine.write("envs/own.py", "from gymnasium.envs.classic_control import CartPoleEnv\nclass Own(CartPoleEnv): pass\n")
    mine.rlx("train", mine.config("tiny", env={"id": "envs/own.py:Own"}), "--seeds", "1")
    shutil.copytree(mine.root, tmp_path / "restored")
    restored = Project(tmp_path / "restored")
    refused = restored.rlx("train", "--more", "tiny_001", "--seeds", "1", code=4)
    assert "nobody has trained in this folder yet" in refused.stderr
    assert not project.is_own(restored.root)
    restored.rlx("train", "--more", "tiny_001", "--seeds", "1", "--trust")
    restored.rlx("eval", "tiny_001")


@pytest.mark.parametrize("words", [("check", "spec"), ("spec", "status"), ("cards", "--for", "spec.yaml"),
                                   ("config", "show", "configs/theirs.yaml")])  # fmt: skip
def test_a_strangers_spec_or_config_calls_no_function_of_a_package(words: tuple[str, ...], tmp_path: Path) -> None:
    theirs = Project(tmp_path)
    theirs.write("rlx.toml", "")
    theirs.rlx("spec", "new", "--env", "CartPole-v1")
    call = {"id": "numpy.testing:runstring", "kwargs": {"astr": "__import__('os').mkdir('PWNED')", "dict": {}}}
    spec = tmp_path / "spec.yaml"
    spec.write_text(re.sub(r"^env:\n.*\n", f"env: {json.dumps(call)}\n", spec.read_text(), flags=re.M))
    theirs.write("configs/theirs.yaml", json.dumps({"env": call, "algo": {"name": "ppo"}}))
    done = theirs.rlx(*words, code=None)
    assert not (tmp_path / "PWNED").exists()
    assert "nobody has trained or made anything in this folder yet" in done.stdout + done.stderr


def test_a_new_project_and_a_new_spec_are_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Project(tmp_path).rlx("init", "new")
    assert project.is_own(tmp_path / "new")
    mine = Project(tmp_path / "mine")
    mine.write("rlx.toml", "")
    mine.write("envs/own.py", "from gymnasium.envs.classic_control import CartPoleEnv\nclass Own(CartPoleEnv): pass\n")
    mine.rlx("spec", "new", "--env", "CartPole-v1", "-o", "other.yaml")
    assert not project.is_own(mine.root)  # it names no code
    mine.rlx("spec", "new", "--env", "envs/own.py:Own", "--seconds", "1")
    assert "nobody has trained" not in mine.rlx("check", "spec", code=None).stderr
