"""Reads the commands that a repository documents: in READMEs, Makefiles, shell scripts and entry points of packages."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath

from rlx.adopt.find.text_patterns import is_placeholder
from rlx.adopt.repository import ForeignRepository

_README = re.compile(r"^readme(\.\w+)?$", re.I)
_SCRIPT = re.compile(r"(^|/)(makefile|gnumakefile|justfile|\w[\w.-]*\.(sh|bash|slurm|sbatch|mk))$", re.I)
_SEPARATORS = re.compile(r"&&|;|\|\|?")
_PROGRAM = re.compile(r"python|train|eval|play|torchrun|accelerate")
_ENTRY = re.compile(r"^\s*([\w.-]+)\s*=\s*([\w.]+)\s*(?::\s*\w+)?")
_LONGEST = 1000
_MOST_PAGES = 60
_MOST_SCRIPTS = 80


def documented_commands(repository: ForeignRepository) -> dict[str, list[str]]:
    """Return the first documented command of each program, as words: without placeholders, if there is such a one."""
    commands: dict[str, list[str]] = {}
    names = set(repository.modules)
    for line in _lines(repository):
        for command in _SEPARATORS.split(line.strip().strip("`").lstrip("@-").removeprefix("$").strip()):
            words = _words(command)
            file = _named_file(words, names)
            if file is not None and (file not in commands or _is_template(commands[file])):
                commands[file] = commands.get(file, words) if _is_template(words) else words
    return commands


def _lines(repository: ForeignRepository) -> Iterator[str]:
    """Yield the lines that may start a program: of READMEs first, then of documentation and of scripts."""
    pages = [path for path in repository.files if _README.match(PurePosixPath(path).name) and path.count("/") < 3]
    pages += [path for path in repository.files if path.endswith((".md", ".rst")) and path.startswith("docs/")][
        :_MOST_PAGES
    ]
    pages += [path for path in repository.files if _SCRIPT.search(path) and path.count("/") < 5][:_MOST_SCRIPTS]
    for page in pages:
        for line in repository.text(page).replace("\\\n", " ").splitlines():
            if _PROGRAM.search(line) and len(line) <= _LONGEST:
                yield line


def _is_template(words: list[str]) -> bool:
    return any(is_placeholder(part) for word in words for part in word.split("="))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return []


def _named_file(words: list[str], names: set[str]) -> str | None:
    for index, word in enumerate(words):
        if word.endswith(".py"):
            own = word.removeprefix("./")
            if own in names:
                return own
            return next((name for name in sorted(names) if name.endswith(f"/{own}")), None)
        if word == "-m" and index + 1 < len(words):
            tail = words[index + 1].replace(".", "/")
            ends = (f"{tail}.py", f"{tail}/__main__.py")
            return next(
                (name for name in sorted(names) if name in ends or name.endswith((f"/{ends[0]}", f"/{ends[1]}"))), None
            )
    return None


def console_scripts(repository: ForeignRepository) -> Iterator[tuple[str, str]]:
    """Yield the files behind the commands that a package installs, with the commands' names."""
    for command, module in _entries(repository):
        path = module.replace(".", "/")
        for file in repository.modules:
            if file in (f"{path}.py", f"{path}/__main__.py") or file.endswith((f"/{path}.py", f"/{path}/__main__.py")):
                yield file, command


def _entries(repository: ForeignRepository) -> Iterator[tuple[str, str]]:
    """Yield the installed commands with their modules: of pyproject.toml, setup.cfg and setup.py."""
    for path in repository.files:
        if path.count("/") > 3:
            continue
        name = PurePosixPath(path).name
        if name == "pyproject.toml":
            yield from _of_pyproject(repository.text(path))
        elif name == "setup.cfg":
            yield from _of_setup_cfg(repository.text(path))
        elif name == "setup.py":
            yield from _of_setup(repository.text(path))


def _of_pyproject(text: str) -> Iterator[tuple[str, str]]:
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    for table in (data.get("project"), (data.get("tool") or {}).get("poetry")):
        scripts = table.get("scripts") if isinstance(table, dict) else None
        for command, target in (scripts or {}).items():
            yield command, str(target).partition(":")[0]


def _of_setup_cfg(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    rows = parser.get("options.entry_points", "console_scripts", fallback="")
    for row in rows.splitlines():
        if match := _ENTRY.match(row):
            yield match[1], match[2]


def _of_setup(text: str) -> Iterator[tuple[str, str]]:
    if "console_scripts" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "console_scripts":
                texts = [item.value for item in ast.walk(value) if isinstance(item, ast.Constant)]
                for match in map(_ENTRY.match, (text for text in texts if isinstance(text, str))):
                    if match:
                        yield match[1], match[2]
