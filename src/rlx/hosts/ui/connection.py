"""A connection of the server: a client that neither sends nor reads on is hung up, so that it holds no place."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_SECONDS = 10.0
"""A client that has done nothing twice in a row at this interval is hung up."""
UNFINISHED = (h11.IDLE, h11.SEND_BODY)
"""The states of a client that still has to send something."""


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it; uvicorn itself waits for ever for the rest of a request."""

    _before: tuple[object, ...] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE_SECONDS, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        now = self._standstill()
        if now is not None and now == self._before:
            self.transport.abort()
            return
        self._before = now
        self.loop.call_later(PATIENCE_SECONDS, self._look)

    def _standstill(self) -> tuple[Any, ...] | None:
        """Return what the server waits for from this client; None if the client waits for the server.

        The request is named by its scope, not by its bytes: one byte per second is not progress.
        """
        unread = self.transport.get_write_buffer_size()
        if unread:
            return id(self.scope), unread
        if self.conn.their_state in UNFINISHED:
            return id(self.scope), 0
        return None
