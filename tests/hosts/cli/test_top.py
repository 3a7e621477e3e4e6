"""`rlx top` on a real terminal of 80 × 24 characters, and without one."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.errors import UsageError
from rlx.hosts.cli import top
from rlx.hosts.cli.document import document
from rlx.runs.run import Run


class Terminal:
    """A terminal of 80 × 24 characters with `rlx top` inside."""

    def __init__(self, root: Path, *words: str) -> None:
        self.master, worker = pty.openpty()
        fcntl.ioctl(worker, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.worker = worker
        self.before = termios.tcgetattr(worker)
        place = {**os.environ, "TERM": "xterm", "RLX_ROOT": str(root)}
        self.process = subprocess.Popen([sys.executable, "-m", "rlx", "top", *words], cwd=root, stdin=worker,
                                        stdout=worker, stderr=worker, env=place, start_new_session=True)  # fmt: skip
        self.text = ""

    def wait_for(self, text: str, *, seconds: float = 60) -> None:
        """Read until a text is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, self.text[-2000:]
            if select.select([self.master], [], [], 0.2)[0]:
                self.text += os.read(self.master, 65536).decode(errors="replace")

    def press(self, keys: str) -> None:
        self.text = ""
        os.write(self.master, keys.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.worker)


def screen(text: str) -> list[str]:
    """Return the lines of the last whole frame, without the signs that control the terminal."""
    frame = text.rpartition("\x1b[H")[2].partition("\x1b[J")[0]
    lines = frame.split("\r\n")
    return [line.replace("\x1b[K", "").replace("\x1b[7m", "").replace("\x1b[0m", "") for line in lines]


@pytest.mark.slow
def test_runs_are_shown_moved_through_and_opened(make_run: Callable[..., Run]) -> None:
    make_run("done")
    make_run("evil\x1b]0;x", state="failed")
    run = make_run("live", seeds={0: [1.0, 2.0, 9.0], 1: [3.0]}, state="running")
    terminal = Terminal(run.path.parents[1], "--interval", "0.5")
    try:
        terminal.wait_for("q leave")
        lines = screen(terminal.text)
        assert len(lines) == 24
        assert [line for line in lines if len(line) > 80] == []
        assert lines[3].startswith("live_001")  # what trains comes first
        assert "▁" in lines[3]
        assert "\x1b]0;" not in terminal.text
        terminal.press("\n")
        terminal.wait_for("Esc back")
        assert "live_001 · running" in screen(terminal.text)[0]
        terminal.press("\x1b[B")
        terminal.press("\x1b")
        terminal.wait_for("q leave")
        terminal.press("q")
        assert terminal.process.wait(timeout=60) == 0
        terminal.wait_for("\x1b[?1049l")
        assert termios.tcgetattr(terminal.worker) == terminal.before
    finally:
        terminal.close()


def test_without_a_terminal_the_table_is_printed_once(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("live", state="running")
    monkeypatch.setenv("RLX_ROOT", str(run.path.parents[1]))
    data = document("top", "--once")
    assert [row["name"] for row in data["runs"]] == ["live_001"]
    text = top.overview(data, width=80, height=24)
    assert "live_001" in text[3]
    assert all(len(line) <= 80 for line in text)
    with pytest.raises(UsageError, match="at least"):
        document("top", "--interval", "0")


def test_a_long_name_keeps_its_number_and_wide_terminals_show_steps(make_run: Callable[..., Run]) -> None:
    row = {"name": "a" * 90 + "_123", "status": "running", "steps": 50, "planned_steps": 100, "seconds": 60.0,
           "return": None, "curve": [1.0, float("nan"), 3.0]}  # fmt: skip
    data = {"project": "p", "runs": [row], "machine": {"load": [0, 0, 0], "cores": 2, "available_bytes": None}}
    narrow = top.overview(data, width=80, height=24)[3]
    assert "…_123 running" in narrow
    assert "▁ █" in narrow
    assert narrow.rstrip().endswith("1m 00s")
    assert "50/100" in top.overview(data, width=140, height=24)[3]
    assert "no run yet" in top.overview({**data, "runs": []}, width=80, height=24)[3]
