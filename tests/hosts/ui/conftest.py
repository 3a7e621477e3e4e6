"""A dashboard on a free port, asked over real sockets."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.rig.browser import Tab, browser
from rlx.runs.run import Run
from tests.conftest import wait_until

TOKEN = "correct-horse-battery-staple"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Dashboard:
    """A running server and how a browser asks it."""

    root: Path
    port: int
    cookie: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Reply:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        sent = {"Cookie": self.cookie, **self.extra, **named}
        if body is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=body, headers={key: value for key, value in sent.items() if value})
            answer = connection.getresponse()
            return Reply(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def page(self, path: str) -> str:
        reply = self.ask(path)
        assert reply.status == 200, f"{path}: {reply.status} {reply.text[:400]}"
        return reply.text


@contextlib.contextmanager
def serving(root: Path) -> Iterator[Dashboard]:
    """Serve a project on a free port."""
    pytest.importorskip("starlette", reason="the extra `ui` is not installed")
    from rlx.hosts.ui.server import listen, server_of

    listener = listen(0)
    port = listener.getsockname()[1]
    server = server_of(root, listener, token=TOKEN)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield Dashboard(root, port, cookie=f"rlx_ui_{port}={TOKEN}")
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        with contextlib.suppress(OSError):
            listener.close()


@pytest.fixture
def dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    (tmp_path / "rlx.toml").touch()
    with serving(tmp_path) as opened:
        yield opened


@pytest.fixture
def pair(make_run: Callable[..., Run]) -> tuple[Run, Run]:
    """Two runs of three seeds each, with curves."""
    worse = make_run("slow", seeds={seed: [10.0 + seed, 20.0, 30.0] for seed in range(3)}, group="a")
    better = make_run("quick", seeds={seed: [50.0 + seed, 80.0, 90.0] for seed in range(3)}, group="b")
    return worse, better


@pytest.fixture(scope="module")
def tab(served: Dashboard) -> Iterator[Tab]:
    """A browser that has the token of the module's own `served` dashboard."""
    pytest.importorskip("websockets", reason="the browser is driven over a websocket")
    with browser() as opened:
        opened.open(f"{served.origin}/?token={TOKEN}")
        yield opened
