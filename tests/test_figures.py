"""Numbers read as people write them."""

from __future__ import annotations

import pytest

from rlx.figures import counted


@pytest.mark.parametrize(("count", "spelled"), [(0, "0 seeds"), (1, "1 seed"), (2, "2 seeds"), (12000, "12,000 seeds")])
def test_how_many_of_something(count: int, spelled: str) -> None:
    assert counted(count, "seed") == spelled
