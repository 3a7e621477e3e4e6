"""Parser of SSH signatures: the kind of key, and whether a security key was touched.

The format is OpenSSH's PROTOCOL.sshsig and PROTOCOL.u2f. `ssh-keygen` verifies a signature; this module only reads it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass

BEGIN = "-----BEGIN SSH SIGNATURE-----"
END = "-----END SSH SIGNATURE-----"
MAGIC = b"SSHSIG"
PRESENT = 0x01
"""The flag that a security key sets when a person touched it."""


@dataclass(frozen=True)
class SshSignature:
    """The key type of a signature, and whether the key was touched."""

    key: str
    was_touched: bool

    @property
    def needs_touch(self) -> bool:
        """Whether a hardware key made it after a touch."""
        return self.key.startswith("sk-") and self.was_touched


def read(armoured: str) -> SshSignature:
    """Read a signature; raise `ValueError` if it is not one."""
    blob = _Blob(_body(armoured))
    if blob.take(len(MAGIC)) != MAGIC or blob.number() != 1:
        raise ValueError("not an SSH signature")
    key = _Blob(blob.text()).text().decode("ascii", "replace")
    for _ in ("namespace", "reserved", "hash"):
        blob.text()
    signature = _Blob(blob.text())
    kind = signature.text()
    signature.text()  # the signature's own bytes
    was_touched = kind.startswith(b"sk-") and bool(signature.take(1)[0] & PRESENT)
    return SshSignature(key, was_touched)


def _body(armoured: str) -> bytes:
    text = armoured.strip()
    if not text.startswith(BEGIN) or not text.endswith(END):
        raise ValueError("not an SSH signature")
    try:
        return base64.b64decode("".join(text[len(BEGIN) : -len(END)].split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not an SSH signature: {error}") from None


class _Blob:
    """A buffer that is read from its front, in SSH's encoding: every text has its length before it."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def take(self, count: int) -> bytes:
        if len(self._left) < count:
            raise ValueError("an SSH signature that ends too early")
        taken = self._left[:count]
        self._left = self._left[count:]
        return taken

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def text(self) -> bytes:
        return self.take(self.number())
