"""Records what a Python process did, when it ends; programs without rlx load it as `sitecustomize`.

It records the loaded modules, the options that argparse read, and the steps of Gymnasium environments. It needs only
the standard library of Python 3.7, and also runs the `sitecustomize` that it replaces.
Not covered: a process that is killed or exits by `os._exit` (as the workers of `multiprocessing` do), steps of
environments that are not Gymnasium's, and code that hides what it did.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False  # a program starts faster without `typing`
if TYPE_CHECKING:
    from typing import Any

FOLDER = "RLX_LOADED"
"""The environment variable with the folder to write into."""
ROOT = "RLX_LOADED_ROOT"
"""The environment variable with the project's root; its files are recorded relative to it."""
MOST_FILES = 200
LARGEST = 16 * 2**20
PACKAGES = ("site-packages", "dist-packages")
MOST_OPTIONS = 1000
LONGEST_TEXT = 1000
_options: dict[str, object] = {}
_env_steps = [0]
_stepping: set[int] = set()


def modules() -> dict[str, dict[str, str | None]]:
    """Return file and hash of every module outside the standard library, installed packages included."""
    standard = os.path.realpath(os.path.dirname(os.__file__)) + os.sep  # noqa: PTH120
    loaded: dict[str, dict[str, str | None]] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        file = os.path.realpath(file)
        is_installed = any(os.sep + folder + os.sep in file for folder in PACKAGES)
        if file.startswith(standard) and not is_installed:
            continue
        spec = getattr(module, "__spec__", None)
        if name == "__main__" and spec is not None:
            name = spec.name
        loaded[name] = {"file": file, "sha256": digest(file)}
    return loaded


def interpreter() -> dict[str, object]:
    """Return this interpreter and the distributions that are installed in it, by name and version."""
    distributions: dict[str, str] = {}
    try:
        from importlib import metadata

        for found in metadata.distributions():
            distributions[str(found.metadata["Name"])] = found.version
    except (ImportError, OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # a damaged installation must not fail the program, and Python 3.7 has no such module
    return {"executable": sys.executable, "version": sys.version.split()[0], "distributions": distributions}


def digest(file: str) -> str | None:
    """Return the sha256 of a file; None if it cannot be read."""
    import hashlib

    try:
        if not os.path.isfile(file):  # noqa: PTH113  opening a pipe would block
            return None
        with open(file, "rb") as stream:  # noqa: PTH123
            content = stream.read(LARGEST + 1)
    except OSError:
        return None
    if len(content) > LARGEST:
        return None
    return hashlib.sha256(content).hexdigest()


def make_relative(loaded: dict[str, dict[str, str | None]], root: str) -> None:
    """Make the paths of a project's files relative to its root, so that it can be moved; others stay absolute."""
    top = os.path.realpath(root) + os.sep
    for entry in loaded.values():
        file = str(entry["file"])
        if file.startswith(top):
            entry["file"] = file[len(top) :]


def write(folder: str, root: str | None = None, loaded: dict[str, dict[str, str | None]] | None = None) -> None:
    """Write `loaded`, or the modules that this process loaded, into a new file; the program must not fail for it."""
    import json

    try:
        if len(os.listdir(folder)) >= MOST_FILES:  # noqa: PTH208
            return
        if loaded is None:
            loaded = modules()
        if root:
            make_relative(loaded, root)
        row = {"schema": 1, "pid": os.getpid(), "argv": list(sys.argv), "python": interpreter(), "modules": loaded}
        row["options"] = _options
        row["env_steps"] = _env_steps[0]
        name = f"{os.getpid()}_{os.urandom(4).hex()}.json"
        temporary = os.path.join(folder, "." + name)  # noqa: PTH118
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as stream:  # noqa: PTH123
            json.dump(row, stream)
        os.replace(temporary, os.path.join(folder, name))  # noqa: PTH118
    except OSError:
        pass


def record_options() -> None:
    """Record what argparse reads from now on; the last value of an option counts, as for the program."""
    import argparse

    read = argparse.ArgumentParser.parse_known_args

    def parse_known_args(self, args=None, namespace=None, **further):  # type: ignore[no-untyped-def]
        found, rest = read(self, args, namespace, **further)
        for name, value in list(vars(found).items()):
            if len(_options) < MOST_OPTIONS:
                _options[str(name)] = plain(value)
        return found, rest

    argparse.ArgumentParser.parse_known_args = parse_known_args  # type: ignore[method-assign]


def plain(value: object) -> object:
    """Return an option's value as JSON can hold it."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value[:MOST_OPTIONS]]
    return str(value)[:LONGEST_TEXT]


# The modules that define the classes of environments, with the class whose steps are counted. A vector of
# Gymnasium that steps single environments in this process counts by them.
_ENV_CLASSES = {
    "gymnasium.core": "Env",
    "gym.core": "Env",
    "gymnasium.vector.vector_env": "VectorEnv",
    "gym.vector.vector_env": "VectorEnv",
}
_NOT_COUNTED = ("Wrapper", "VectorWrapper", "SyncVectorEnv")


def count_steps() -> None:
    """Count the steps of Gymnasium environments from now on: its classes are wrapped when they are defined."""

    class Finder:
        """Finds modules as the other finders do; wraps those that define environments."""

        @staticmethod
        def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]
            if name not in _ENV_CLASSES:
                return None
            for finder in sys.meta_path:
                if finder is Finder or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    _count_after_loading(spec)
                    return spec
            return None

    sys.meta_path.insert(0, Finder)


def _count_after_loading(spec) -> None:  # type: ignore[no-untyped-def]
    load = getattr(spec.loader, "exec_module", None)
    if load is None:
        return

    def exec_module(module):  # type: ignore[no-untyped-def]
        load(module)
        kind = getattr(module, _ENV_CLASSES[spec.name], None)
        if isinstance(kind, type):
            count_subclasses(kind)

    spec.loader.exec_module = exec_module


def count_subclasses(kind: type) -> None:
    """Count the steps of every class that is derived from this one later."""
    own = kind.__dict__.get("__init_subclass__")

    def __init_subclass__(cls, **further):  # type: ignore[no-untyped-def]  # noqa: N807
        if own is not None:
            own.__func__(cls, **further)
        else:
            super(kind, cls).__init_subclass__(**further)  # type: ignore[arg-type]
        step = cls.__dict__.get("step")
        is_counted = not any(base.__name__ in _NOT_COUNTED for base in cls.__mro__)
        if is_counted and callable(step) and hasattr(step, "__code__"):
            cls.step = _counted(step)

    kind.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment,arg-type]


def _counted(step: Any) -> Any:
    import functools

    @functools.wraps(step)
    def counted(self, *args, **further):  # type: ignore[no-untyped-def]
        if id(self) in _stepping:  # a step that calls the step of its base class is one step
            return step(self, *args, **further)
        _stepping.add(id(self))
        try:
            count = getattr(self, "num_envs", 1)
            _env_steps[0] += count if type(count) is int else 1
            return step(self, *args, **further)
        finally:
            _stepping.discard(id(self))

    return counted


def chain() -> None:
    """Run the `sitecustomize` that this one replaces."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
    rest = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if os.environ.get(FOLDER):
        atexit.register(write, os.environ[FOLDER], os.environ.get(ROOT))
        record_options()
        count_steps()
    chain()
