"""The page and the report of a lab show every attempt, also the refused ones, and never as markup."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rlx.errors import NotFound, Refused
from rlx.hosts.cli.document import document
from rlx.hosts.ui.lab_page import lab_page, progress_chart
from rlx.hosts.ui.layout import Site
from rlx.loop.lab.attempt import Attempt, AttemptStatus, attempts
from rlx.loop.lab.lab_config import Rung
from rlx.loop.lab.try_attempt import LabIdea, try_attempt
from tests.loop.lab.lab_project import tiny_lab

EVIL = "<img src=x onerror=alert(1)>"


def test_every_attempt_is_a_row_that_links_to_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = tiny_lab(tmp_path)
    monkeypatch.setenv("RLX_ROOT", str(lab.root))
    with pytest.raises(Refused):
        try_attempt(lab, lab.root, LabIdea(EVIL), say=lambda _: None)
    (attempt,) = attempts(lab)
    number = attempt.row.rpartition("row")[2]
    page = lab_page(Site("hop", has_lab=True), lab.root)
    assert 'href="/lab" aria-current="page"' in page
    assert f'file?path=ledger.jsonl#L{number}">row{number}</a>' in page
    assert "NO_CHANGE" in page
    assert EVIL not in page
    line = lab.study.ledger.path.read_text().splitlines()[int(number) - 1]
    assert json.loads(json.loads(line)["body"])["event"] == "refused"

    out = tmp_path / "lab.html"
    told = document("report", "hop", "--html", str(out))
    assert told["kind"] == "lab"
    text = out.read_text()
    assert "Confirmed on fresh seeds: nothing." in text
    assert "Mission of lab hop" in text
    assert EVIL not in text


def test_a_project_that_is_not_a_lab_has_no_lab_page(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not a lab"):
        lab_page(Site("x"), tmp_path)


def test_kept_attempts_are_joined_by_a_line() -> None:
    rung = Rung(train_episodes=1, eval_episodes=2)

    def attempt(status: AttemptStatus, score: float | None) -> Attempt:
        return Attempt(row="x/c001", rung=rung, status=status, description=EVIL, score=score)

    drawn = progress_chart([attempt("keep", 1.0), attempt("refused", None), attempt("discard", 0.5),
                            attempt("confirmed", 3.0), attempt("crash", np.nan)])  # fmt: skip
    assert drawn
    assert drawn.count("<circle") == 3
    assert drawn.count('class="mean s0"') == 1
    assert EVIL not in drawn
    assert progress_chart([attempt("refused", None)]) is None
