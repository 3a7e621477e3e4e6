"""The few programs rlx runs for itself: git, ffmpeg."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(*arguments: str, folder: Path) -> str | None:
    """Return what a git command prints, or None where it fails or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=30,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")
