"""Loads objects of a project's own code: `module:name` and `path/file.py:name`, with their sibling imports."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.errors import ConfigError, NotFound, Refused, RlxError, did_you_mean

PREFIX = "rlx_user_"
_loaded: dict[Path, ModuleType] = {}


def is_file_reference(text: str) -> bool:
    """Return whether `text` names something in a Python file: `path/file.py:name`, or the file alone."""
    return text.endswith(".py") or ".py:" in text


def load_object(reference: str, *, root: Path, kind: str = "object") -> Any:
    """Import the object that `module:name` or `path/file.py:name` (relative to the project's root) refers to."""
    place, _, name = reference.rpartition(":")
    if not place or not name or name.endswith(".py"):
        raise ConfigError(
            f"`{reference}` does not name a {kind}", hint="write `path/file.py:Name` or `package.module:Name`"
        )
    module = load_file(place, root=root) if place.endswith(".py") else load_module(place, root=root)
    return attribute(module, name, place=place)


def attribute(module: ModuleType, name: str, *, place: str) -> Any:
    """Return `module.name` (dots allowed), or raise an error that suggests the nearest name."""
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            near = did_you_mean(part, [known for known in vars(value) if not known.startswith("_")])
            raise NotFound(f"`{place}` has no `{name}`", hint=f"did you mean `{place}:{near}`?" if near else None)
        value = getattr(value, part)
    return value


def load_file(place: str, *, root: Path) -> ModuleType:
    """Import a Python file once per process, under a unique name; the next process sees an edit."""
    path = (root / place).resolve()
    if any(path.is_relative_to((root / kept).resolve()) for kept in ("runs", ".rlx")):
        raise Refused(f"`{place}` is inside a run folder: rlx executes nothing there", hint="move the file to envs/")
    if not path.is_file():
        raise NotFound(f"no file `{place}` in the project", hint=_near_file(place, root))
    if path not in _loaded:
        _loaded[path] = _execute(path, place, root)
    return _loaded[path]


def own_places(reference: str, *, root: Path) -> list[Path]:
    """Return the files and folders that importing a reference from a project would read, without importing anything.

    Empty for an installed module, which the project does not hold.
    """
    place = reference.rpartition(":")[0] or reference
    if is_file_reference(reference):
        return [root / place]
    parts = place.split(".")
    folders = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    return [path for folder in folders for path in (folder, folder.with_suffix(".py")) if os.path.lexists(path)]


def load_module(name: str, *, root: Path) -> ModuleType:
    """Import an installed module or one of the project.

    For an installed one, no file of the project stands in for a package that it needs: nobody may have looked at those.
    """
    kept = [(root / folder).resolve() for folder in ("runs", ".rlx")]
    places = own_places(f"{name}:", root=root)
    for path in places:
        if any(path.resolve().is_relative_to(folder) for folder in kept):
            raise Refused(f"`{name}` is inside a run folder: rlx executes nothing there", hint="move the file to envs/")
    if name.partition(".")[0] in sys.stdlib_module_names:
        raise Refused(f"`{name}` is Python's own module: rlx runs nothing there", hint="name your own module or file")
    if "__main__" in name.split("."):
        raise Refused(f"`{name}` is a program, which its import would start", hint="name a module without `__main__`")
    try:
        folders = [root] if places else []
        with importable(*folders):
            return call_foreign(lambda: importlib.import_module(name))
    except ForeignError as error:
        absent = getattr(error.cause, "name", None)
        if isinstance(error.cause, ModuleNotFoundError) and absent and f"{name}.".startswith(f"{absent}."):
            raise NotFound(f"no module `{name}`", hint="install it, or name a file: `path/file.py:Name`") from None
        raise user_error(error.cause, root=root, doing=f"importing `{name}`") from error.cause


def _execute(path: Path, place: str, root: Path) -> ModuleType:
    package = _package(path.parent)
    name = f"{package}.{path.stem}"
    loader = _Fresh(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # it has a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with importable(path.parent, root):
            call_foreign(lambda: loader.exec_module(module))
    except ForeignError as error:
        del sys.modules[name]
        raise user_error(error.cause, root=root, doing=f"importing `{place}`") from error.cause
    return module


def _package(folder: Path) -> str:
    """Make the folder a package under a unique name, so that `from .rewards import f` works too."""
    name = PREFIX + hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    if name not in sys.modules:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(folder)]
    return name


class _Fresh(importlib.machinery.SourceFileLoader):
    """Always reads the source, because cached bytecode misses an edit of equal size within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Fallback(importlib.abc.MetaPathFinder):
    """Finds modules next to a project's files that are imported late (inside a method), after installed modules."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.PathFinder.find_spec(fullname, self.folders) if path is None else None


_fallback = _Fallback()


@contextlib.contextmanager
def importable(*folders: Path) -> Iterator[None]:
    """Let modules in `folders` be imported, before installed ones, while the block runs."""
    names = list(dict.fromkeys(str(folder.resolve()) for folder in folders))
    _forget_namesakes(names)
    _fallback.folders = [*names, *(folder for folder in _fallback.folders if folder not in names)]
    if _fallback not in sys.meta_path:
        sys.meta_path.append(_fallback)
    path = list(sys.path)
    dont_write_bytecode = sys.dont_write_bytecode
    sys.path[:0] = names
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = dont_write_bytecode


def _forget_namesakes(folders: list[str]) -> None:
    """Remove another project's `rewards` from `sys.modules` if these folders have their own `rewards`."""
    others = tuple(f"{folder}{os.sep}" for folder in _fallback.folders if folder not in folders)
    here = tuple(f"{folder}{os.sep}" for folder in folders)
    if not others:
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(others) and not file.startswith(here) and not name.startswith(PREFIX):
            top = name.partition(".")[0]
            if importlib.machinery.PathFinder.find_spec(top, folders) is not None:
                del sys.modules[name]


def user_error(error: BaseException, *, root: Path, doing: str, hint: str | None = None) -> RlxError:
    """Return an error of one line for an exception of foreign code: file and line, the activity and the exception."""
    if isinstance(error, RlxError):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        return ConfigError(f"{_relative(error.filename, root)}:{error.lineno}: {error.msg}", hint=hint)
    if isinstance(error, ModuleNotFoundError) and hint is None and error.name:
        hint = f"pip install {error.name}, or put {error.name}.py next to the file"
    place = where(error, root=root)
    prefix = f"{place}: " if place else ""
    return ConfigError(f"{prefix}{doing} raised {ForeignError(error)}", hint=hint)


def where(error: BaseException, *, root: Path) -> str | None:
    """Return `file:line` of the last frame in the project's own code, otherwise of the last frame outside rlx."""
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).resolve().parent.parent)
    outside = [frame for frame in frames if not frame.filename.startswith((here, "<frozen"))]
    own = [frame for frame in outside if _is_own(frame.filename, root)]
    if own:
        return f"{_relative(own[-1].filename, root)}:{own[-1].lineno}"
    return f"{Path(outside[-1].filename).name}:{outside[-1].lineno}" if outside else None


def _is_own(filename: str, root: Path) -> bool:
    path = Path(filename)
    return path in _loaded or (path.is_relative_to(root.resolve()) and "site-packages" not in path.parts)


def _relative(filename: str, root: Path) -> str:
    return filename.removeprefix(f"{root.resolve()}{os.sep}")


def _near_file(place: str, root: Path) -> str | None:
    folder = (root / place).parent
    if not folder.is_dir():
        return f"paths are relative to the project's root; `{Path(place).parent}` is not a folder there"
    near = did_you_mean(Path(place).name, [path.name for path in folder.glob("*.py")])
    return f"did you mean `{Path(place).with_name(near)}`?" if near else "paths are relative to the project's root"
