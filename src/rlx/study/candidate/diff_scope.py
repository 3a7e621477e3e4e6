"""Find the changes of a candidate that the contract does not allow.

Not covered: what allowed code does when it runs (the sandbox and the pinned evaluator are for that), a link through a
folder that was a link before, and files that git and the diff do not see.
"""

from __future__ import annotations

import posixpath
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rlx.study.candidate import path_patterns, source_region
from rlx.study.candidate.path_patterns import any_covers_key, any_covers_path, covers_path, split
from rlx.study.candidate.source_region import Region
from rlx.study.contract.contract import Contract, open_places
from rlx.study.task import protected_files
from rlx.study.task.task import Task

MOST_CHANGES = 500
"""Above this, rlx does not look at each file: a candidate changes a few."""
LINK = "120000"
MODULE = "160000"
OTHER = "other"
NEVER = (".git", ".rlx", "__pycache__")  # folders that no candidate may touch, at any depth; and `runs` at the top
COMPILED = (".pyc", ".pyo")
# Files that have an effect by their name alone: the scope must name them.
EXPLICIT = (
    ".git*", "conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link", "pyproject.toml", "setup.py",
    "setup.cfg", "tox.ini", "pytest.ini", "noxfile.py", "Makefile", "uv.lock", "uv.toml", "poetry.lock", "Pipfile*",
    "requirements*.txt", "environment.y*ml", ".python-version", ".env*", "rlx.toml", "pyvenv.cfg",
)  # fmt: skip
INSTALLED = (".egg-info", ".dist-info")
# Modules that a new file next to the scripts would replace.
SHADOWED = frozenset({
    *sys.stdlib_module_names, "rlx", "numpy", "gymnasium", "gym", "torch", "stable_baselines3", "sb3_contrib", "yaml",
    "pydantic", "orjson", "scipy", "jax", "mujoco", "tensorboard",
})  # fmt: skip
_NAMED = "it is allowed only if the scope names this very file"
_EVALUATOR = "belongs to the evaluator and is never in scope"
_FORBIDDEN = "the contract forbids it"
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d[\w.]*")


@dataclass(frozen=True)
class FileChange:
    """One path that differs from the baseline; modes are git's (`100644`, `120000` for a link), or `other`.

    The content of a link is its target. A rename appears twice: as a deletion, and as an addition with its source.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode_before: str | None = None
    mode_after: str | None = None
    renamed_from: str | None = None


def breaches(changes: Iterable[FileChange], keys: Iterable[str], contract: Contract, task: Task) -> tuple[str, ...]:
    """Return every change of files and config keys that the contract does not allow, with its path and the reason."""
    if contract.scope is None:
        return ("the contract has no scope",)
    changes = tuple(changes)
    if len(changes) > MOST_CHANGES:
        more = ", ".join(_printable(change.path) for change in changes[:3])
        return (f"{len(changes):,} files differ from the baseline's, among them {more}",)
    rules = _ScopeRules.of(contract, task)
    found = [f"{_printable(change.path)}: {reason}" for change in changes for reason in rules.objections(change)]
    if changes and all(map(_differs_by_seed, changes)):
        found.append(f"{_printable(changes[0].path)}: only a seed changes: another replicate is not a candidate")
    return tuple(dict.fromkeys((*found, *key_breaches(keys, contract, task))))


def key_breaches(keys: Iterable[str], contract: Contract, task: Task) -> tuple[str, ...]:
    """Return the config keys that may not be changed, and why: seeds, the evaluator's, forbidden, not in scope."""
    if contract.scope is None:
        return ("the contract has no scope",)
    opened = open_places(contract.scope, task).keys
    found = []
    for key in keys:
        if path_patterns.is_seed_key(key):
            found.append(f"key `{key}`: seeds are replicates and never in scope")
        elif any(path_patterns.keys_overlap(key, pattern) for pattern in protected_files.keys(task)):
            found.append(f"key `{key}`: {_EVALUATOR}")
        elif any(path_patterns.keys_overlap(key, pattern) for pattern in contract.scope.forbidden):
            found.append(f"key `{key}`: {_FORBIDDEN}")
        elif not any_covers_key(opened, key):
            found.append(f"key `{key}`: not in scope; in scope: {', '.join(opened) or 'no keys'}")
    return tuple(found)


