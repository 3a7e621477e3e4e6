"""A security key in software: signs as an ed25519-sk key does, with or without the touch, so that ssh-keygen agrees."""

from __future__ import annotations

import base64
import hashlib
import os
import struct

KIND = b"sk-ssh-ed25519@openssh.com"
APPLICATION = b"ssh:"
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, PRIME) % PRIME
Point = tuple[int, int]


def _add(one: Point, other: Point) -> Point:
    """Add two points of the curve −x² + y² = 1 + d x² y² (RFC 8032)."""
    (x1, y1), (x2, y2) = one, other
    product = CURVE * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, PRIME)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, PRIME)
    return x % PRIME, y % PRIME


def _times(factor: int, point: Point) -> Point:
    total = (0, 1)
    while factor:
        total = _add(total, point) if factor & 1 else total
        point, factor = _add(point, point), factor >> 1
    return total


def _base() -> Point:
    y = 4 * pow(5, -1, PRIME) % PRIME
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, PRIME)
    x = pow(square, (PRIME + 3) // 8, PRIME)
    x = x if x * x % PRIME == square % PRIME else x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    return (PRIME - x if x & 1 else x), y


def _packed(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _text(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


class SecurityKey:
    """What a key in hardware would do."""

    def __init__(self) -> None:
        secret = hashlib.sha512(os.urandom(32)).digest()
        self._factor = int.from_bytes(secret[:32], "little") & (2**254 - 8) | 2**254
        self._prefix, self._public = secret[32:], _packed(_times(self._factor, _base()))
        self._blob = _text(KIND, self._public, APPLICATION)

    @property
    def line(self) -> str:
        """The key as a signers file lists it."""
        return f"{KIND.decode()} {base64.b64encode(self._blob).decode()}"

    def sign(self, message: bytes, *, namespace: str, is_touched: bool) -> str:
        """Return the armoured signature, as OpenSSH's PROTOCOL.sshsig and PROTOCOL.u2f have it."""
        digest = hashlib.sha512(message).digest()
        signed = b"SSHSIG" + _text(namespace.encode(), b"", b"sha512", digest)
        flags = struct.pack(">BI", 1 if is_touched else 0, 7)
        proof = self._prove(hashlib.sha256(APPLICATION).digest() + flags + hashlib.sha256(signed).digest())
        made = _text(KIND, proof) + flags
        whole = b"SSHSIG" + struct.pack(">I", 1) + _text(self._blob, namespace.encode(), b"", b"sha512", made)
        body = base64.encodebytes(whole).decode()
        return f"-----BEGIN SSH SIGNATURE-----\n{body}-----END SSH SIGNATURE-----\n"

    def _prove(self, message: bytes) -> bytes:
        nonce = _number(self._prefix, message) % ORDER
        point = _packed(_times(nonce, _base()))
        challenge = _number(point, self._public, message) % ORDER
        return point + ((nonce + challenge * self._factor) % ORDER).to_bytes(32, "little")
