"""What a signature of ssh's says of itself: the kind of key it was made with, and whether that key was touched.

The format is OpenSSH's PROTOCOL.sshsig and PROTOCOL.u2f; `ssh-keygen` proves it, this only reads it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass

BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
MAGIC = b"SSHSIG"
PRESENT = 0x01
"""The flag of a security key for somebody who was there and touched it."""


@dataclass(frozen=True)
class Made:
    """How a signature was made."""

    key: str
    was_touched: bool

    @property
    def needs_touch(self) -> bool:
        """Whether the key lies in hardware that asks for a touch, and was touched."""
        return self.key.startswith("sk-") and self.was_touched


def read(armoured: str) -> Made:
    """Read a signature; `ValueError` where it is none."""
    blob = _Blob(_body(armoured))
    if blob.take(len(MAGIC)) != MAGIC or blob.number() != 1:
        raise ValueError("not an SSH signature")
    key = _Blob(blob.text()).text().decode("ascii", "replace")
    for _ in ("namespace", "reserved", "hash"):
        blob.text()
    made = _Blob(blob.text())
    kind, _ = made.text(), made.text()
    flags = made.take(1)[0] if kind.startswith(b"sk-") else 0
    return Made(key, bool(flags & PRESENT))


def _body(armoured: str) -> bytes:
    text = armoured.strip()
    if not text.startswith(BEGIN) or not text.endswith(END):
        raise ValueError("not an SSH signature")
    try:
        return base64.b64decode("".join(text[len(BEGIN) : -len(END)].split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not an SSH signature: {error}") from None


class _Blob:
    """Bytes that are read from their front, as ssh writes them: lengths first."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def take(self, count: int) -> bytes:
        taken, self._left = self._left[:count], self._left[count:]
        if len(taken) < count:
            raise ValueError("an SSH signature that ends too early")
        return taken

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def text(self) -> bytes:
        return self.take(self.number())
