"""Find data in a code change: a reader should look at long texts, tables of numbers and binary files.

Weights that were trained elsewhere can be written into code as a text or as numbers. rlx cannot tell such data from an
honest table, so it names the place and size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_NUMBERS = 200
LONGEST_WORD = 400
_FILE = re.compile(rb"^\+\+\+ (?:b/)?(.*)$")
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d[\w.]*")
_WORD = re.compile(rb"[\w+/=.\\-]{%d,}" % LONGEST_WORD)


def large_literals(patch: bytes) -> list[str]:
    """Return the files of a patch whose added lines hold much data, with its kind and size."""
    added: dict[str, list[bytes]] = {}
    binary = []
    file = ""
    for line in patch.split(b"\n"):
        match = _FILE.match(line)
        if match:
            file = match[1].decode("utf-8", "replace")
        elif line.startswith((b"GIT binary patch", b"Binary files ")):
            binary.append(file)
        elif line.startswith(b"diff --git "):
            file = line.rpartition(b" b/")[2].decode("utf-8", "replace")
        elif line.startswith(b"+"):
            added.setdefault(file, []).append(line[1:])
    found = [f"{name}: a binary file" for name in binary]
    for name, lines in added.items():
        found += _data_in(name, b"\n".join(lines))
    return found


def _data_in(name: str, text: bytes) -> Iterator[str]:
    words = sum(map(len, _WORD.findall(text)))
    numbers = len(_NUMBER.findall(text))
    if words:
        yield f"{name}: {words:,} characters of text without a blank"
    elif numbers > MOST_NUMBERS:
        yield f"{name}: {numbers:,} numbers"
