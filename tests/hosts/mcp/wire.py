"""A server on real pipes, spoken to byte by byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlx.hosts.mcp.answer import LIMIT_BYTES

INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}  # fmt: skip


class Wire:
    """One client's end of a server's pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.notes: list[dict[str, Any]] = []
        self._early: dict[object, dict[str, Any]] = {}
        self._number = 100

    def send(self, message: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request; every line must be JSON, and what comes before is kept."""
        assert self.process.stdout is not None
        while number not in self._early:
            line = self.process.stdout.readline()
            assert line, "the server ended"
            document: dict[str, Any] = json.loads(line)
            if "method" in document:
                self.notes.append(document)
            else:
                self._early[document.get("id")] = document
        return self._early.pop(number)

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """Call a tool and return its result, whose text always fits."""
        told = self.answer(self.ask("tools/call", name=tool, arguments=given))
        result: dict[str, Any] = told["result"]
        assert sum(len(block["text"].encode()) for block in result["content"]) <= LIMIT_BYTES
        return result

    def failure(self, tool: str, **given: Any) -> dict[str, Any]:
        """Return what a call that fails says: one JSON document."""
        result = self.call(tool, **given)
        assert result["isError"], result
        document: dict[str, Any] = json.loads(result["content"][0]["text"])
        assert set(document) - {"reasons"} == {"error", "kind", "code", "hint"}
        return document

    def content(self, tool: str, **given: Any) -> dict[str, Any]:
        """Return the structured content of a call that succeeds."""
        result = self.call(tool, **given)
        assert not result.get("isError"), result
        content: dict[str, Any] = result["structuredContent"]
        return content


def start(root: Path) -> subprocess.Popen[bytes]:
    """Start `rlx mcp` for a project."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rlx", "mcp"], cwd=root, env={**os.environ, "RLX_ROOT": str(root)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def served(root: Path) -> Iterator[Wire]:
    """Yield a connected client."""
    process = start(root)
    try:
        wire = Wire(process)
        wire.send(INITIALIZE)
        assert wire.answer(0)["result"]["serverInfo"]["name"] == "rlx"
        wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield wire
    finally:
        process.kill()
        process.communicate()
