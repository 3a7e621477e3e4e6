"""Objects from people's own code: `module:name` and `path/file.py:name`, with their sibling imports."""

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

from rlx.errors import ConfigError, NotFound, Refused, RlxError, did_you_mean

PREFIX = "rlx_user_"
_loaded: dict[Path, ModuleType] = {}


def is_file_reference(text: str) -> bool:
    """Say whether `text` names something in a Python file: `path/file.py:name`, or the file alone."""
    return text.endswith(".py") or ".py:" in text


def load_object(reference: str, *, root: Path, kind: str = "object") -> Any:
    """Import what `module:name` or `path/file.py:name` (relative to the project's root) refers to."""
    place, _, name = reference.rpartition(":")
    if not place or not name or name.endswith(".py"):
        raise ConfigError(
            f"`{reference}` does not name a {kind}", hint="write `path/file.py:Name` or `package.module:Name`"
        )
    module = load_file(place, root=root) if place.endswith(".py") else load_module(place, root=root)
    return attribute(module, name, place=place)


def attribute(module: ModuleType, name: str, *, place: str) -> Any:
    """Return `module.name` (dots allowed), or say which name was meant."""
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, [known for known in vars(found) if not known.startswith("_")])
            raise NotFound(f"`{place}` has no `{name}`", hint=f"did you mean `{place}:{near}`?" if near else None)
        found = getattr(found, part)
    return found


def load_file(place: str, *, root: Path) -> ModuleType:
    """Import a Python file once a process, under a name of its own; an edit is seen by the next process."""
    path = (root / place).resolve()
    if any(path.is_relative_to((root / kept).resolve()) for kept in ("runs", ".rlx")):
        raise Refused(f"`{place}` is inside a run folder: nothing there is executed", hint="move the file to envs/")
    if not path.is_file():
        raise NotFound(f"no file `{place}` in the project", hint=_near_file(place, root))
    if path not in _loaded:
        _loaded[path] = _execute(path, place, root)
    return _loaded[path]


def load_module(name: str, *, root: Path) -> ModuleType:
    """Import an installed module or one of the project."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        raise Refused(f"`{name}` is Python's own module: nothing there is run", hint="name your own module or file")
    try:
        with importable(root):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise NotFound(f"no module `{name}`", hint="install it, or name a file: `path/file.py:Name`") from None
        raise user_error(error, root=root, doing=f"importing `{name}`") from error
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise user_error(error, root=root, doing=f"importing `{name}`") from error


def _execute(path: Path, place: str, root: Path) -> ModuleType:
    package = _package(path.parent)
    name = f"{package}.{path.stem}"
    loader = _Fresh(name, str(path))
    module = importlib.util.module_from_spec(_found(importlib.util.spec_from_file_location(name, path, loader=loader)))
    sys.modules[name] = module
    try:
        with importable(path.parent, root):
            loader.exec_module(module)
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        del sys.modules[name]
        raise user_error(error, root=root, doing=f"importing `{place}`") from error
    return module


def _package(folder: Path) -> str:
    """Make the folder a package under a name of its own, so that `from .rewards import f` works too."""
    name = PREFIX + hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    if name not in sys.modules:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(folder)]
    return name


def _found(spec: importlib.machinery.ModuleSpec | None) -> importlib.machinery.ModuleSpec:
    assert spec is not None  # a loader was given
    return spec


class _Fresh(importlib.machinery.SourceFileLoader):
    """Always reads the source: cached bytecode misses an edit of equal size within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Fallback(importlib.abc.MetaPathFinder):
    """Finds siblings of people's files when they are imported late (inside a method), after everything installed."""

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
    kept_path, kept_bytecode = list(sys.path), sys.dont_write_bytecode
    sys.path[:0] = names
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = kept_path, kept_bytecode


def _forget_namesakes(folders: list[str]) -> None:
    """Drop another project's `rewards` from the module table when these folders have a `rewards` of their own."""
    others = tuple(f"{folder}{os.sep}" for folder in _fallback.folders if folder not in folders)
    ours = tuple(f"{folder}{os.sep}" for folder in folders)
    for name, module in list(sys.modules.items()) if others else ():
        file = getattr(module, "__file__", None) or ""
        if file.startswith(others) and not file.startswith(ours) and not name.startswith(PREFIX):
            top = name.partition(".")[0]
            if importlib.machinery.PathFinder.find_spec(top, folders) is not None:
                del sys.modules[name]


def user_error(error: BaseException, *, root: Path, doing: str, hint: str | None = None) -> RlxError:
    """Return one clear line for what people's code raised: where in which file, what, while doing what."""
    if isinstance(error, RlxError):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        return ConfigError(f"{_relative(error.filename, root)}:{error.lineno}: {error.msg}", hint=hint)
    if isinstance(error, ModuleNotFoundError) and hint is None:
        hint = f"pip install {error.name}, or put {error.name}.py beside the file" if error.name else None
    place = where(error, root=root)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return ConfigError(f"{place}: {doing} raised {what}" if place else f"{doing} raised {what}", hint=hint)


def where(error: BaseException, *, root: Path) -> str | None:
    """Return `file:line` of the last frame in the project's own code, else of the last frame outside rlx."""
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
    path, top = Path(filename), root.resolve()
    return str(path.relative_to(top)) if path.is_relative_to(top) else str(path)


def _near_file(place: str, root: Path) -> str | None:
    folder = (root / place).parent
    if not folder.is_dir():
        return f"paths are relative to the project's root; `{Path(place).parent}` is not a folder there"
    near = did_you_mean(Path(place).name, [path.name for path in folder.glob("*.py")])
    return f"did you mean `{Path(place).with_name(near)}`?" if near else "paths are relative to the project's root"
