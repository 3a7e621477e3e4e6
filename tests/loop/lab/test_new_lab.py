"""A new lab is refused before anything is written if its environment does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import NotFound
from rlx.loop.lab.new_lab import LabWishes, new_lab


def test_a_lab_of_an_unknown_environment_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as refused:
        new_lab(tmp_path / "hop", LabWishes(env_id="CartPol-v1"))

    assert refused.value.hint == "did you mean `CartPole-v1`?"
    assert list(tmp_path.iterdir()) == []
