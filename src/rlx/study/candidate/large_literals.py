"""Find data in a code change: a reader should look at long texts, tables of numbers and binary files.

Weights that were trained elsewhere can be written into code as a text or as numbers, also in many short lines and over
many files. rlx cannot tell such data from an honest table, so it names the place and size.
Not covered: data in disguise, for example as the order of ordinary words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MOST_NUMBERS = 200
MOST_CHARACTERS = 400
LONG_TOKEN = 40
LETTERS_PER_CHANGE = 5
"""Names change between small letters, capitals and digits more rarely than this; encoded data changes more often."""
NUMBERS = "numbers"
UNBROKEN = "characters of text without a blank"
ENCODED = "characters that look like encoded data"
FOREIGN = "characters outside ASCII without a blank"
_MOST = {UNBROKEN: 0, ENCODED: MOST_CHARACTERS, FOREIGN: MOST_CHARACTERS, NUMBERS: MOST_NUMBERS}
_FILE = re.compile(rb"^\+\+\+ (?:b/)?(.*)$")
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d[\w.]*|\\x[0-9a-fA-F]{2}|\\[0-7]{3}|\\u[0-9a-fA-F]{4}")
_WORD = re.compile(rb"[\w+/=.\\-]{%d,}" % MOST_CHARACTERS)
_TOKEN = re.compile(rb"[A-Za-z0-9]{8,}")
_FOREIGN_WORD = re.compile(rf"[^\x00-\x7f\s，。；：、！？（）「」]{{{LONG_TOKEN},}}")  # longer than a clause in Chinese
_CHANGE = re.compile(rb"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")


def large_literals(patch: bytes) -> list[str]:
    """Return the files of a patch whose added lines hold much data, with its kind and size.

    Data that is little in each file and much in all of them is named last.
    """
    added: dict[str, list[bytes]] = {}
    binary = []
    file = ""
    before = b""
    for line in patch.split(b"\n"):
        match = _FILE.match(line)
        if match and before.startswith(b"--- "):  # an added line may look like a file's name
            file = match[1].decode("utf-8", "replace")
        elif line.startswith((b"GIT binary patch", b"Binary files ")):
            binary.append(file)
        elif line.startswith(b"diff --git "):
            file = line.rpartition(b" b/")[2].decode("utf-8", "replace")
        elif line.startswith(b"+"):
            added.setdefault(file, []).append(line[1:])
        before = line
    found = [f"{name}: a binary file" for name in binary]
    rest: Counter[str] = Counter()
    for name, lines in added.items():
        sizes = _sizes(b"\n".join(lines))
        named = list(_above(sizes))
        found += [f"{name}: {text}" for text in named[:1]]
        if not named:
            rest.update(sizes)
    return [*found, *(f"{len(added)} files together: {text}" for text in list(_above(rest))[:1])]


def _above(sizes: Counter[str]) -> Iterator[str]:
    return (f"{sizes[kind]:,} {kind}" for kind, most in _MOST.items() if sizes[kind] > most)


def _sizes(text: bytes) -> Counter[str]:
    """Return how much data of each kind a text holds."""
    tokens = _TOKEN.findall(text)
    sizes: Counter[str] = Counter()
    sizes[UNBROKEN] = sum(map(len, _WORD.findall(text)))
    sizes[ENCODED] = sum(len(token) for token in tokens if _is_encoded(token))
    sizes[FOREIGN] = sum(map(len, _FOREIGN_WORD.findall(text.decode("utf-8", "replace"))))
    sizes[NUMBERS] = len(_NUMBER.findall(text))
    return sizes


def _is_encoded(token: bytes) -> bool:
    return len(token) >= LONG_TOKEN or len(_CHANGE.findall(token)) * LETTERS_PER_CHANGE >= len(token)
