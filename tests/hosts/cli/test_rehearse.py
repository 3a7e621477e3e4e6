"""What comes after a rehearsal that failed is never the same rehearsal as it was."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.hosts.cli.study.rehearse import _mends


@pytest.mark.parametrize(
    ("failed", "command"),
    [
        (
            {"hint": "rlx task refresh arm -s adapter.metrics.step=iteration"},
            "rlx task refresh arm -s adapter.metrics.step=iteration",
        ),
        ({"hint": "rlx task refresh arm -s adapter.metrics.path=WHERE"}, "rlx logs r_001"),
        ({"hint": "does the eval command write {result}?"}, "rlx logs r_001"),
        ({}, "rlx logs r_001"),
    ],
)
def test_the_command_that_mends_comes_first_and_else_the_log(failed: dict[str, Any], command: str) -> None:
    assert _mends({"checks": [{"ok": True}, {"ok": False, **failed}], "reads": "rlx logs r_001"}) == command
