"""The peers' own virtual environment (`make bench` makes it from bench/peers.txt), and its packages."""

from __future__ import annotations

import argparse
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DEFAULT = Path(__file__).resolve().parents[2] / ".venv-peers"
NAMES = ("tensorboard", "trackio", "wandb", "mlflow")
QUIET = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true",
         "DO_NOT_TRACK": "1", "GIT_PYTHON_REFRESH": "quiet"}  # fmt: skip


@dataclass(frozen=True)
class Peers:
    """A virtual environment with some of the peers installed."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def has(self, name: str) -> bool:
        return self.version(name) is not None

    @cache  # noqa: B019  lives as long as the benchmark
    def version(self, name: str) -> str | None:
        if not self.python.exists():
            return None
        code = f"from importlib import metadata; print(metadata.version({name!r}))"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return an argument parser with `--peers`."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--peers", type=Path, default=DEFAULT, metavar="VENV", help="where the peers are installed")
    return made
