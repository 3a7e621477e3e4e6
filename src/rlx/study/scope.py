"""What a candidate changed in the files of the project, and which of it the contract does not allow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """One path that differs from the baseline; modes are git's (`100644`, `120000` a link), `other` for no file.

    Of a link the content is its target. A rename is told twice: as a deletion, and as an addition with its source.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode_before: str | None = None
    mode_after: str | None = None
    renamed_from: str | None = None
