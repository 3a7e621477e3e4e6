"""No step of a study depends on the text of a refusal, an error or a hint: random words lead to the same end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loop.mill import Mill

pytestmark = pytest.mark.slow
SETTINGS = ("budget.seeds=200", "metric.seeds=10")
RANDOM_WORDS = '''\
"""Replaces the text of every refusal, error and hint of rlx by random words."""
import random

from rlx import errors
from rlx.study import refusal


def words(*_):
    return " ".join(random.choice(("lamp", "river", "seven", "rlx", "blue", "stop", "next")) for _ in range(6))


def error_init(self, message, *, hint=None, _plain=errors.RlxError.__init__):
    _plain(self, words(), hint=None if hint is None else words())


def refusal_init(self, code, message, *rest, _plain=refusal.Refusal.__init__, **named):
    _plain(self, code, words(), *rest, **named)


errors.RlxError.__init__ = error_init
refusal.Refusal.__init__ = refusal_init
refusal.Refusal.hint = property(words)
'''


def walk(mill: Mill, variables: dict[str, str]) -> list[tuple[Any, ...]]:
    """Take a study with a good, a crashing and a harmful candidate to its end; return its rows without their texts."""

    def types(*words: str) -> int:
        environment = {**mill.environment, **variables}
        return subprocess.run(mill.argv(*words), cwd=mill.root, env=environment, capture_output=True).returncode

    def proposes(*changes: str) -> None:
        settings = [word for change in changes for word in ("-s", change)]
        types("propose", "--kind", "hyperparameter", "--hypothesis", f"it gains by {changes}", *settings)

    codes = []
    for changes in (("gain=5",), ("how=crash",), ("gain=-5",)):
        proposes(*changes)
        codes.append(types("study", "loop"))
    codes.append(types("launch", "c001", "--plan", "0" * 64))
    codes.append(types("propose", "--kind", "hyperparameter", "--hypothesis", "a seed", "-s", "seed=3"))
    rows: list[tuple[Any, ...]] = [("exit codes", *codes)]
    for event in mill.study.ledger.events():
        reasons = sorted(str(reason["code"]) for reason in event.get("reasons") or [])
        facts = [event.get(key) for key in ("action", "candidate", "phase", "decision", "outcome")]
        rows.append((event.kind, *facts, *reasons))
    return rows


def test_random_words_in_every_message_lead_to_the_same_end(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "random_words").mkdir()
    (tmp_path / "random_words" / "sitecustomize.py").write_text(RANDOM_WORDS)
    path = str(tmp_path / "random_words")
    as_usual = walk(Mill.ready(tmp_path / "usual", tmp_path_factory, *SETTINGS), {})
    randomly = walk(Mill.ready(tmp_path / "random", tmp_path_factory, *SETTINGS), {"PYTHONPATH": path})
    assert randomly == as_usual
    assert {"decided", "refused"} <= {row[0] for row in as_usual}
    assert "advanced" in {row[4] for row in as_usual}


def test_the_words_are_really_random(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(RANDOM_WORDS)
    done = subprocess.run(
        [sys.executable, "-m", "rlx", "info", "no_such_run"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "RLX_ROOT": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 3
    assert "no_such_run" not in done.stderr
