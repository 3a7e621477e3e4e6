"""An attempt is one row: refused before it trains, answered from the tree, or a candidate of the rung's study."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.loop.lab.attempt import attempts
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.try_attempt import LabIdea, try_attempt
from tests.loop.lab.lab_project import edit, tiny_lab


def quiet(_: str) -> None:
    """Say nothing."""


def codes(lab: Lab, description: str) -> list[str]:
    """Try the lab's files as they are; return the codes of the refusal."""
    with pytest.raises(Refused) as caught:
        try_attempt(lab, lab.root, LabIdea(description), say=quiet)
    return [str(reason["code"]) for reason in caught.value.reasons]


def test_what_is_refused_before_any_training_is_one_row_each(tmp_path: Path) -> None:
    lab = tiny_lab(tmp_path)
    train = lab.root / "candidate" / "train.py"
    original = train.read_text()
    assert codes(lab, "nothing\tat\nall") == ["NO_CHANGE"]
    assert attempts(lab)[-1].description == "nothing at all", "one line, so that a table can hold it"
    train.write_text(original + "\n# only a comment\n")
    assert codes(lab, "a comment") == ["NO_CHANGE"]
    train.write_text(original.replace('"name": "ppo"', '"name": "ppo", "total_timesteps": 10_000'))
    assert codes(lab, "train longer") == ["SCOPE"]
    train.write_text(original.replace("3e-4", "3 * 1e-4"))
    assert codes(lab, "computed") == ["VALUE"]
    train.write_text(original)
    (lab.root / "extra.py").write_text("x = 1\n")
    assert codes(lab, "another file") == ["SCOPE"]
    (lab.root / "extra.py").unlink()
    edit(lab, "candidate/env.py", "import gymnasium\n", "import gymnasium\nfrom evaluator import env\n")
    assert codes(lab, "look at the evaluator") == ["EVALUATOR"]
    rows = attempts(lab)
    assert [row.status for row in rows] == ["refused"] * 6
    assert [row.description for row in rows][-1] == "look at the evaluator"
    assert not any(event.kind == "intent" for event in lab.study.ledger.events())


@pytest.mark.slow
def test_a_tried_idea_is_a_row_with_a_score_and_is_answered_from_the_tree_afterwards(tmp_path: Path) -> None:
    lab = tiny_lab(tmp_path)
    edit(lab, "candidate/train.py", "3e-4", "1e-6")
    attempt = try_attempt(lab, lab.root, LabIdea("a tiny step", predicts=-1.0), say=quiet)
    assert (attempt.candidate, attempt.rung.name) == ("c001", "1/2")
    assert attempt.score is not None
    assert attempt.notes["parts"] == ["algo.learning_rate"]
    assert "3e-4" in (lab.root / "candidate" / "train.py").read_text()
    if attempt.is_settled:
        edit(lab, "candidate/train.py", "3e-4", "1e-6")
        rows = lab.study.state().rows
        assert codes(lab, "the same again") == ["SETTLED"]
        assert lab.study.state().rows == rows + 1
