from __future__ import annotations

import math
from typing import Any

import pytest

from rlx.study.budget import Amount


def test_amounts_add_and_subtract() -> None:
    assert Amount(3, 60.0) + Amount(1, 0.5) == Amount(4, 60.5)
    assert Amount(3, 60.0) - Amount(4, 0.5) == Amount(-1, 59.5)


def test_an_amount_reads_back_as_it_was_written() -> None:
    assert Amount.read(Amount(3, 60.5).document()) == Amount(3, 60.5)


@pytest.mark.parametrize(
    "document",
    [
        {"seeds": -1, "seconds": 0.0},
        {"seeds": 0, "seconds": -0.1},
        {"seeds": 1.0, "seconds": 0.0},
        {"seeds": True, "seconds": 0.0},
        {"seeds": 0, "seconds": math.nan},
        {"seeds": 0, "seconds": math.inf},
        {"seeds": 0, "seconds": "NaN"},
        {"seeds": "1", "seconds": 0.0},
    ],
)
def test_what_nobody_can_have_used_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        Amount.read(document)
