"""An agent that a study's loop restarts: somebody's own command, started at the project's root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rlx.errors import NotFound


def run_agent(argv: Sequence[str], *, root: Path, seconds: float) -> int | None:
    """Run an agent's command at the project's root until it ends; None where its time was up and it was ended."""
    try:
        agent = subprocess.Popen(
            list(argv), cwd=root, stdin=subprocess.DEVNULL, env={**os.environ}, start_new_session=True
        )
    except OSError as error:
        raise NotFound(f"the agent `{argv[0]}` cannot be started: {error.strerror}", hint="--agent COMMAND") from None
    try:
        return agent.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(agent)


def _end(agent: subprocess.Popen[bytes]) -> None:
    """End an agent and what it started."""
    from rlx import sandbox

    if agent.poll() is None:
        agent.terminate()
        try:
            agent.wait(10)
        except subprocess.TimeoutExpired:
            sandbox.reap(agent.pid)
            agent.kill()
            agent.wait()
