"""Split a shell line into simple commands, each with the folder in which it runs.

It understands `;`, `&&`, `||`, `|`, `&`, new lines, brackets, `cd`, assignments in front of a command, programs that
start another program (`env`, `timeout`, `uv run` …) and `bash -c TEXT`. It does not see what scripts, Makefiles,
aliases, functions, variables, here-documents, substitutions, `eval` or other programs start.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = frozenset("sh bash zsh dash".split())
PREFIXES = frozenset("env nohup time nice ionice setsid exec command sudo stdbuf taskset timeout uvx export".split())
RUNNERS = frozenset("uv poetry pdm hatch rye pixi conda mamba pipenv".split())
OPTIONS_WITH_VALUE = frozenset("-n -u -g -c -C -k -s -p --chdir --user --directory --project --with --name".split())
KEYWORDS = frozenset("{ } then do else elif if while until ! fi done".split())
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1(.*?)\n(?:.*?\n)??\s*\2(?=\n|$)", flags=re.S)
_COMMENT = re.compile(r"(?m)^\s*#.*$")


def commands(text: str, folder: str) -> Iterator[tuple[list[str], str]]:
    """Yield each simple command of a line as (words, folder)."""
    text = _HERE_DOCUMENT.sub(r"\3", text.replace("\\\n", " "))
    words: list[str] = []
    for token in [*tokens(_COMMENT.sub("", text)), ";"]:
        if token not in KEYWORDS and not set(token) <= set("();|&"):
            words.append(token)
            continue
        words = without_prefixes(words)
        if words:
            yield words, folder
            yield from shell_text(words, folder)
        if words[:1] in (["cd"], ["pushd"]) and len(words) > 1:
            folder = os.path.normpath(os.path.join(folder, os.path.expanduser(words[-1])))
        words = []


def tokens(text: str) -> list[str]:
    """Split a line into words and operators; a line with an open quote is split at blanks and operators."""
    import shlex

    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        found = list(lexer)
    except ValueError:
        found = re.sub(r"([;|&()]+)", r" \1 ", text.replace("\n", " ; ")).split()
    return without_comments(found)


def without_comments(words: list[str]) -> list[str]:
    """Drop the words from `#` to the end of the command."""
    kept: list[str] = []
    is_comment = False
    for word in words:
        is_comment = word.startswith("#") or (is_comment and word != ";")
        if not is_comment:
            kept.append(word)
    return kept


def without_prefixes(words: list[str]) -> list[str]:
    """Return a command without assignments and without the programs that only start it."""
    while words:
        name, sign, _ = words[0].partition("=")
        program = os.path.basename(words[0])
        if sign and name.isidentifier():
            words = words[1:]
        elif program in PREFIXES:
            words = without_options(words[1:])
            if program == "timeout":
                words = words[1:]
        elif program in RUNNERS and words[1:2] == ["run"]:
            words = without_options(words[2:])
        else:
            break
    return words


def without_options(words: list[str]) -> list[str]:
    """Return the words after the options of a program that starts another one."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in OPTIONS_WITH_VALUE else words[1:]
    return words


def shell_text(words: list[str], folder: str) -> Iterator[tuple[list[str], str]]:
    """Yield the simple commands of `bash -c TEXT`."""
    if os.path.basename(words[0]) not in SHELLS:
        return
    for flag, text in zip(words[1:], words[2:]):
        if flag.startswith("-") and not flag.startswith("--") and "c" in flag:
            yield from commands(text, folder)
            return
