"""The new complete lines of a text file that another program is writing."""

from __future__ import annotations

from pathlib import Path

HEAD_BYTES = 8192
LONGEST_LINE = 1_000_000


class FileTail:
    """Remembers how far it has read; a file that was replaced, truncated or rewritten is read again from its start."""

    def __init__(self) -> None:
        self._offset = 0
        self._head = b""
        self._inode = 0
        self.restarts = 0

    def lines(self, path: Path, *, is_last: bool = False) -> list[str]:
        """Return the new lines; with `is_last` also a last line without a line end."""
        try:
            with path.open("rb") as stream:
                self._restart_if_replaced(stream.read(HEAD_BYTES), path)
                stream.seek(self._offset)
                content = stream.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return []
        end = content.rfind(b"\n") + 1
        if is_last or (end == 0 and len(content) > LONGEST_LINE):
            end = len(content)
        self._offset += end
        lines = content[:end].decode("utf-8", "replace").split("\n")
        if not lines[-1]:
            lines.pop()
        return [line.removesuffix("\r") for line in lines]

    def _restart_if_replaced(self, head: bytes, path: Path) -> None:
        status = path.stat()
        is_same = self._inode == status.st_ino and head.startswith(self._head) and status.st_size >= self._offset
        if self._offset and not is_same:
            self._offset = 0
            self.restarts += 1
        self._inode = status.st_ino
        self._head = head
