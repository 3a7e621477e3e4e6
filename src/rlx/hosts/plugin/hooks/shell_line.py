"""A shell line as a coding agent types it, taken apart into simple commands, each with the folder it runs in.

Followed are `cd`, variables that the line itself sets, `sh -c`, `eval`, here-documents and pipes into a shell,
`find -exec`, `git bisect run`, substitutions, shell scripts, and the targets of a Makefile or justfile. What is not
covered: aliases, functions, arrays, arithmetic, what programs in other languages start.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Simple = tuple[list[str], str]

SHELLS = frozenset("sh bash zsh dash ksh fish".split())
PREFIXES = frozenset("env nohup time nice ionice setsid exec command sudo stdbuf taskset chrt builtin".split())
RUNNERS = frozenset("uv poetry pdm hatch rye pixi conda mamba micromamba pipenv".split())
WITH_VALUE = frozenset("-n -u -g -c -C -k -s -p --chdir --user --directory --project --with --name --prefix".split())
WRAPPERS = frozenset(
    "tmux screen ssh watch script at srun sbatch docker podman su runuser flock parallel xargs".split()
)
KEYWORDS = frozenset("{ } then do else elif if while until ! fi done".split())
MOST_SCRIPTS = 100
DEEPEST = 4
LONGEST_SCRIPT = 65_536
_DOCUMENT = re.compile(r"(?<!<)<<(?!<)-?\s*(['\"]?)([A-Za-z_]\w*)\1")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_QUOTED = re.compile(r"'[^']*'")
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")


def commands(text: str, here: str, seen: frozenset[str] | set[str] = frozenset()) -> list[Simple]:
    """Return the simple commands of a line as (words, folder), and those of every script it has a shell run, once."""
    seen = seen if isinstance(seen, set) else set()
    if text in seen or len(seen) >= MOST_SCRIPTS:
        return []
    seen.add(text)
    text, documents = without_documents(text)
    found: list[Simple] = []
    folder, known = here, {"PWD": here, "HOME": os.path.expanduser("~")}
    for words in simple(text):
        said = stripped([expanded(word, known) for word in words], known)
        if not said:
            continue
        scripts = [*started(said, folder), *piped(found, said, folder)]
        found.append((said, folder))
        for script in scripts:
            found += commands(script, folder, seen)
        if said[0] in ("cd", "pushd") and len(said) > 1:
            folder = known["PWD"] = os.path.normpath(os.path.join(folder, os.path.expanduser(said[-1])))
    for head, body in documents:
        found += document_commands(head, body, folder, seen)
    for one, other in _SUBSTITUTION.findall(_QUOTED.sub("''", text)):
        found += commands(one or other, folder, seen)
    return found


def without_documents(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Take here-documents and comments out; return the rest, and each document with the line that reads it."""
    kept: list[str] = []
    documents: list[tuple[str, str]] = []
    lines = iter(text.replace("\\\n", " ").split("\n"))
    for line in lines:
        if line.lstrip().startswith("#"):
            continue
        kept.append(line)
        for mark in _DOCUMENT.findall(line):
            body = []
            for inner in lines:
                if inner.strip() == mark[1]:
                    break
                body.append(inner)
            documents.append((line, "\n".join(body)))
    return "\n".join(kept), documents


def document_commands(head: str, body: str, folder: str, seen: set[str]) -> list[Simple]:
    """Return what a here-document makes run, by the last program of the line that reads it."""
    readers = [os.path.basename(words[0]) for words in (stripped(each, {}) for each in simple(head)) if words]
    if any(reader in SHELLS or reader == "ssh" for reader in readers):
        return commands(body, folder, seen)
    if any(reader.startswith("python") for reader in readers):
        return [(["python", "-c", body], folder)]
    return []


