"""A command line as a value: what to type, whether it can run as it stands, and whether a person has to type it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

_PLAIN_WORD = re.compile(r"[\w@%+=:,.][\w@%+=:,.-]*")


@dataclass(frozen=True)
class Command:
    """One command line; code compares its parts and never parses the printed text."""

    argv: tuple[str, ...]
    is_complete: bool = True
    """False if a word is a placeholder, such as NAME or KEY=VALUE, that somebody has to fill in."""
    needs_person: bool = False
    """True if a person has to type it: an approval, or a change of the person's own files."""
    shell_text: str = ""
    """The text to type if it needs a shell, such as `a && b`; then `argv` runs a shell on it."""

    def __str__(self) -> str:
        return self.shell_text or shlex.join(self.argv)

    def plus(self, *words: str) -> Command:
        """Return this command with further words at its end."""
        return replace(self, argv=(*self.argv, *words))


def shell(text: str, *, needs_person: bool = False) -> Command:
    """Return a command line that only a shell can read."""
    return Command(("sh", "-c", text), needs_person=needs_person, shell_text=text)


def rlx(*words: str, is_complete: bool = True, needs_person: bool = False) -> Command:
    """Return the command `rlx WORDS`."""
    return Command(("rlx", *words), is_complete=is_complete, needs_person=needs_person)


def is_plain_word(text: str) -> bool:
    """Say whether a shell and an option parser read a text as itself. rlx gives no other names to runs."""
    return _PLAIN_WORD.fullmatch(text) is not None
