"""What a candidate changed in the files of the project, and which of it the contract does not allow.

What is not covered: what allowed code does when it runs (the sandbox and the pinned evaluator are for that), a link
through a folder that was a link before, and files that git and the diff do not see.
"""

from __future__ import annotations

import posixpath
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from rlx.study import evaluator, patterns, region
from rlx.study.contract import Contract, allowed
from rlx.study.region import Region
from rlx.study.task import Task

LINK, MODULE, OTHER = "120000", "160000", "other"
NEVER = (".git", ".rlx", "__pycache__")
"""Folders that no candidate has anything to do with, wherever they are; and `runs` at the top."""
COMPILED = (".pyc", ".pyo")
EXPLICIT = (
    ".git*", "conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link", "pyproject.toml", "setup.py",
    "setup.cfg", "tox.ini", "pytest.ini", "noxfile.py", "Makefile", "uv.lock", "uv.toml", "poetry.lock", "Pipfile*",
    "requirements*.txt", "environment.y*ml", ".python-version", ".env*", "rlx.toml", "pyvenv.cfg",
)  # fmt: skip
"""Files that act by their name alone, on installation, start-up or test: allowed only where the scope names them."""
INSTALLED = (".egg-info", ".dist-info")
SHADOWED = frozenset({
    *sys.stdlib_module_names, "rlx", "numpy", "gymnasium", "gym", "torch", "stable_baselines3", "sb3_contrib", "yaml",
    "pydantic", "orjson", "scipy", "jax", "mujoco", "tensorboard",
})  # fmt: skip
"""Modules that a new file beside the scripts would stand in for."""


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

    @property
    def is_new(self) -> bool:
        return self.before is None and self.mode_before is None

    @property
    def is_gone(self) -> bool:
        return self.after is None and self.mode_after is None


def breaches(changes: Iterable[Change], keys: Iterable[str], contract: Contract, task: Task) -> tuple[str, ...]:
    """Return every change of files and config keys that the contract does not allow, each with its path and why."""
    if contract.scope is None:
        return ("the contract has no scope",)
    several = tuple(changes)
    fence = _Fence.of(contract, task)
    found = [f"{_shown(one.path)}: {why}" for one in several for why in fence.objections(one)]
    if is_seed_only(several):
        found.append(f"{_shown(several[0].path)}: only a seed changes: another replicate is no candidate")
    return tuple(dict.fromkeys((*found, *key_breaches(keys, contract, task))))


def key_breaches(keys: Iterable[str], contract: Contract, task: Task) -> tuple[str, ...]:
    """Return which config keys may not be changed, and why: seeds, the evaluator's, forbidden, not in scope."""
    if contract.scope is None:
        return ("the contract has no scope",)
    opened, forbidden = allowed(contract.scope, task).keys, contract.scope.forbidden
    whys = {key: _key_breach(key, opened, forbidden, evaluator.keys(task)) for key in keys}
    return tuple(f"key `{key}`: {why}" for key, why in whys.items() if why is not None)


def _key_breach(key: str, opened: tuple[str, ...], forbidden: tuple[str, ...], guarded: tuple[str, ...]) -> str | None:
    if patterns.is_seed_key(key):
        return "seeds are replicates and never in scope"
    if any(patterns.keys_overlap(key, one) for one in guarded):
        return "belongs to the evaluator and is never in scope"
    if any(patterns.keys_overlap(key, one) for one in forbidden):
        return "the contract forbids it"
    if not any(patterns.covers_key(one, key) for one in opened):
        return f"not in scope; in scope: {', '.join(opened) or 'no keys'}"
    return None


