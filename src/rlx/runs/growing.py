"""A text file that somebody else is writing: its new lines since the last look, whole ones only."""

from __future__ import annotations

from pathlib import Path

HEAD_BYTES = 8192
LONGEST_LINE = 1_000_000


class Growing:
    """Remembers how far it has read; a file that was replaced, cut or rewritten from its start is read anew."""

    def __init__(self) -> None:
        self._offset = 0
        self._head = b""
        self._inode = 0
        self.restarts = 0

    def lines(self, path: Path, *, is_last: bool = False) -> list[str]:
        """Return the new lines; with `is_last` also one that has no end."""
        try:
            with path.open("rb") as stream:
                self._look_again(stream.read(HEAD_BYTES), path)
                stream.seek(self._offset)
                content = stream.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return []
        end = len(content) if is_last else content.rfind(b"\n") + 1
        if not is_last and end == 0 and len(content) > LONGEST_LINE:
            end = len(content)  # nobody's line
        self._offset += end
        lines = content[:end].decode("utf-8", "replace").split("\n")
        return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]

    def _look_again(self, head: bytes, path: Path) -> None:
        status = path.stat()
        is_same = self._inode == status.st_ino and head.startswith(self._head) and status.st_size >= self._offset
        if self._offset and not is_same:
            self._offset = 0
            self.restarts += 1
        self._inode = status.st_ino
        self._head = head
