from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


class Person(io.StringIO):
    """Somebody at a terminal who types an answer."""

    def isatty(self) -> bool:
        return True


def test_refuses_without_yes_where_nobody_can_be_asked(
    cli: Cli, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    answer = cli("rm", run.name)

    assert answer.code == 2
    assert "hint: rlx rm cartpole_001 --yes" in answer.err
    assert run.path.exists()


@pytest.mark.parametrize(
    ("typed", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 130), ("\n", 130), ("", 130), ("yo\n", 130)]
)
def test_asks_a_person(cli: Cli, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, typed: str, code: int) -> None:
    run = make_run()
    monkeypatch.setattr(sys, "stdin", Person(typed))

    answer = cli("rm", run.name)

    assert answer.code == code
    assert "delete cartpole_001 (" in answer.err
    assert run.path.exists() == (code != 0)


def test_deletes_several_with_yes_and_says_so(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    for _ in range(3):
        make_run()

    data = cli("rm", "cartpole_001", "cartpole_003", "cartpole_001", "--yes", "--json").data

    assert data["deleted"] == ["cartpole_001", "cartpole_003"]
    assert data["bytes"] > 100
    assert os.listdir(tmp_path / "runs") == ["cartpole_002"]
    assert [row["name"] for row in cli("ls", "--json").data["runs"]] == ["cartpole_002"]


def test_a_training_run_is_refused_and_the_others_stay_too(cli: Cli, make_run: MakeRun) -> None:
    idle, busy = make_run("idle"), make_run("busy", state="running")

    answer = cli("rm", idle.name, busy.name, "--yes")

    assert answer.code == 4
    assert "hint: stop it first: rlx stop busy_001" in answer.err
    assert idle.path.exists()


def test_one_unknown_name_deletes_nothing(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()

    assert cli("rm", run.name, "nosuch", "--yes").code == 3
    assert run.path.exists()


def test_a_part_of_a_name_is_not_enough_to_delete(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()
    answer = cli("rm", "cart", "--yes")

    assert answer.code == 2
    assert "hint: rlx rm cartpole_001" in answer.err
    assert run.path.exists()


def test_a_path_names_a_run_too(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()

    assert cli("rm", "runs/cartpole_001/", "--yes").code == 0
    assert not run.path.exists()


@pytest.mark.parametrize("name", ["metadata.json", "seed_0/events.jsonl"])
def test_a_broken_run_can_be_deleted(cli: Cli, make_run: MakeRun, name: str) -> None:
    run = make_run()
    (run.path / name).write_bytes(b"{\n")

    assert cli("rm", run.name, "--yes").code == 0
    assert not run.path.exists()
