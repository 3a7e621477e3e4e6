"""Run the command of a coding agent with a time limit.

`run_agent` is for a study's loop: the agent may do everything that the account may do, and what it launched lives on.
`run_session` is for a lab's driver: the agent is in a sandbox, and is also ended if it stalls or fills the disk.
Nothing is left of such a session: all its processes are killed, and they die with the driver.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlx.errors import NotFound
from rlx.sandbox import popen
from rlx.sandbox.popen import SandboxedCommand, SandboxedProcess
from rlx.sandbox.process_tree import descendants
from rlx.sandbox.usage_limits import folder_bytes

TERMINATE_SECONDS = 10.0
POLL_SECONDS = 0.4
ACTIVE_SHARE = 0.02
"""A session that uses this share of one core is not stalled."""
HowEnded = Literal["exited", "timeout", "stalled", "disk"]


@dataclass(frozen=True)
class SessionLimits:
    """The limits of one session: its time, the time without any sign of life, and the bytes in its own folder."""

    seconds: float
    stall_seconds: float
    folder: Path
    folder_bytes: int


@dataclass(frozen=True)
class SessionEnd:
    """How a session ended; `code` is its exit code if it ended by itself."""

    how: HowEnded
    code: int | None
    seconds: float


@dataclass(frozen=True)
class SessionFiles:
    """What a session reads as its input, and where its output and its errors go."""

    brief: Path
    output: Path
    errors: Path


def run_agent(argv: Sequence[str], *, root: Path, seconds: float) -> int | None:
    """Run an agent's command in the project's root; return its exit code, or None if it was ended after `seconds`.

    The jobs that it launched live on, so it has no reaper.
    """
    try:
        agent = subprocess.Popen(list(argv), cwd=root, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise NotFound(f"the agent `{argv[0]}` cannot be started: {error.strerror}", hint="--agent COMMAND") from None
    try:
        return agent.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(agent)


def run_session(command: SandboxedCommand, io: SessionFiles, limits: SessionLimits) -> SessionEnd:
    """Run one session of an agent to its end, or end it. Raises `Refused` if it cannot start in its sandbox."""
    began = time.monotonic()
    with io.brief.open("rb") as brief, io.output.open("wb") as output, io.errors.open("wb") as errors:
        agent = popen.start(command, stdin=brief, stdout=output, stderr=errors)
    try:
        how = _watch(agent, io, limits)
    finally:
        _end(agent)
    code = agent.returncode if how == "exited" else None
    return SessionEnd(how, code, time.monotonic() - began)


def _watch(agent: SandboxedProcess, io: SessionFiles, limits: SessionLimits) -> HowEnded:
    """Wait for the end of a session; return why it is over."""
    began = active = time.monotonic()
    seen = _signs_of_life(io, limits.folder)
    cpu_seconds = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(POLL_SECONDS)
            return "exited"
        now = time.monotonic()
        if now - began > limits.seconds:
            return "timeout"
        if folder_bytes(limits.folder) > limits.folder_bytes:
            return "disk"
        signs = _signs_of_life(io, limits.folder)
        used = _cpu_seconds(agent.pid)
        if signs != seen or used < cpu_seconds or used - cpu_seconds > ACTIVE_SHARE * limits.stall_seconds:
            active = now
            seen = signs
            cpu_seconds = used
        if now - active > limits.stall_seconds:
            return "stalled"


def _signs_of_life(io: SessionFiles, folder: Path) -> tuple[int, int, int]:
    """Return what changes while an agent works: the sizes of its logs, and the newest time of its own files."""
    newest = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                newest = max(newest, os.lstat(f"{here}/{name}").st_mtime_ns)
    return io.output.stat().st_size, io.errors.stat().st_size, newest


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its living descendants."""
    ticks = 0
    for process in (pid, *descendants(pid)):
        with contextlib.suppress(OSError, ValueError, IndexError):
            content = Path(f"/proc/{process}/stat").read_bytes()
            fields = content[content.rfind(b")") + 2 :].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _end(agent: SandboxedProcess) -> None:
    """Ask a running agent to end, then kill it with every process that it started."""
    if agent.poll() is not None:
        return
    agent.terminate()
    try:
        agent.wait(TERMINATE_SECONDS)
    except subprocess.TimeoutExpired:
        popen.kill(agent)
