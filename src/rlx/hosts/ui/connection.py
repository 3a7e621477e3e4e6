"""A connection of the server. A client that stops sending or reading is disconnected, so that it holds no place."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_SECONDS = 10.0
"""The time between two checks. A client without progress from one check to the next is disconnected."""
UNFINISHED = (h11.IDLE, h11.SEND_BODY)
"""The states of a client that still has to send something."""


class Connection(H11Protocol):
    """HTTP/1.1 of uvicorn, which by itself waits forever for the rest of a request."""

    _last_wait: tuple[object, ...] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE_SECONDS, self._check_progress)

    def _check_progress(self) -> None:
        if self.transport.is_closing():
            return
        wait = self._awaited()
        if wait is not None and wait == self._last_wait:
            self.transport.abort()
            return
        self._last_wait = wait
        self.loop.call_later(PATIENCE_SECONDS, self._check_progress)

    def _awaited(self) -> tuple[Any, ...] | None:
        """Return the request and the unread bytes that the server waits for; None if the client waits for the server.

        The scope stands for the request. Bytes received do not count: one byte per second is not progress.
        """
        unread = self.transport.get_write_buffer_size()
        if unread:
            return id(self.scope), unread
        if self.conn.their_state in UNFINISHED:
            return id(self.scope), 0
        return None
