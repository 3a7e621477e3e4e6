"""Who may talk to the server: the Host header, the token, the origin of a form, and the sources of a page."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from rlx.hosts.ui.layout import problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Another name means that a foreign site was made to point here (DNS rebinding)."""
LONGEST_ADDRESS = 16_384
YEAR = 31_536_000
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


def form_token(token: str) -> str:
    """Return the value that forms send back: pages know it, other sites cannot."""
    return hmac.new(token.encode(), b"rlx form", hashlib.sha256).hexdigest()


class RequestGuard:
    """Wraps the application: refuses requests of anyone but this machine's user, and sets all headers."""

    def __init__(self, app: App, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"rlx_ui_{port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal:
            await self._refuse(send, *refusal)
            return
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        if given is not None and self._is_token(given):
            rest = [(key, value) for key, value in query if key != "token"]
            await self._welcome(scope, send, rest)
            return
        if not self._is_token(self._cookie_of(headers)):
            await self._refuse(send, 403, "This page needs its token.", "open the address that `rlx ui` printed")
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                present = {key.lower() for key, _ in message["headers"]}
                extra = [
                    (key.encode(), value.encode()) for key, value in HEADERS.items() if key.encode() not in present
                ]
                if b"cache-control" not in present:
                    extra.append((b"cache-control", b"no-store"))
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        if len(scope["raw_path"] or b"") + len(scope["query_string"]) > LONGEST_ADDRESS:
            return 414, "This address is too long.", "select fewer runs"
        if _host_name(headers.get("host", "")) not in OWN_NAMES:
            return 421, "This server answers only to 127.0.0.1 and localhost.", "open the address that `rlx ui` printed"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "This method is not known here.", ""
        if scope["method"] == "POST":
            origin = headers.get("origin", "")
            same_host = urlsplit(origin).netloc == headers["host"]
            if not same_host or headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return 403, "A form of another site cannot change anything here.", ""
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _cookie_of(self, headers: dict[str, str]) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return morsel.value if morsel else ""

    async def _welcome(self, scope: Scope, send: Send, query: list[tuple[str, str]]) -> None:
        """Keep the token in a cookie and take it out of the address, where others could read it."""
        path = scope["raw_path"].decode("latin-1").partition("?")[0]
        target = "/" + path.lstrip("/")
        if query:
            target += "?" + urlencode(query)
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={YEAR}"
        await _answer(send, 303, b"", {"location": target, "set-cookie": cookie})

    async def _refuse(self, send: Send, status: int, message: str, hint: str) -> None:
        page = f"<!doctype html><html lang=en><meta charset=utf-8><title>rlx</title>{problem(message, hint)}</html>"
        await _answer(send, status, page.encode(), {"content-type": "text/html; charset=utf-8"})


def _host_name(host: str) -> str:
    """Return a Host header without its port. The port may differ, as with `ssh -L`."""
    name, _, port = host.rpartition(":")
    if port.isdigit() and name:
        return name.lower()
    return host.lower()


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    pairs = {**HEADERS, "cache-control": "no-store", "content-length": str(len(body)), **headers}
    encoded = [(key.encode(), value.encode("latin-1")) for key, value in pairs.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
