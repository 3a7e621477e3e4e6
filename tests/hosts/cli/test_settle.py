"""What `rlx settle` prints."""

from __future__ import annotations

from rlx.hosts.cli.settle import _next


def test_the_command_that_goes_on_keeps_the_limits() -> None:
    data = {"baseline": "a_001", "run": "b_001", "stopped": "deadline", "max_seeds": 10, "deadline": "12s"}
    assert _next(data) == "rlx settle a_001 b_001 --max-seeds 10 --deadline 12s"
    assert _next({**data, "max_seeds": 24, "deadline": None}) == "rlx settle a_001 b_001"
    assert _next({**data, "stopped": "spent"}) == "rlx settle a_001 b_001 --deadline 12s --max-seeds 24"
