"""Drive a real Chromium over its debugging protocol, to measure when a page is painted."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tab:
    """One page of a browser."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=120))
            if message.get("id") == self._number:
                return dict(message.get("result") or {})

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait_for(self, expression: str, *, seconds: float = 60.0) -> Any:
        """Wait until an expression is true and return its value; None if it never is."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.02)
        return None

    def open(self, address: str) -> float | None:
        """Open a page and return the milliseconds until its first content was painted."""
        self.send("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")
        painted = "performance.getEntriesByName('first-contentful-paint')[0]"
        return self.wait_for(f"{painted} && {painted}.startTime", seconds=30)  # type: ignore[no-any-return]

    def seconds_until(self, address: str, text: str, *, most: float = 60.0) -> float:
        """Open a page and return the seconds until a text can be read on it; infinity if it never can."""
        self.send("Page.navigate", url="about:blank")
        started = time.perf_counter()
        self.send("Page.navigate", url=address)
        shown = (
            f"location.href !== 'about:blank' && document.body && document.body.innerText.includes({json.dumps(text)})"
        )
        if self.wait_for(shown, seconds=most) is None:
            return float("inf")
        return time.perf_counter() - started

    def kilobytes(self) -> float:
        """Return what the page and its parts weighed on the wire."""
        entries = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        return float(self.value(f"{entries}.reduce((sum, entry) => sum + entry.transferSize, 0)") or 0) / 1000


@contextlib.contextmanager
def browser(*, width: int = 1440, height: int = 1000) -> Iterator[Tab]:
    """Start a browser with an empty profile; it reaches this machine only."""
    from websockets.sync.client import connect

    if PROGRAM is None:
        raise SystemExit("chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        port = _free_port()
        process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
             "--disable-sync", "--disable-component-update", "--no-first-run", f"--user-data-dir={profile}",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--remote-debugging-port={port}",
             f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            with connect(_address(port), max_size=2**27) as socket:
                tab = Tab(socket)
                tab.send("Page.enable")
                yield tab
        finally:
            process.terminate()
            process.wait(timeout=30)
            time.sleep(0.5)  # its children close the profile


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _address(port: int) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
                connection.request("GET", "/json/list")
                pages = [page for page in json.loads(connection.getresponse().read()) if page["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        except (OSError, ValueError, http.client.HTTPException):
            pass
        time.sleep(0.1)
    raise SystemExit("chromium did not start")