@dataclass(frozen=True)
class _ScopeRules:
    """The paths of one contract: in scope, forbidden, the evaluator's."""

    opened: tuple[str, ...]
    forbidden: tuple[str, ...]
    protected: tuple[str, ...]
    import_roots: frozenset[str]

    @classmethod
    def of(cls, contract: Contract, task: Task) -> _ScopeRules:
        assert contract.scope is not None
        opened = open_places(contract.scope, task).paths
        return cls(opened, contract.scope.forbidden, protected_files.paths(task), _import_roots(task))

    def objections(self, change: FileChange) -> Iterator[str]:
        """Yield every reason against one change."""
        source = change.renamed_from
        if source:
            reasons = [*_bad_name(source), *self._by_name(source)]
            if not reasons and not self._is_open(source):
                reasons = ["not in scope"]
            yield from (f"renamed from {_printable(source)}: {reason}" for reason in reasons)
        bad = _bad_name(change.path)
        yield from bad
        yield from self._by_name(change.path)
        if not bad:
            yield from self._by_kind(change)
            yield from self._by_place(change)

    def _by_name(self, path: str) -> Iterator[str]:
        """Yield the reasons against a path, whatever the case and width of its letters."""
        folded = _folded(path)
        if any(self._protects(pattern, path) for pattern in self.protected):
            yield _EVALUATOR
        if any_covers_path((_folded(pattern) for pattern in self.forbidden if not split(pattern)[1]), folded):
            yield _FORBIDDEN
        parts = PurePosixPath(folded).parts
        is_special = any_covers_path(map(_folded, EXPLICIT), parts[-1]) if parts else False
        if parts[:1] == ("runs",) or any(part in NEVER for part in parts) or folded.endswith(COMPILED):
            yield "a candidate cannot have files there"
        elif (is_special or any(part.endswith(INSTALLED) for part in parts)) and path not in self.opened:
            yield f"it has an effect by its name alone; {_NAMED}"

    def _protects(self, pattern: str, path: str) -> bool:
        """Say whether a pattern of the evaluator covers a path, and not only regions that are not in scope."""
        file, inner = split(pattern)
        regions = self._regions(path)
        is_apart = inner and regions and not any(path_patterns.nested(inner, region) for region in regions)
        return covers_path(_folded(file), _folded(path)) and not is_apart

    def _by_kind(self, change: FileChange) -> Iterator[str]:
        """Yield the reasons against the kind of file that it is or becomes."""
        modes = (change.mode_before, change.mode_after)
        if MODULE in modes:
            yield "a submodule"
        elif OTHER in modes:
            yield "neither a file nor a link"
        elif None not in modes and modes[0] != modes[1]:
            yield f"its mode changes from {modes[0]} to {modes[1]}"
        if change.mode_after == LINK:
            yield from self._by_target(change)
        elif change.after is not None and _is_binary(change.after) and change.path not in self.opened:
            yield f"a binary file; {_NAMED}"
        is_new = change.before is None and change.mode_before is None
        if is_new and self._shadows(change.path) and change.path not in self.opened:
            yield f"Python would import it in place of the module of that name; {_NAMED}"

    def _by_target(self, change: FileChange) -> Iterator[str]:
        target = (change.after or b"").decode("utf-8", "surrogateescape")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(change.path), target))
        if target.startswith("/") or path == ".." or path.startswith("../"):
            yield f"a link that leaves the tree ({_printable(target)})"
        elif not self._is_open(path) or any(self._by_name(path)):
            yield f"a link to `{_printable(path)}`, which is not in scope"

    def _shadows(self, path: str) -> bool:
        if not path.endswith((".py", ".so", ".pyd")):
            return False
        parts = PurePosixPath(path).parts
        folders = ("/".join(parts[:depth]) or "." for depth in range(len(parts)))
        tops = [parts[depth] for depth, folder in enumerate(folders) if folder in self.import_roots]
        return any(_folded(top).partition(".")[0] in SHADOWED for top in tops)

    def _by_place(self, change: FileChange) -> Iterator[str]:
        """Yield the reasons against the place of a change: not in scope, or outside the regions in scope."""
        names = self._regions(change.path)
        is_open = self._is_open(change.path)
        if not is_open and not names:
            yield f"not in scope; in scope: {', '.join(self.opened) or 'no paths'}"
        elif not is_open and (change.before is None or change.after is None):
            yield f"only {_quoted(names)} of it may change, not the whole file"
        elif not is_open and change.before is not None and change.after is not None:
            yield from region_breaches(change.before, change.after, names)
        for pattern in self.forbidden:
            file, name = split(pattern)
            if name and covers_path(file, change.path) and _within(change.before, name) != _within(change.after, name):
                yield f"the contract forbids `{name}`, which changes"

    def _is_open(self, path: str) -> bool:
        return any_covers_path((pattern for pattern in self.opened if split(pattern)[1] is None), path)

    def _regions(self, path: str) -> tuple[str, ...]:
        parts = [split(pattern) for pattern in self.opened]
        return tuple(name for file, name in parts if name and file.removeprefix("./") == path)


