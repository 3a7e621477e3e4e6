"""Ask a language model: an OpenAI-compatible URL, Anthropic, Ollama, or a program. The key stays in the environment.

| endpoint | where | key |
|---|---|---|
| `https://host/v1`, `https://host/v1#MODEL` | POST /chat/completions | RLX_LLM_API_KEY, else OPENAI_API_KEY |
| `openai:MODEL` | OPENAI_BASE_URL or api.openai.com | the same |
| `anthropic:MODEL` | ANTHROPIC_BASE_URL or api.anthropic.com | ANTHROPIC_API_KEY |
| `ollama:MODEL` | OLLAMA_HOST or 127.0.0.1:11434 | none |
| `cmd:PROGRAM ARGUMENTS` | JSON on its standard input, JSON on its standard output | none |

Redirects are not followed, so a key never goes to another host. An answer has a time limit and a size limit.
"""

from __future__ import annotations

import json
import os
import shlex
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlx.errors import RlxError, UsageError
from rlx.external_programs import ask_program
from rlx.search.planners.llm_answer import LARGEST_ANSWER

DEFAULT_SECONDS = 120.0
LONGEST_ANSWER = 4 * LARGEST_ANSWER
HINT = "an endpoint is a URL, openai:MODEL, anthropic:MODEL, ollama:MODEL or cmd:PROGRAM"


class PlannerFailed(RlxError):
    """The planner gave no usable answer: a timeout, an error of the server, or an answer that is too long."""


@dataclass(frozen=True)
class Endpoint:
    """Where a language model is asked, and how long an answer may take."""

    text: str
    seconds: float = DEFAULT_SECONDS

    def __post_init__(self) -> None:
        if not self.text:
            raise UsageError(
                "--planner llm needs an endpoint", hint="--llm cmd:PROGRAM, --llm ollama:MODEL or --llm URL"
            )
        if not self.text.startswith(("http://", "https://", "openai:", "anthropic:", "ollama:", "cmd:")):
            raise UsageError(f"`{self.text}` is not an endpoint of a language model", hint=HINT)
        if self.text.startswith("http") and ("@" in self.text or "?" in self.text):
            message = "a URL with a user or a query may hold a key, which a log would keep"
            raise UsageError(message, hint="set RLX_LLM_API_KEY, and give the URL without it")
        if self.text.endswith(":"):
            raise UsageError(f"`{self.text}` names no model or program", hint=HINT)

    def ask(self, question: Mapping[str, Any]) -> str:
        """Return the answer as text; raise `PlannerFailed` if there is none."""
        kind, _, rest = self.text.partition(":")
        if kind == "cmd":
            return self._ask_program(shlex.split(rest), question)
        if kind == "anthropic":
            return self._ask_anthropic(rest, question)
        if kind == "ollama":
            return self._ask_ollama(rest, question)
        if kind == "openai":
            base = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
            return self._ask_openai(base, rest, question)
        url, _, model = self.text.partition("#")
        return self._ask_openai(url, model or os.environ.get("RLX_LLM_MODEL", "default"), question)

    def _ask_program(self, argv: list[str], question: Mapping[str, Any]) -> str:
        try:
            output = ask_program(argv, json.dumps(question).encode(), seconds=self.seconds, most=LONGEST_ANSWER)
        except (OSError, ValueError) as error:
            raise PlannerFailed(f"the planner `{argv[0]}` failed: {error}", hint=HINT) from None
        return output.decode("utf-8", "replace")

    def _ask_openai(self, base: str, model: str, question: Mapping[str, Any]) -> str:
        key = os.environ.get("RLX_LLM_API_KEY") or os.environ.get("OPENAI_API_KEY") or ""
        headers = {}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        body = {"model": model, "messages": messages(question), "response_format": {"type": "json_object"}}
        answer = self._post(f"{base.rstrip('/')}/chat/completions", headers, body)
        return _text(answer, "choices", 0, "message", "content")

    def _ask_anthropic(self, model: str, question: Mapping[str, Any]) -> str:
        base = os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01"}
        system, user = messages(question)
        body = {"model": model, "max_tokens": 4096, "system": system["content"], "messages": [user]}
        return _text(self._post(f"{base.rstrip('/')}/v1/messages", headers, body), "content", 0, "text")

    def _ask_ollama(self, model: str, question: Mapping[str, Any]) -> str:
        base = os.environ.get("OLLAMA_HOST") or "http://127.0.0.1:11434"
        if not base.startswith("http"):
            base = f"http://{base}"
        body = {"model": model, "messages": messages(question), "stream": False, "format": "json"}
        return _text(self._post(f"{base.rstrip('/')}/api/chat", {}, body), "message", "content")

    def _post(self, url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(  # noqa: S310  the user names the URL, and only http(s) gets here
            url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method="POST"
        )
        opener = urllib.request.build_opener(_NoRedirect)
        try:
            with opener.open(request, timeout=self.seconds) as response:
                content = _read(response, time.monotonic() + self.seconds)
            return json.loads(content)
        except urllib.error.HTTPError as error:
            raise PlannerFailed(f"the language model's server answered {error.code}", hint=HINT) from None
        except (OSError, ValueError, RecursionError) as error:  # no connection, a timeout, not JSON
            reason = getattr(error, "reason", None) or error
            raise PlannerFailed(f"the language model did not answer: {reason}", hint=HINT) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: another host must not get the key."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def _read(response: Any, deadline: float) -> bytes:
    """Read an answer within its limits, also from a server that sends a byte now and then."""
    content = b""
    while time.monotonic() < deadline:
        chunk = response.read1(65536)
        if not chunk:
            return content
        content += chunk
        if len(content) > LONGEST_ANSWER:
            raise PlannerFailed(f"the language model's answer is longer than {LONGEST_ANSWER:,} bytes", hint=HINT)
    raise PlannerFailed("the language model took too long to answer", hint=HINT)


def messages(question: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a question as a system message and a user message, which is pure JSON."""
    data = {key: value for key, value in question.items() if key != "instruction"}
    return (
        {"role": "system", "content": str(question["instruction"])},
        {"role": "user", "content": json.dumps(data)},
    )


def _text(answer: Any, *path: str | int) -> str:
    """Return the text at a place of an answer."""
    for part in path:
        try:
            answer = answer[part]
        except (KeyError, IndexError, TypeError):
            raise PlannerFailed(f"the language model's answer has no `{part}`", hint=HINT) from None
    if not isinstance(answer, str):
        raise PlannerFailed("the language model's answer is not text", hint=HINT)
    return answer