@dataclass(frozen=True)
class _Fence:
    """The places of one contract: what is open, what is forbidden, what is the evaluator's."""

    opened: tuple[str, ...]
    forbidden: tuple[str, ...]
    guarded: tuple[str, ...]
    import_roots: frozenset[str]

    @classmethod
    def of(cls, contract: Contract, task: Task) -> _Fence:
        assert contract.scope is not None
        opened = allowed(contract.scope, task).paths
        return cls(opened, contract.scope.forbidden, evaluator.paths(task), _import_roots(task))

    def objections(self, change: Change) -> Iterator[str]:
        """Yield every reason against one change."""
        names = [change.path, *([change.renamed_from] if change.renamed_from else [])]
        for name in names:
            where = "" if name == change.path else f"renamed from {_shown(name)}: "
            told = [*_bad_name(name), *self._by_name(name)]
            yield from (where + why for why in told)
            if not told and name != change.path and not self._is_open(name):
                yield f"{where}not in scope"
        if not _bad_name(change.path):
            yield from self._by_kind(change)
            yield from self._by_place(change)

    def _by_name(self, path: str) -> Iterator[str]:
        """Yield what the path itself is refused for, however its letters are written."""
        folded = _folded(path)
        for pattern in self.guarded:
            file, inner = patterns.split(pattern)
            apart = (
                inner and self._regions(path) and not any(patterns.nested(inner, one) for one in self._regions(path))
            )
            if patterns.covers_path(_folded(file), folded) and not apart:
                yield "belongs to the evaluator and is never in scope"
                break
        if any(patterns.covers_path(_folded(one), folded) for one in self.forbidden if not patterns.split(one)[1]):
            yield "the contract forbids it"
        parts = PurePosixPath(folded).parts
        if parts[:1] == ("runs",) or any(part in NEVER for part in parts) or folded.endswith(COMPILED):
            yield "nothing there is part of a candidate"
        elif self._acts_by_name(path) and path not in self.opened:
            yield "acts by its name alone; it is allowed only where the scope names this very file"

    def _acts_by_name(self, path: str) -> bool:
        name = _folded(PurePosixPath(path).name)
        is_special = any(patterns.covers_path(_folded(one), name) for one in EXPLICIT)
        return is_special or any(part.endswith(INSTALLED) for part in PurePosixPath(_folded(path)).parts)

    def _by_kind(self, change: Change) -> Iterator[str]:
        """Yield what a change is refused for by what kind of file it is or becomes."""
        before, after = change.mode_before, change.mode_after
        if MODULE in (before, after):
            yield "a submodule"
        elif OTHER in (before, after):
            yield "neither a file nor a link"
        elif before is not None and after is not None and before != after:
            yield f"its mode changes from {before} to {after}"
        if after == LINK:
            yield from self._link(change)
        elif change.after is not None and _is_binary(change.after) and change.path not in self.opened:
            yield "a binary file; it is allowed only where the scope names this very file"
        if change.is_new and self._shadows(change.path) and change.path not in self.opened:
            yield "would stand in for a module of that name; it is allowed only where the scope names this very file"

    def _link(self, change: Change) -> Iterator[str]:
        target = (change.after or b"").decode("utf-8", "surrogateescape")
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(change.path), target))
        if target.startswith("/") or meant == ".." or meant.startswith("../"):
            yield f"a link that leaves the tree ({_shown(target)})"
        elif not self._is_open(meant) or any(self._by_name(meant)):
            yield f"a link to `{_shown(meant)}`, which is not in scope"

    def _shadows(self, path: str) -> bool:
        parts = PurePosixPath(path).parts
        folders = ("/".join(parts[:depth]) or "." for depth in range(len(parts)))
        tops = [parts[depth] for depth, folder in enumerate(folders) if folder in self.import_roots]
        is_module = path.endswith((".py", ".so", ".pyd"))
        return is_module and any(_folded(top).partition(".")[0] in SHADOWED for top in tops)

    def _by_place(self, change: Change) -> Iterator[str]:
        """Yield what a change is refused for by where it is: outside the scope, or outside the regions of it."""
        if not self._is_open(change.path):
            yield from self._outside_regions(change)
        for pattern in self.forbidden:
            file, name = patterns.split(pattern)
            if (
                name
                and patterns.covers_path(file, change.path)
                and _within(change.before, name) != _within(change.after, name)
            ):
                yield f"the contract forbids `{name}`, which changes"

    def _outside_regions(self, change: Change) -> Iterator[str]:
        names = self._regions(change.path)
        if not names:
            yield f"not in scope; in scope: {', '.join(self.opened) or 'no paths'}"
        elif change.before is None or change.after is None:
            yield f"only {', '.join(f'`{name}`' for name in names)} of it may change, not the whole file"
        else:
            yield from region_breaches(change.before, change.after, names)

    def _is_open(self, path: str) -> bool:
        return any(patterns.covers_path(one, path) for one in self.opened if patterns.split(one)[1] is None)

    def _regions(self, path: str) -> tuple[str, ...]:
        parts = [patterns.split(one) for one in self.opened]
        return tuple(name for file, name in parts if name and file.removeprefix("./") == path)