def simple(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, cut at operators, keywords and comments."""
    words: list[str] = []
    is_comment = False
    for word in [*tokens(text), ";"]:
        if word in KEYWORDS or set(word) <= set("();|&"):
            is_comment = False
            if words:
                yield words
            words = []
        elif word.startswith("#"):
            is_comment = True
        elif not is_comment:
            words.append(word)


def tokens(text: str) -> list[str]:
    """Split a line into words and operators; what does not parse is split at blanks and operators."""
    import shlex

    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return re.sub(r"([;|&()]+)", r" \1 ", text.replace("\n", " ; ")).split()


def expanded(word: str, known: dict[str, str]) -> str:
    """Return a word with the variables that the line itself has set."""
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), word) if "$" in word else word


def stripped(words: list[str], known: dict[str, str]) -> list[str]:
    """Return a command without what only starts another one; assignments go into `known`."""
    words = words[1:] if words[:1] in (["export"], ["declare"], ["local"]) else words
    at = 0
    while at < len(words):
        name, sign, value = words[at].partition("=")
        head = os.path.basename(words[at])
        if sign and name.isidentifier():
            known[name] = value
            at += 1
        elif head in PREFIXES or (head in RUNNERS and words[at + 1 : at + 2] == ["run"]):
            at = after_options(words, at + (2 if head in RUNNERS else 1))
        elif head in ("timeout", "uvx"):
            at = after_options(words, at + 1)
            at += head == "timeout"
        else:
            break
    return words[at:]


def after_options(words: list[str], at: int) -> int:
    """Return where the options of a program that starts another one end."""
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in WITH_VALUE else 1
    return at


def started(words: list[str], folder: str) -> Iterator[str]:
    """Yield every text that a command has a shell run."""
    head = os.path.basename(words[0])
    if head == "eval":
        yield " ".join(words[1:])
    elif head in SHELLS or head in ("source", "."):
        yield from shell_scripts(words, folder)
    elif head in WRAPPERS:
        yield from (word for word in words[1:] if " " in word)
    elif head == "find":
        yield from (" ".join(words[at + 1 :]) for at, word in enumerate(words) if word in ("-exec", "-execdir", "-ok"))
    elif head == "git":
        yield from git_scripts(words)
    elif head in ("make", "gmake", "just"):
        yield from recipes(words, folder)
    elif "/" in words[0] or head.endswith(".sh"):
        text = read(os.path.join(folder, os.path.expanduser(words[0])))
        if head.endswith(".sh") or re.match(r"#!.*\b(?:ba|z|da|k)?sh\b", text):
            yield text


def shell_scripts(words: list[str], folder: str) -> Iterator[str]:
    """Yield the script of `sh -c TEXT`, `sh <<< TEXT`, `sh FILE` and `source FILE`."""
    for flag, following in zip(words[1:], words[2:]):
        if flag == "<<<" or (flag.startswith("-") and not flag.startswith("--") and "c" in flag):
            yield following
            return
    plain = [word for word in words[1:] if not word.startswith(("-", "<", ">"))]
    if plain:
        yield read(os.path.join(folder, os.path.expanduser(plain[0])))


def piped(before: list[Simple], words: list[str], folder: str) -> Iterator[str]:
    """Yield what `echo TEXT | sh` and `cat FILE | sh` have a shell run."""
    is_bare = os.path.basename(words[0]) in SHELLS and not any(not word.startswith("-") for word in words[1:])
    if not is_bare or not before:
        return
    said = before[-1][0]
    if said[0] in ("echo", "printf"):
        yield " ".join(said[1:]).replace("\\n", "\n")
    elif said[0] == "cat":
        yield from (read(os.path.join(folder, word)) for word in said[1:])


def git_scripts(words: list[str]) -> Iterator[str]:
    """Yield what `git bisect run`, `git rebase --exec` and `git submodule foreach` start."""
    if words[1:3] == ["bisect", "run"] or words[1:3] == ["submodule", "foreach"]:
        yield " ".join(words[3:])
    for flag, following in zip(words, words[1:]):
        if words[1:2] == ["rebase"] and flag in ("-x", "--exec"):
            yield following


def recipes(words: list[str], folder: str) -> Iterator[str]:
    """Yield the recipes of the targets that are asked for, and of what these need."""
    places = dict(zip(words, words[1:]))
    folder = os.path.join(folder, places.get("-C") or places.get("--directory") or "")
    names = [places["-f"]] if "-f" in places else ["GNUmakefile", "makefile", "Makefile", "justfile", "Justfile"]
    text = next(filter(None, (read(os.path.join(folder, name)) for name in names)), "")
    rules, first = parsed_rules(text)
    asked = [word for word in words[1:] if not word.startswith("-") and "=" not in word and word in rules] or [first]
    seen: set[str] = set()
    while asked:
        target = asked.pop()
        if target in seen or target not in rules:
            continue
        seen.add(target)
        needed, recipe = rules[target]
        asked += needed
        yield f"cd '{folder}'\n" + "\n".join(line.lstrip("\t @-+") for line in recipe)


def parsed_rules(text: str) -> tuple[dict[str, tuple[list[str], list[str]]], str]:
    """Return {target: (what it needs, its recipe)} and the first target."""
    rules: dict[str, tuple[list[str], list[str]]] = {}
    variables: dict[str, str] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line[:1] in ("\t", " ") and current:
            for target in current:
                rules[target][1].append(_made(line, variables))
            continue
        assignment = re.match(r"(\w+)\s*[:?+]?=\s*(.*)", line)
        rule = re.match(r"([^:=#\s][^:=#]*)::?(?!=)([^;]*)(;.*)?", line)
        if assignment:
            variables[assignment[1]] = assignment[2]
        elif rule:
            current = rule[1].split()
            for target in current:
                known = rules.setdefault(target, ([], []))
                known[0].extend(_made(rule[2], variables).split())
                known[1].extend([_made(rule[3][1:], variables)] if rule[3] else [])
    return rules, next((name for name in rules if not name.startswith(".")), "")


def _made(text: str, variables: dict[str, str]) -> str:
    """Return a line of a Makefile with its variables."""
    for _ in range(DEEPEST):
        text = re.sub(r"\$[({](\w+)[)}]", lambda found: variables.get(found[1], found[0]), text)
    return text.replace("$$", "$")


def read(path: str) -> str:
    """Return the beginning of a file; nothing where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(LONGEST_SCRIPT)
    except (OSError, ValueError):
        return ""
