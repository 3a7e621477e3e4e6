"""Errands: started once, found again, and what they say is kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rlx.launch import background_command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rlx.toml").touch()
    return tmp_path


def ended(one: background_command.BackgroundCommand) -> background_command.BackgroundCommand:
    until = time.monotonic() + 60
    while one.is_running and time.monotonic() < until:
        time.sleep(0.02)
    return one


def test_the_same_words_are_the_same_errand(root: Path) -> None:
    first = ended(background_command.start(["ls"], root=root))
    kept = (first.folder / "errand.json").read_bytes()
    assert first.result() == {"schema": 1, "runs": [], "total": 0, "next": None, "filter": "", "columns": []}
    assert background_command.start(["ls"], root=root) == first
    assert (first.folder / "errand.json").read_bytes() == kept
    assert ended(background_command.start(["ls"], root=root, again=True)).result() is not None
    assert (first.folder / "errand.json").read_bytes() != kept
    assert background_command.BackgroundCommand(root, ("envs",)).folder != first.folder


def test_an_errand_that_fails_keeps_its_error(root: Path) -> None:
    told = ended(background_command.start(["info", "nobody_001"], root=root)).result()
    assert told is not None
    assert told["kind"] == "NotFound"


def test_one_that_is_forgotten_can_be_asked_for_anew(root: Path) -> None:
    told = ended(background_command.start(["info", "--", "--help"], root=root))
    assert told.result() is not None
    told.forget()
    assert not told.is_known


def test_one_that_was_never_started_has_no_result(root: Path) -> None:
    unknown = background_command.BackgroundCommand(root, ("ls",))
    assert not unknown.is_known
    assert not unknown.is_running
    assert unknown.result() is None