def region_breaches(before: bytes, after: bytes, names: Iterable[str]) -> tuple[str, ...]:
    """Return what a change of a file breaks outside some of its regions: every byte there must be as it was."""
    wanted = _outermost(tuple(names))
    try:
        old = [region.find(before, name) for name in wanted]
    except ValueError as error:
        return (f"the baseline's file {error}",)
    try:
        new = [region.find(after, name) for name in wanted]
    except ValueError as error:
        return (f"the file {error}",)
    told = [why for one, other in zip(old, new, strict=True) for why in _redefined(one, other)]
    pairs = zip(_outside(before, old), _outside(after, new), strict=True)
    if any(one != other for one, other in pairs):
        named = ", ".join(f"`{name}`" for name in wanted)
        told.append(
            f"it changes outside of {named}, or moves it (first difference: line {_line_of_change(before, after)})"
        )
    return tuple(told)


def _outermost(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if not any(name.startswith(f"{one}.") for one in names))


def _redefined(old: Region, new: Region) -> Iterator[str]:
    if old.decorators != new.decorators:
        yield f"the decorators of `{old.name}` change"
    if old.kind != new.kind:
        yield f"`{old.name}` becomes another kind of definition"


def _outside(source: bytes, regions: list[Region]) -> list[tuple[str, bytes]]:
    """Return what stands between regions, each piece with the region that follows it."""
    pieces, at = [], 0
    for one in sorted(regions, key=lambda item: item.start):
        pieces.append((one.name, source[at : one.start]))
        at = one.end
    return [*pieces, ("", source[at:])]


def _line_of_change(before: bytes, after: bytes) -> int:
    """Return the line on which two files begin to differ."""
    same = next((at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(after))
    return after[:same].count(b"\n") + 1


def _within(source: bytes | None, name: str) -> bytes | None:
    try:
        return region.find(source, name).within(source) if source is not None else None
    except ValueError:
        return None


def _bad_name(path: str) -> tuple[str, ...]:
    """Return what is wrong with a path as a name: it must mean one file inside the tree, on every machine."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return ("not a plain path inside the tree",)
    if path != unicodedata.normalize("NFC", path) or not path.isprintable() or "\\" in path:
        return ("its name has characters that look like others or cannot be seen",)
    if any(part != part.strip() or part.endswith(".") for part in parts):
        return ("its name has a space or a dot at its end",)
    return ()


def _folded(text: str) -> str:
    """Return a name as file systems that ignore case and width would see it."""
    return unicodedata.normalize("NFKC", text).casefold()


def _shown(path: str) -> str:
    return path if path.isprintable() else path.encode("unicode_escape").decode()


def _is_binary(content: bytes) -> bool:
    try:
        return "\0" in content.decode("utf-8")
    except UnicodeDecodeError:
        return True


def _import_roots(task: Task) -> frozenset[str]:
    """Return the folders that Python looks for modules in: the task's own, and those of scripts and named files."""
    adapter = task.adapter
    words = (*adapter.train, *adapter.eval, adapter.env or "", adapter.policy or "")
    named = [word.partition(":")[0] for word in words if ".py" in word]
    named += [patterns.split(path)[0] for place in task.surfaces.values() for path in place.paths]
    folders = {posixpath.dirname(name) or "." for name in named if name.endswith(".py")}
    return frozenset({posixpath.normpath(folder) for folder in (*adapter.python_path, *folders)} | {"."})


_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d[\w.]*")


def is_seed_only(changes: Iterable[Change]) -> bool:
    """Say whether files differ in nothing but numbers on lines that speak of a seed."""
    several = tuple(changes)
    return bool(several) and all(_differs_by_seed(one) for one in several)


def _differs_by_seed(change: Change) -> bool:
    if change.before is None or change.after is None or change.mode_before != change.mode_after:
        return False
    pairs = (change.before.split(b"\n"), change.after.split(b"\n"))
    if len(pairs[0]) != len(pairs[1]):
        return False
    changed = [(one, other) for one, other in zip(*pairs, strict=True) if one != other]
    return bool(changed) and all(
        b"seed" in one.lower() and _NUMBER.sub(b"0", one) == _NUMBER.sub(b"0", other) for one, other in changed
    )