def region_breaches(before: bytes, after: bytes, names: Iterable[str]) -> tuple[str, ...]:
    """Return the changes of a file outside some of its regions: every byte there must stay the same."""
    names = tuple(dict.fromkeys(names))
    outermost = [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
    try:
        whose = "the baseline's file"
        old = [source_region.find(before, name) for name in outermost]
        whose = "the file"
        new = [source_region.find(after, name) for name in outermost]
    except ValueError as error:
        return (f"{whose} {error}",)
    found = []
    for was, now in zip(old, new, strict=True):
        if was.decorators != now.decorators:
            found.append(f"the decorators of `{was.name}` change")
        if was.kind != now.kind:
            found.append(f"`{was.name}` becomes another kind of definition")
    at = _first_difference(_outside(before, old), _outside(after, new))
    if at is not None:
        line = after[:at].count(b"\n") + 1
        found.append(f"it changes outside of {_quoted(outermost)}, or moves it (first difference: line {line})")
    return tuple(found)


def _first_difference(before: Sequence[_Outside], after: Sequence[_Outside]) -> int | None:
    """Return the first difference outside the regions, as an offset in the new file; None without a difference."""
    for was, now in zip(before, after, strict=True):
        if was.text != now.text:
            pairs = enumerate(zip(was.text, now.text, strict=False))
            same = next((at for at, (old, new) in pairs if old != new), min(len(was.text), len(now.text)))
            return now.start + same
        if was.followed_by != now.followed_by:
            return now.start + len(now.text)
    return None


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@dataclass(frozen=True)
class _Outside:
    """A piece of a file between regions: its start, and the region that follows it."""

    start: int
    text: bytes
    followed_by: str


def _outside(source: bytes, regions: list[Region]) -> list[_Outside]:
    """Return the text between regions."""
    pieces = []
    at = 0
    for region in sorted(regions, key=lambda item: item.start):
        pieces.append(_Outside(at, source[at : region.start], region.name))
        at = region.end
    return [*pieces, _Outside(at, source[at:], "")]


def _within(source: bytes | None, name: str) -> bytes | None:
    if source is None:
        return None
    try:
        return source_region.find(source, name).within(source)
    except ValueError:
        return None


def _bad_name(path: str) -> tuple[str, ...]:
    """Return why a path is not a valid name: it must mean one file inside the tree, on every machine."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return ("not a plain path inside the tree",)
    if path != unicodedata.normalize("NFC", path) or not path.isprintable() or "\\" in path:
        return ("its name has characters that look like others or cannot be seen",)
    if any(part != part.strip() or part.endswith(".") for part in parts):
        return ("its name has a space or a dot at its end",)
    return ()


def _folded(text: str) -> str:
    """Return a name as file systems that ignore case and width see it."""
    return unicodedata.normalize("NFKC", text).casefold()


def _printable(path: str) -> str:
    return path if path.isprintable() else path.encode("unicode_escape").decode()


def _is_binary(content: bytes) -> bool:
    try:
        return "\0" in content.decode("utf-8")
    except UnicodeDecodeError:
        return True


def _import_roots(task: Task) -> frozenset[str]:
    """Return the folders in which Python looks for modules: the task's own, and those of scripts and named files."""
    adapter = task.adapter
    words = (*adapter.train, *adapter.eval, adapter.env or "", adapter.policy or "")
    names = [word.partition(":")[0] for word in words if ".py" in word]
    names += [split(path)[0] for places in task.surfaces.values() for path in places.paths]
    folders = {posixpath.dirname(name) or "." for name in names if name.endswith(".py")}
    return frozenset({posixpath.normpath(folder) for folder in (*adapter.python_path, *folders)} | {"."})


def _differs_by_seed(change: FileChange) -> bool:
    """Say whether a file differs in nothing but numbers on lines with the word seed."""
    if change.before is None or change.after is None or change.mode_before != change.mode_after:
        return False
    before = change.before.split(b"\n")
    after = change.after.split(b"\n")
    if len(before) != len(after):
        return False
    changed = [(was, now) for was, now in zip(before, after, strict=True) if was != now]
    return bool(changed) and all(
        b"seed" in was.lower() and _NUMBER.sub(b"0", was) == _NUMBER.sub(b"0", now) for was, now in changed
    )
