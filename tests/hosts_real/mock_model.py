"""A model that follows a script, on 127.0.0.1: real clients are driven by it without network or account.

A step is a tool call (`Call`), a text, or a function of the results so far that returns one of them (or None: skip it).
Past the end it says "done". Every request's body is kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool and what it is given; `namespace` is Codex's for MCP tools, `patch` for apply_patch."""

    tool: str
    given: dict[str, Any] = field(default_factory=dict)
    namespace: str | None = None
    patch: str | None = None


Step = Call | str
Later = Callable[[list[str]], Step | None]


def selected(*names: str) -> list[Step | Later]:
    """Select deferred tools of Claude Code's, again while their server is not connected yet."""
    search = Call("ToolSearch", {"query": f"select:{','.join(names)}", "max_results": len(names)})

    def once_more(results: list[str]) -> Step | None:
        return None if "tool_reference" in results[-1] else search

    def pause(results: list[str]) -> Step | None:
        return None if "tool_reference" in results[-1] else Call("Bash", {"command": "sleep 5", "description": "wait"})

    return [search, *[pause, once_more] * 12]


class MockModel:
    """Serves both hosts' protocols; use as a context manager."""

    def __init__(self, steps: Sequence[Step | Later]) -> None:
        self.steps = list(steps)
        self.requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    def __enter__(self) -> MockModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def next_step(self, body: dict[str, Any]) -> Step:
        with self._lock:
            self.requests.append(body)
            while self.steps:
                step = self.steps.pop(0)
                said = step(self.results()) if callable(step) else step
                if said is not None:
                    return said
            return "done"

    def results(self) -> list[str]:
        """Return what the client gave back for each tool call, in order, as text."""
        if not self.requests:
            return []
        last = self.requests[-1]
        if "messages" in last:
            blocks = [block for message in last["messages"] if isinstance(message["content"], list)
                      for block in message["content"] if block.get("type") == "tool_result"]  # fmt: skip
            return [json.dumps(block.get("content"), ensure_ascii=False) for block in blocks]
        outputs = [item for item in last.get("input", []) if str(item.get("type", "")).endswith("call_output")]
        return [json.dumps(item.get("output"), ensure_ascii=False) for item in outputs]


def _handler(model: MockModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._send(b"", "text/plain")

        def do_GET(self) -> None:
            self._send(b'{"data": []}', "application/json")

        def do_POST(self) -> None:
            body = _decoded(self.rfile.read(int(self.headers.get("content-length") or 0)), self.headers)
            if "count_tokens" in self.path:
                self._send(b'{"input_tokens": 10}', "application/json")
            elif "/responses" in self.path:
                self._send(_responses(model.next_step(body)), "text/event-stream")
            else:
                step = model.next_step(body) if body.get("tools") else "ok"
                self._answer(step, is_stream=bool(body.get("stream")), name=str(body.get("model")))

        def _answer(self, step: Step, *, is_stream: bool, name: str) -> None:
            if is_stream:
                self._send(_messages(step, name), "text/event-stream")
            else:
                text = step if isinstance(step, str) else "ok"
                self._send(json.dumps(_message(name, [{"type": "text", "text": text}])).encode(), "application/json")

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _decoded(content: bytes, headers: Any) -> dict[str, Any]:
    if headers.get("content-encoding") == "zstd":
        import zstandard

        content = zstandard.ZstdDecompressor().stream_reader(content).read()
    document: dict[str, Any] = json.loads(content or b"{}")
    return document


def _events(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _message(name: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": name, "content": content,
            "stop_reason": "end_turn" if content else None, "stop_sequence": None, "usage": usage}  # fmt: skip


_numbers = iter(range(1, 1_000_000))


def _messages(step: Step, name: str) -> bytes:
    """Anthropic's event stream of one step."""
    if isinstance(step, str):
        block, delta, why = {"type": "text", "text": ""}, {"type": "text_delta", "text": step}, "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{next(_numbers)}", "name": step.tool, "input": {}}  # type: ignore[dict-item]
        delta, why = {"type": "input_json_delta", "partial_json": json.dumps(step.given)}, "tool_use"
    return _events(
        {"type": "message_start", "message": _message(name, [])},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


def _responses(step: Step) -> bytes:
    """OpenAI's event stream of one step."""
    number = next(_numbers)
    item: dict[str, Any]
    if isinstance(step, str):
        content = [{"type": "output_text", "text": step}]
        item = {"type": "message", "id": f"m_{number}", "role": "assistant", "content": content}
    elif step.patch is not None:
        item = {"type": "custom_tool_call", "id": f"c_{number}", "call_id": f"call_{number}", "name": "apply_patch",
                "input": step.patch}  # fmt: skip
    else:
        item = {"type": "function_call", "id": f"f_{number}", "call_id": f"call_{number}", "name": step.tool,
                "arguments": json.dumps(step.given)}  # fmt: skip
        if step.namespace:
            item["namespace"] = step.namespace
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None,
             "total_tokens": 2}  # fmt: skip
    return _events(
        {"type": "response.created", "response": {"id": f"r_{number}"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": f"r_{number}", "usage": usage}},
    )
