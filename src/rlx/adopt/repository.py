"""A repository as text: a bounded list of its files, and their syntax trees. Nothing of it is imported or run.

Limits keep a hostile repository from taking long: the number and depth of files, the bytes per file and in total, and
the seconds of computing. Links are not followed. `ForeignRepository.notes` says which limits were reached.
"""

from __future__ import annotations

import ast
import os
import re
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

MOST_FILES = 20_000
DEEPEST = 16
LARGEST_FILE = 1_000_000
LARGEST_TOTAL = 64 * 2**20
LONGEST_LINE = 100_000
MOST_SECONDS = 12.0
MOST_CLOCK_SECONDS = 60.0
MOST_NODES = 200_000
DEEPEST_TREE = 200
"""Finders follow expressions by recursion: a sum of thousands of terms would exceed Python's limit."""
SKIPPED = frozenset((
    "__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env_isaaclab", "third_party", "vendor",
    "wandb", "mlruns", "_isaac_sim",
))  # fmt: skip
ASIDE = re.compile(
    r"(^|/)(tests?|docs?|documentation|benchmarks?|ci|tools|\.github|deploy\w*|docker)/|(^|/)(conftest|setup|noxfile)\.py$"
)
"""Files that are part of the project but not of its training: they are not read as programs."""
_NAMED_TEST = re.compile(r"(^|/)(test_\w+|\w+_test)\.py$")
_UNIT_TEST = re.compile(r"\bimport (pytest|unittest)\b|\bTestCase\b")
_TEST_FUNCTION = re.compile(r"^[ \t]*(async )?def test", re.M)
_ASSERTS = re.compile(r"^[ \t]+assert\b", re.M)
_PLAYS = re.compile(r"\.step\(|\.predict\(|\bparse_args\(|__main__")


