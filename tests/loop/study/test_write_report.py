"""The report of a study names every change with its value before and after."""

from __future__ import annotations

from pathlib import Path

from tests.loop.told import Told, typed


def test_a_changed_key_that_the_config_leaves_out_is_shown_with_its_default(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    root = told.study.root
    typed(root, 'rlx propose --kind hyperparameter --hypothesis "more noise" -s algo.max_grad_norm=2.0')
    report = typed(root, "rlx study report")
    (row,) = [row for row in report["rows"] if row["candidate"] == "c001"]
    assert row["changed"] == ["algo.max_grad_norm: 0.5 → 2.0"]
    questions = [answer["question"] for answer in report["answers"]]
    assert questions[0] == "What was asked?"
    assert all(f"**{question}**" in (root / report["file"]).read_text() for question in questions)
