"""`rlx init` makes a project that trains, and never overwrites."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rlx.config import catalog
from rlx.config.load import check
from rlx.config.project_template import FOLDERS
from rlx.hosts.cli.main import call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder: Path) -> list[str]:
    """Return what is in a project, without rlx's own notes."""
    paths = (path for path in folder.rglob("*") if ".rlx" not in path.relative_to(folder).parts)
    return sorted(str(path.relative_to(folder)) + "/" * path.is_dir() for path in paths)


def test_a_new_project_has_what_is_used_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["init", "lab"]) == 0
    assert tree(folder / "lab") == [".gitignore", "AGENTS.md", "configs/", "configs/cartpole.yaml", "rlx.toml"]
    assert (folder / "lab/configs/cartpole.yaml").read_text() == catalog.read("cartpole")
    assert capsys.readouterr().out.splitlines() == [
        "created: lab/rlx.toml",
        "created: lab/AGENTS.md",
        "created: lab/configs/cartpole.yaml",
        "created: lab/.gitignore",
        "next: cd lab && rlx train configs/cartpole.yaml",
    ]


@pytest.mark.parametrize("name", ["my project", "проект", "it's", "a/b/c", "-dash"])
def test_any_name_is_fine(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert call(["init", "--json", "--", name]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (folder / name / "rlx.toml").is_file()
    assert shlex.split(document["next"])[:2] == ["cd", name]


def test_a_name_that_is_not_utf_8_is_fine(folder: Path) -> None:
    argv = [sys.executable, "-m", "rlx", "init", b"caf\xe9", "--json"]
    done = subprocess.run(argv, capture_output=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / os.fsdecode(b"caf\xe9") / "rlx.toml").is_file()


FIRST_ENTRIES = {catalog.ENTRIES[entry].env_id: entry for entry in reversed(catalog.names())}
"""The config that an environment gets, if the catalog has several for it."""


@pytest.mark.parametrize("entry", FIRST_ENTRIES.values())
def test_an_environment_of_the_catalog_gets_its_config(folder: Path, entry: str) -> None:
    assert call(["init", "lab", "--env", catalog.ENTRIES[entry].env_id]) == 0
    assert (folder / f"lab/configs/{entry}.yaml").read_text() == catalog.read(entry)


def test_another_environment_gets_a_config_that_fits_it(folder: Path) -> None:
    assert call(["init", "lab", "--env", "Blackjack-v1"]) == 0
    assert (folder / "lab/configs/blackjack.yaml").is_file()
    (folder / "lab/mine.py").write_text(
        "import numpy, gymnasium\n"
        "class Eye(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), numpy.uint8)\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    def action_masks(self): return []\n"
        "class Words(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Dict({'a': gymnasium.spaces.Discrete(2)})\n"
        "    action_space = gymnasium.spaces.Box(-1, 1, (2,))\n"
    )
    os.chdir(folder / "lab")
    assert call(["init", "--here", "--env", "mine.py:Eye"]) == 0
    assert call(["init", "--here", "--env", "mine.py:Words"]) == 0
    eye, words = (check(Path(f"configs/{name}.yaml")).experiment for name in ("eye", "words"))
    assert eye is not None
    assert words is not None
    assert (eye.policy.type, eye.algo.name, eye.env.normalize.obs) == ("cnn", "maskable_ppo", False)
    assert (words.policy.type, words.algo.name) == ("multi", "ppo")


def test_an_environment_file_that_is_not_there_is_written_and_trains(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["init", "lab", "--env", "envs/boss_fight.py:BossFight"]) == 0
    assert tree(folder / "lab") == [
        ".gitignore", "AGENTS.md", "configs/", "configs/bossfight.yaml", "envs/", "envs/boss_fight.py", "rlx.toml",
    ]  # fmt: skip
    os.chdir(folder / "lab")
    assert call(["config", "check", "configs/bossfight.yaml"]) == 0
    assert "configs/bossfight.yaml: fine" in capsys.readouterr().out.splitlines()


def test_here_adds_to_what_is_there_and_keeps_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "code.py").write_text("print()")
    (folder / ".gitignore").write_bytes(b"*.pyc\nruns/")
    assert call(["init", "--here", "--env", "Pendulum-v1"]) == 0
    assert (folder / ".gitignore").read_bytes() == b"*.pyc\nruns/\n/.rlx/\n/candidate.json\n"
    assert (folder / "code.py").read_text() == "print()"
    assert capsys.readouterr().out.splitlines()[-1] == "next: rlx train configs/pendulum.yaml"


def test_a_second_environment_joins_a_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(["init", "--here"])
    (folder / "rlx.toml").write_text("# mine\n")
    capsys.readouterr()
    assert call(["init", "--here", "--env", "Acrobot-v1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "created: configs/acrobot.yaml",
        "next: rlx train configs/acrobot.yaml",
    ]
    assert (folder / "rlx.toml").read_text() == "# mine\n"


def test_full_makes_the_whole_layout(folder: Path) -> None:
    assert call(["init", "lab", "--full"]) == 0
    folders = {name for name in tree(folder / "lab") if name.endswith("/")}
    assert folders == {f"{name}/" for name in FOLDERS}


@pytest.mark.parametrize(
    ("argv", "code", "message", "hint"),
    [
        ([], 2, "name the new folder, or use --here", "rlx init my-project"),
        (["lab", "--here"], 2, "name the new folder, or use --here", "rlx init my-project"),
        (["full"], 2, "`full` already exists", "cd full && rlx init --here"),
        (["file"], 2, "`file` already exists", "choose another name"),
        (["file/lab"], 1, "cannot write to file/lab", None),
        (["lab", "--env", "CartPol-v1"], 3, "no environment `CartPol-v1`", "CartPole-v1"),
        (["lab", "--env", "envs/a.py"], 2, "`envs/a.py` does not name a class", "--env envs/a.py:A"),
        (["lab", "--env", "envs/a.py:not a class"], 2, "does not name a class", "--env envs/a.py:A"),
        (["lab", "--env", "/nowhere/a.py:A"], 3, "no file `/nowhere/a.py`", "inside the project"),
        (["lab", "--env", "../a.py:A"], 3, "no file `../a.py`", "inside the project"),
        (["lab", "--env", "full/code.py:A"], 2, "`full/code.py` is in this folder", "rlx init --here --env"),
        (["--here", "--env", "full/code.py:A"], 2, "full/code.py", None),
        (["lab", "--env", "no.such.module:A"], 3, "no module `no.such.module`", "install"),
    ],
)
def test_mistakes_write_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, message: str, hint: str | None
) -> None:
    (folder / "full").mkdir()
    (folder / "full/code.py").write_text("raise ValueError('broken')\n")
    (folder / "file").touch()
    before = tree(folder)
    assert call(["init", *argv]) == code
    out, err = capsys.readouterr()
    assert out == ""
    error, _, told = err.partition("\n\nhint: ")
    assert message in error
    assert len(error.splitlines()) == 1
    assert hint is None or hint in told
    assert tree(folder) == before


@pytest.mark.parametrize("argv", [["--here"], ["--here", "--env", "CartPole-v1"]])
def test_nothing_is_ever_overwritten(folder: Path, capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    call(["init", "--here"])
    before = {name: (folder / name).read_bytes() for name in tree(folder) if not name.endswith("/")}
    assert call(["init", *argv]) == 2
    assert "already" in capsys.readouterr().err
    assert {name: (folder / name).read_bytes() for name in tree(folder) if not name.endswith("/")} == before


def test_an_empty_folder_may_be_filled(folder: Path) -> None:
    (folder / "lab").mkdir()
    assert call(["init", "lab"]) == 0


def test_a_link_that_leads_nowhere_is_not_followed(folder: Path) -> None:
    (folder / "lab").symlink_to("elsewhere")
    assert call(["init", "lab"]) == 2
    assert not (folder / "elsewhere").exists()


def test_when_writing_fails_what_was_made_goes_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "configs").write_text("a file where a folder has to be")
    assert call(["init", "--here", "--env", "envs/a.py:A"]) == 1
    assert tree(folder) == ["configs"]


def test_parsing_the_command_line_imports_nothing_heavy(folder: Path) -> None:
    heavy = ("yaml", "pydantic", "gymnasium", "numpy", "torch")
    code = (
        "import sys\nfrom rlx.hosts.cli.parser import parser_of\n"
        "parser_of('init'), parser_of('config')\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_agents_file_that_is_there_is_left_alone(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("mine")
    assert call(["init", "--here"]) == 0
    assert (folder / "AGENTS.md").read_text() == "mine"
