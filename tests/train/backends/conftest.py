"""Checkpoints made by these tests lie outside any project; that such ones are refused is tested in tests/evaluate."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every checkpoint for one of this project."""
    monkeypatch.setattr("rlx.evaluate.policy.refuse_named_code", lambda checkpoint: None)