@dataclass(frozen=True)
class PythonFile:
    """A Python file with its syntax tree and its nodes by kind."""

    path: str
    text: str
    tree: ast.Module

    inner: dict[int, list[ast.AST]] = field(default_factory=dict, compare=False)
    """The nodes inside functions and classes that were asked for, by identity."""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes, up to a limit."""
        return self._walked[0]

    @property
    def depth(self) -> int:
        """How deeply the syntax tree is nested."""
        return self._walked[1]

    @cached_property
    def _walked(self) -> tuple[list[ast.AST], int]:
        return _levels(self.tree)

    def inside(self, node: ast.AST) -> list[ast.AST]:
        """Return a node and all nodes in it, walked once for all finders."""
        if id(node) not in self.inner:
            self.inner[id(node)] = walked(node)
        return self.inner[id(node)]

    @cached_property
    def _kinds(self) -> dict[type[ast.AST], list[Any]]:
        """The nodes by kind, sorted once for all finders."""
        kinds: dict[type[ast.AST], list[Any]] = {}
        for node in self.nodes:
            kinds.setdefault(type(node), []).append(node)
        return kinds

    @cached_property
    def calls(self) -> list[ast.Call]:
        return self._kinds.get(ast.Call, [])

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return self._kinds.get(ast.ClassDef, [])

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        return self._kinds.get(ast.FunctionDef, [])

    @cached_property
    def imports(self) -> dict[str, int]:
        """The imported modules by their full names, and the names imported from them, with their lines."""
        names: dict[str, int] = {}
        for node in (*self._kinds.get(ast.Import, ()), *self._kinds.get(ast.ImportFrom, ())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    names.setdefault(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                names.setdefault(module, node.lineno)
                for alias in node.names:
                    names.setdefault(f"{module}.{alias.name}", node.lineno)
        return names

    @cached_property
    def packages(self) -> set[str]:
        """The top-level packages that it imports."""
        return {name.partition(".")[0] for name in self.imports if not name.startswith(".")}

    @cached_property
    def main_line(self) -> int:
        """The line of `if __name__ == "__main__"`; 0 if there is none."""
        for node in self.tree.body:
            if isinstance(node, ast.If) and "__main__" in spelled(node.test):
                return node.lineno
        return 0

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem


@dataclass
class ForeignRepository:
    """The files below a folder, read once and within limits."""

    root: Path
    notes: list[str] = field(default_factory=list)
    cache: dict[str, Any] = field(default_factory=dict)
    """Results that several finders share."""
    _started: float = field(default_factory=time.process_time)
    _began: float = field(default_factory=time.monotonic)
    _bytes: int = 0
    _texts: dict[str, str] = field(default_factory=dict)
    _trees: dict[str, PythonFile | None] = field(default_factory=dict)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The paths of the files below the folder, shallow ones first."""
        names = sorted(self._walk(), key=lambda name: (name.count("/"), name))
        if len(names) >= MOST_FILES:
            self.notes.append(f"only the first {MOST_FILES:,} files were looked at")
        return tuple(names)

    def _walk(self) -> Iterator[str]:
        count = 0
        folders = [(self.root, "", 0)]
        while folders:
            folder, prefix, depth = folders.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.is_symlink():
                    continue
                if entry.is_dir():
                    if depth < DEEPEST and not _is_skipped(entry):
                        folders.append((Path(entry.path), f"{prefix}{entry.name}/", depth + 1))
                elif entry.is_file():
                    count += 1
                    yield f"{prefix}{entry.name}"
                if count >= MOST_FILES:
                    return

    def text(self, path: str) -> str:
        """Return the text of a file; empty if it is too large, binary or unreadable, or if a limit is reached."""
        file = self.root / path
        try:
            size = file.stat().st_size
            if size > LARGEST_FILE or self._bytes + size > LARGEST_TOTAL:
                self.notes.append(f"{path} was not read: it is too large")
                return ""
            content = file.read_bytes()
        except OSError:
            return ""
        self._bytes += len(content)
        if b"\0" in content[:8192]:
            return ""
        return content.decode("utf-8", "replace")

    @cached_property
    def programs(self) -> tuple[PythonFile, ...]:
        """The Python files outside tests and documentation that have a word which a finder looks for."""
        parsed = []
        for name in self.modules:
            if self._is_late():
                self.notes.append(f"the time limit of {MOST_SECONDS:g} s was reached: some Python files were not read")
                break
            if _STARTED.search(name) or _WORTH_PARSING.search(self.source(name)):
                file = self.by_path(name)
                if file is not None:
                    parsed.append(file)
        return tuple(parsed)

    def _is_late(self) -> bool:
        """Return whether the time is up: of computing, so that a busy machine finds the same facts, or by the clock."""
        is_busy = time.process_time() - self._started > MOST_SECONDS
        return is_busy or time.monotonic() - self._began > MOST_CLOCK_SECONDS

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """The paths of the Python files outside tests and documentation, shallow ones first."""
        paths = (name for name in self.files if name.endswith(".py") and not ASIDE.search(name))
        return tuple(name for name in paths if not (_NAMED_TEST.search(name) and self._is_unit_test(name)))

    def _is_unit_test(self, path: str) -> bool:
        """Return whether a file named like a test tests code; others test a policy in its environment."""
        text = self.source(path)
        has_cases = bool(_TEST_FUNCTION.search(text) and _ASSERTS.search(text))
        return not _PLAYS.search(text) or has_cases or bool(_UNIT_TEST.search(text))

    def source(self, path: str) -> str:
        """Return the text of a Python file, which is kept."""
        if path not in self._texts:
            self._texts[path] = self.text(path)
        return self._texts[path]

    def by_path(self, path: str) -> PythonFile | None:
        """Return a Python file, parsed once; None if it cannot be parsed."""
        if path not in self._trees:
            self._trees[path] = self._parsed(path)
        return self._trees[path]

    def file_of_class(self, name: str) -> PythonFile | None:
        """Return the file that defines a class."""
        mark = re.compile(rf"^class {re.escape(name)}\b", re.M)
        path = next((path for path in self.modules if mark.search(self.source(path))), None)
        if path is None:
            return None
        return self.by_path(path)

    def _parsed(self, name: str) -> PythonFile | None:
        text = self.source(name)
        if not text.strip():
            return None
        if max(map(len, text.splitlines())) > LONGEST_LINE:
            self.notes.append(f"{name} was not read: it has a line of more than {LONGEST_LINE:,} characters")
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file = PythonFile(name, text, ast.parse(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.notes.append(f"{name} is not Python that this interpreter can parse")
            return None
        if file.depth > DEEPEST_TREE:
            self.notes.append(f"{name} was not read: an expression in it is nested too deeply")
            return None
        return file


_STARTED = re.compile(r"(^|/)[\w-]*(train|eval|main|play|run)[\w-]*\.py$")
"""Names of files that are read because they are likely to be programs."""
_WORTH_PARSING = re.compile(
    r"__main__|ArgumentParser|tyro\.|@click|hydra|DEFINE_|gin\.|(Rew|Reward|Termination|Done|Curr|Curriculum|Event|Randomization)Term|"
    r"class (rewards|domain_rand|scales)\b|[rR]eward|terminated|truncated|final_info|add_scalar|wandb|\.record\(|"
    r"SummaryWriter|torch\.load|pickle|torch\.save|\.save\(|VecNormalize|NormalizeObs|import gym\b|"
    r"\.learn\(|\.backward\(|sacred|typer|fire\.|absl|\.step\(|\.fit\(|\.train\(|GradientTape|train_on_batch|\.run\(|"
    r"[Tt]rainer|tolerance\(|config_dict|\nmain\w*\(|logger\.|summary|lightning|\.to_csv\(|\.save_?\w*\(|\bsavez?\(|\.dump\(|"
    r"to_bytes\(|\.log\w*\(|Checkpoint|add_scalars",
)
"""Words that the finders look for; a file without any of them is parsed only if a program imports it."""


def walked(tree: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes in it, up to a limit. This loop is several times faster than `ast.walk`."""
    return _levels(tree)[0]


_LEAVES = (ast.Name, ast.Constant, ast.Pass, ast.alias)
"""Nodes without further nodes in them: about half of all."""


def _levels(tree: ast.AST) -> tuple[list[ast.AST], int]:
    """Return the nodes of a tree, and how deeply it is nested."""
    nodes: list[ast.AST] = [tree]
    depth = 0
    end = 1
    for place, node in enumerate(nodes):
        if place == end:
            depth += 1
            end = len(nodes)
        if type(node) in _LEAVES:
            continue
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                if not isinstance(value, ast.expr_context):
                    nodes.append(value)
            elif isinstance(value, list):
                nodes.extend(item for item in value if isinstance(item, ast.AST))
        if len(nodes) >= MOST_NODES:
            break
    return nodes, depth


def _is_skipped(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in SKIPPED or entry.name.endswith(".egg-info"):
        return True
    return os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))  # noqa: PTH110, PTH118  a hot loop


def spelled(node: ast.AST | None) -> str:
    """Return the source of an expression; empty if there is none or it is nested too deeply."""
    if node is None:
        return ""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError, AttributeError):
        return ""


def dotted(node: ast.AST) -> str:
    """Return the dotted name of a variable or attribute, such as `torch.save`; empty for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        names.append(node.id)
    elif isinstance(node, ast.Call):
        names.append("()")
    else:
        names.append("")
    return ".".join(reversed(names))


def literal(node: ast.AST | None) -> object:
    """Return the value of a constant expression, products and powers of numbers included; None for anything else."""
    if node is None:
        return None
    if isinstance(node, ast.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        value = literal(node.args[0])
        if isinstance(value, (int, float)) and abs(value) < 1e18:
            return int(value) if dotted(node.func) == "int" else float(value)
        return None
    if isinstance(node, ast.BinOp):
        return _computed(node)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _computed(node: ast.BinOp) -> object:
    left = literal(node.left)
    right = literal(node.right)
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Pow) and abs(left) <= 1000 and abs(right) <= 12:
        return left**right
    return None
