from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli.commands import COMMANDS
from rlx.hosts.cli.completion import SCRIPTS, candidates
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


@pytest.fixture
def place(cli: Cli, make_run: MakeRun, tmp_path: Path) -> Path:
    """A project with runs and configs, with an `rlx` program that is found first."""
    for name in ("cartpole", "cartpole", "acrobot"):
        make_run(name)
    for path in ("configs/ppo.yaml", "configs/dqn.yml", "top.yaml", "configs/notes.txt", "my files/a b.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    program = tmp_path / "bin" / "rlx"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rlx "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["inf"], ["info"]),
        (["--v"], ["--version"]),
        (["t"], ["train", "top", "tag", "task", "try"]),
        (["help", "unt"], ["untag"]),
        (["info", ""], ["acrobot_001", "cartpole_001", "cartpole_002"]),
        (["info", "cart"], ["cartpole_001", "cartpole_002"]),
        (["plot", "cartpole_001", "cartpole_002", "a"], ["acrobot_001"]),
        (["compare", "cartpole_001", "a"], ["acrobot_001"]),
        (["eval", "ac"], ["acrobot_001"]),
        (["info", "--traceback", "ac"], ["acrobot_001"]),
        (["info", "cartpole_001", ""], []),
        (["tag", "cartpole_001", ""], []),
        (["ls", "--so"], ["--sort"]),
        (["plot", "cartpole_001", "--x", ""], ["steps", "wall", "episodes"]),
        (["plot", "cartpole_001", "--x", "steps", "a"], ["acrobot_001"]),
        (["export", "cartpole_001", "--to", "t"], ["tensorboard"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["config", "s"], ["show", "schema"]),
        (["config", "show", "top"], ["top.yaml"]),
        (["train", ""], ["configs/dqn.yml", "configs/ppo.yaml", "top.yaml"]),
        (["train", "con"], ["configs/dqn.yml", "configs/ppo.yaml"]),
        (["train", "configs/p"], ["configs/ppo.yaml"]),
        (["train", "./t"], ["./top.yaml"]),
        (["train", "my files/"], ["my files/a b.yaml"]),
        (["nosuch", ""], []),
    ],
)
def test_a_word_becomes_what_fits_its_place(place: Path, typed: list[str], expected: list[str]) -> None:
    assert candidates(typed) == expected


def test_nothing_typed_offers_every_command(place: Path) -> None:
    assert candidates([""]) == candidates([]) == list(COMMANDS)


def test_completing_outside_a_project_is_silent(cli: Cli) -> None:
    answer = cli("--complete", "info", "")

    assert (answer.code, answer.out, answer.err) == (0, "", "")


@pytest.mark.parametrize("command", list(COMMANDS))
def test_options_of_every_command_are_offered(place: Path, command: str) -> None:
    assert "--help" in candidates([command, "--"])


def bash(place: Path, line: str) -> list[str]:
    """Return what a real bash would complete a command line to, by its own machinery."""
    script = f"""
        source <("$PYTHON" -m rlx completion bash)
        COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}
        read -ra COMP_WORDS <<< "$COMP_LINE"
        [[ "$COMP_LINE" == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        entry=$(complete -p rlx); [[ "$entry" == *'-F _rlx'* ]] || exit 9
        _rlx rlx "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHON": sys.executable}
    environment.pop("RLX_ROOT", None)
    done = subprocess.run(
        ["bash", "--norc", "-euc", script], cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:-1]


def test_bash_completes_commands_runs_options_and_configs(place: Path) -> None:
    assert bash(place, "rlx inf") == ["info"]
    assert bash(place, "rlx info cart") == ["cartpole_001", "cartpole_002"]
    assert bash(place, "rlx ls --so") == ["--sort"]
    assert bash(place, "rlx train configs/") == ["configs/dqn.yml", "configs/ppo.yaml"]
    assert bash(place, "rlx train my\\ files/") == [""]


def test_bash_at_a_real_terminal_types_the_rest(place: Path) -> None:
    script = place / "session.py"
    script.write_text(
        "import os, pty, sys, time\n"
        "def read(fd, end, seen=b''):\n"
        "    while end not in seen:\n"
        "        seen += os.read(fd, 1024)\n"
        "    return seen\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0:\n"
        "    os.execvp('bash', ['bash', '--norc', '-i'])\n"
        "os.write(fd, b\"PS1='>'; source <(rlx completion bash); echo re''ady\\n\")\n"
        "read(fd, b'ready\\r\\n')\n"
        "os.write(fd, b'rlx unt\\t')\n"
        "read(fd, b'untag ')\n"
        "os.write(fd, b'acro\\t')\n"
        "read(fd, b'acrobot_001 ')\n"
        "os.write(fd, b'\\x03exit\\n')\n"
        "print('typed')\n"
    )
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "TERM": "dumb"}
    environment.pop("RLX_ROOT", None)
    done = subprocess.run(
        [sys.executable, script], cwd=place, env=environment, capture_output=True, text=True, timeout=60
    )

    assert done.stdout.strip() == "typed", done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_in_its_shell(cli: Cli, tmp_path: Path, shell: str) -> None:
    script = tmp_path / f"completion.{shell}"
    script.write_text(cli("completion", shell).out)
    assert script.read_text() == SCRIPTS[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")

    done = subprocess.run([shell, "-n", script], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on this machine")
def test_fish_completes_run_names(place: Path) -> None:
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place)}
    environment.pop("RLX_ROOT", None)
    code = "rlx completion fish | source; complete -C 'rlx info cart'"
    done = subprocess.run(["fish", "-c", code], cwd=place, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["cartpole_001", "cartpole_002"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on this machine")
def test_zsh_completes_run_names(place: Path) -> None:
    code = """
        compdef() { : }
        source <(rlx completion zsh)
        compadd() { shift; print -l -- "$@" }
        _files() { print files }
        words=(rlx info cart) CURRENT=3
        _rlx
        words=(rlx tag cartpole_001 '') CURRENT=4
        _rlx
    """
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    environment.pop("RLX_ROOT", None)
    done = subprocess.run(["zsh", "-fc", code], cwd=place, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["cartpole_001", "cartpole_002", "files"]
