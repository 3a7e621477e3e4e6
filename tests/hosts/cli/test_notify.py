"""`--notify` runs a person's command when a run has ended, and never breaks the run's own result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from rlx.errors import UsageError
from rlx.hosts.cli.notify import notify, read_command

WRITE = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2] + os.environ['RLX_STATE'])"


def test_the_command_gets_the_run_and_its_state(make_run: Any, tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    notify((sys.executable, "-c", WRITE, str(told), "{run} "), make_run())
    assert told.read_text() == "cartpole_001 completed"


def test_a_command_that_fails_is_a_note(make_run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    notify(("no-such-program",), make_run())
    assert "note: --notify no-such-program failed" in capsys.readouterr().err


def test_what_is_no_command_is_refused(cli: Any) -> None:
    with pytest.raises(UsageError, match="no command"):
        read_command("")
    answer = cli("train", "configs/x.yaml", "--detach", "--notify", "echo")
    assert answer.code == 2
    assert "rlx wait RUN --notify CMD" in answer.err
