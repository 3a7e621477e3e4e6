from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_a_note_is_written_replaced_and_removed(cli: Cli, make_run: MakeRun) -> None:
    make_run()

    assert cli("note", "cartpole_001", "clip", "range", "too small").out == "cartpole_001: clip range too small\n"
    assert cli("note", "cartpole_001", "better é").out == "cartpole_001: better é\n"
    assert "note: better é" in cli("info", "cartpole_001").out
    assert cli("note", "cartpole_001", "").out == "cartpole_001: no note\n"
    assert cli("ls", "--json").data["runs"][0]["note"] == ""
