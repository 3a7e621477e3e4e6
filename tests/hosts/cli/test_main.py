from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.errors import NotFound
from rlx.hosts.cli import ls, main
from rlx.hosts.cli.commands import COMMANDS

Cli = Callable[..., Any]


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_shows_every_command_with_its_summary(cli: Cli, argv: list[str]) -> None:
    answer = cli(*argv)

    assert answer.code == 0
    for name, (_, summary) in COMMANDS.items():
        assert name in answer.out
        assert summary in answer.out


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help_with_an_example_and_json(cli: Cli, command: str) -> None:
    for argv in ([command, "--help"], ["help", command]):
        answer = cli(*argv)
        assert answer.code == 0
        assert f"rlx {command}" in answer.out
        assert "Example: rlx " in answer.out
    assert "--json" in answer.out or "{" in answer.out or "show" in answer.out


def test_version(cli: Cli) -> None:
    assert cli("--version").out == "rlx 0.1.0\n"


def test_an_unknown_command_is_refused_with_the_near_one(cli: Cli) -> None:
    answer = cli("tarin", "x.yaml")

    assert answer.code == 2
    assert answer.out == ""
    assert answer.err == "error: unknown command `tarin`\n\nhint: did you mean `rlx train`?\n"


def test_a_command_unlike_any_other_gets_the_list(cli: Cli) -> None:
    assert cli("zzzzz").err.endswith("hint: rlx --help\n")


@pytest.mark.parametrize("argv", [["ls", "--nope"], ["info"], ["ls", "--limit", "many"], ["plot", "x", "--x", "moons"]])
def test_bad_usage_is_one_line_with_a_hint_and_exit_code_2(cli: Cli, argv: list[str]) -> None:
    answer = cli(*argv)

    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert f"hint: rlx {argv[0]} --help" in answer.err


def test_options_are_not_abbreviated(cli: Cli) -> None:
    assert cli("ls", "--rev").code == 2


def test_errors_are_json_too_when_json_is_asked_for(cli: Cli) -> None:
    answer = cli("info", "nothing", "--json")

    assert answer.code == 3
    assert answer.data == {
        "schema": 1, "error": "no run `nothing`", "kind": "NotFound", "hint": "train one first: rlx train CONFIG",
    }  # fmt: skip


def test_a_bug_is_one_line_and_a_traceback_only_on_request(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_args: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(ls, "run", broken)
    answer = cli("ls")
    assert answer.code == 1
    assert "this is a bug in rlx or a plug-in" in answer.err
    assert "this is a bug" in cli("ls", "--json").data["error"]
    assert "Traceback" not in answer.err

    monkeypatch.setenv("RLX_DEBUG", "1")
    assert "Traceback" in cli("ls").err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NotFound("gone", hint="look"), 3, "error: gone\n\nhint: look\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (
            OSError(28, "No space left on device", "/x/y"),
            1,
            "error: the disk is full: /x/y\n\nhint: free some space, then run the same command again\n",
        ),
    ],
)
def test_errors_end_with_their_exit_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    def fail(_args: object) -> None:
        raise error

    monkeypatch.setattr(ls, "run", fail)
    answer = cli("ls")

    assert (answer.code, answer.err) == (code, said)
    as_data = cli("ls", "--json")
    assert (as_data.code, as_data.data["error"]) == (code, said.removeprefix("error: ").partition("\n")[0])


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    script = f'"{sys.executable}" -m rlx --help | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)

    assert done.stderr == ""
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path, more: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "rlx", "ls", *more], cwd=tmp_path, stdout=full,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip

    assert (done.returncode, done.stderr) == (
        1,
        "error: the disk is full\n\nhint: free some space, then run the same command again\n",
    )


def test_a_reader_that_goes_away_before_an_error_is_none_either(tmp_path: Path) -> None:
    script = f'"{sys.executable}" -m rlx info nothing --json 2>/dev/null | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)

    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "3")  # 3: it was written before the reader went


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_that_cannot_show_a_letter_gets_it_escaped(tmp_path: Path, encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-m", "rlx", "--help"], cwd=tmp_path, capture_output=True, env=environment)

    assert done.returncode == 0, done.stderr
    assert b"\\u2192" in done.stdout


def test_a_project_folder_whose_name_is_not_utf8_works(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(place)
    environment = {name: value for name, value in os.environ.items() if name != "RLX_ROOT"}
    for argv in (["ls"], ["ls", "--json"], ["doctor", "--quick", "--json"], ["info", "x"]):
        done = subprocess.run([sys.executable, "-m", "rlx", *argv], cwd=place, capture_output=True, env=environment)
        assert done.returncode == (3 if argv[0] == "info" else 0), done.stderr
        assert b"bug" not in done.stderr


def test_data_asks_for_its_exit_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ls, "run", lambda _args: {"runs": [], "total": 0, "next": None, "exit_code": 6})
    answer = cli("ls", "--json")

    assert answer.code == 6
    assert answer.data == {"schema": 1, "runs": [], "total": 0, "next": None}
    assert main.exit_code(None) == 0
