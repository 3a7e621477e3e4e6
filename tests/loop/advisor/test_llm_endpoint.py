"""A language model on a scripted server of this machine, or as a program: every kind of answer ends, with an audit."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlx.errors import UsageError
from rlx.loop.advisor.llm_endpoint import Endpoint, PlannerFailed
from rlx.loop.advisor.llm_vote import LlmPlanner
from rlx.search.observation import Observation
from rlx.search.parse_space import parse_space

SPACE = parse_space(["algo.gamma=0.9,0.95,0.99", "algo.epochs=int:1:20"], read=yaml.safe_load)
BASE = {"algo.gamma": 0.99, "algo.epochs": 4}
KEY = "sk-very-secret"


def proposal(**changes: Any) -> str:
    listed = [{"key": key.replace("__", "."), "value": value} for key, value in changes.items()]
    return json.dumps({"proposals": [{"changes": listed}]})


GOOD = proposal(algo__gamma=0.9)


class ScriptedServer:
    """Answers each request with the next script: text for the model's message, or (status, body)."""

    def __init__(self, handler: Callable[[str], Any]) -> None:
        self.asked: list[tuple[str, Mapping[str, str], dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, dict(self.headers), body))
                status, content = handler(self.path)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{outer.url}/elsewhere")
                self.end_headers()
                try:
                    for chunk in content:
                        self.wfile.write(chunk)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_arguments: Any) -> None:
                """Stay quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def spoken(path: str, text: str) -> bytes:
    """Return a model's message in the form of each API."""
    if path.endswith("/chat/completions"):
        document: dict[str, Any] = {"choices": [{"message": {"content": text}}]}
    elif path.endswith("/messages"):
        document = {"content": [{"type": "text", "text": text}]}
    else:
        document = {"message": {"content": text}}
    return json.dumps(document).encode()


@pytest.fixture
def serve() -> Iterator[Callable[..., ScriptedServer]]:
    servers: list[ScriptedServer] = []

    def start(*texts: str, handler: Callable[[str], Any] | None = None) -> ScriptedServer:
        answers = list(texts)

        def scripted(path: str) -> tuple[int, list[bytes]]:
            text = answers.pop(0) if len(answers) > 1 else answers[0]
            return 200, [spoken(path, text)]

        servers.append(ScriptedServer(handler or scripted))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def planned(endpoint: Endpoint, *, count: int = 1, is_strict: bool = False) -> tuple[list[Any], Mapping[str, Any]]:
    """Ask for configs; return them and the audit row."""
    audits: list[Mapping[str, Any]] = []
    planner = LlmPlanner(endpoint, is_strict=is_strict, audited=audits.append, data={"run": "tiny_001"})
    accepted = planner.propose(SPACE, BASE, [Observation(BASE, 1.0)], count)
    assert len(audits) == 1
    return accepted, audits[0]


def test_each_api_is_asked_in_its_own_form(
    serve: Callable[..., ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(GOOD)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    for name in ("RLX_LLM_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for text in (f"{server.url}/v1#some", "openai:some", "anthropic:some", "ollama:some"):
        accepted, audit = planned(Endpoint(text, 5.0))
        assert accepted[0].values == {**BASE, "algo.gamma": 0.9}
        assert KEY not in json.dumps(audit)
    assert [path for path, _, _ in server.asked] == [
        "/v1/chat/completions", "/v1/chat/completions", "/v1/messages", "/api/chat",
    ]  # fmt: skip
    assert all(body["model"] == "some" for _, _, body in server.asked)
    assert KEY in str(server.asked[0][1])
    assert KEY in str(server.asked[2][1])
    assert KEY not in json.dumps([body for _, _, body in server.asked])


def test_a_rejected_proposal_is_repaired_in_the_second_round(serve: Callable[..., ScriptedServer]) -> None:
    server = serve(proposal(env__id="Evil-v0"), f"Here you are: {GOOD}")
    accepted, audit = planned(Endpoint(f"{server.url}/v1", 5.0))

    assert len(accepted) == 1
    assert (audit["rounds"], len(audit["rejected"])) == (2, 1)
    assert "not a key of the space" in server.asked[1][2]["messages"][1]["content"]


def test_after_two_repairs_it_gives_up_and_the_rest_takes_over(serve: Callable[..., ScriptedServer]) -> None:
    server = serve("no json at all")
    accepted, audit = planned(Endpoint(f"{server.url}/v1", 5.0))

    assert accepted == []
    assert (audit["rounds"], len(audit["rejected"])) == (3, 3)
    with pytest.raises(PlannerFailed, match="no usable proposal"):
        planned(Endpoint(f"{server.url}/v1", 5.0), is_strict=True)


def _slow(_path: str) -> tuple[int, Iterator[bytes]]:
    def drip() -> Iterator[bytes]:
        for _ in range(100):
            time.sleep(0.1)
            yield b" "

    return 200, drip()


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (lambda _path: (500, [b"boom"]), "answered 500"),
        (lambda _path: (302, [b""]), "answered 302"),
        (lambda _path: (200, [b"not json"]), "did not answer"),
        (lambda _path: (200, [b'{"choices": []}']), "has no"),
        (lambda _path: (200, [b"x" * 1_000_000] * 10), "longer than"),
        (_slow, "too long"),
    ],
)
def test_a_broken_server_is_an_audit_row_and_never_hangs(
    serve: Callable[..., ScriptedServer], handler: Callable[[str], Any], reason: str
) -> None:
    server = serve(handler=handler)
    began = time.monotonic()
    accepted, audit = planned(Endpoint(f"{server.url}/v1", 0.5))

    assert accepted == []
    assert reason in audit["failure"]
    assert time.monotonic() - began < 10
    assert len(server.asked) == 1  # a redirect is not followed


def test_a_server_that_is_not_there_fails_at_once() -> None:
    assert "did not answer" in planned(Endpoint("http://127.0.0.1:9/v1", 2.0))[1]["failure"]


def test_a_program_reads_json_and_writes_json(tmp_path: Path) -> None:
    program = tmp_path / "planner.py"
    program.write_text(
        "import json, sys\nasked = json.load(sys.stdin)\n"
        "assert asked['base']['algo.gamma'] == 0.99 and asked['data']['run'] == 'tiny_001'\n"
        f"print({GOOD!r})\n"
    )
    assert len(planned(Endpoint(f"cmd:{sys.executable} {program}", 20.0))[0]) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(3)", "exited with 3"),
        ("import time; time.sleep(60)", "no answer within"),
        ("print('x' * 10_000_000)", "longer than"),
    ],
)
def test_a_broken_program_is_an_audit_row(tmp_path: Path, code: str, reason: str) -> None:
    program = tmp_path / "planner.py"
    program.write_text(code)
    assert reason in planned(Endpoint(f"cmd:{sys.executable} {program}", 2.0))[1]["failure"]


@pytest.mark.parametrize("text", ["gpt", "cmd:", "https://me:key@host/v1", "https://host/v1?key=1"])
def test_an_endpoint_that_is_none_or_holds_a_key_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Endpoint(text)
