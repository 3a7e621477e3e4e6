"""The architecture holds: imports point downwards, light commands stay light, the README's tree is true."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rlx"
HEAVY = ("numpy", "torch", "gymnasium", "stable_baselines3", "pydantic", "matplotlib", "yaml")


def test_imports_point_downwards_only() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["ls"], ["info", "some_001"], ["tag", "some_001", "good"]])
def test_light_commands_import_nothing_heavy(argv: list[str], tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()
    code = (
        "import sys\n"
        "from rlx.hosts.cli.main import call\n"
        f"call({argv!r})\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "RLX_ROOT": str(tmp_path)},
    )
    assert "HEAVY []" in done.stdout, done.stdout + done.stderr


def test_children_of_rlx_import_nothing_from_the_current_folder() -> None:
    """`python -m` looks there first, and a stranger's project may hold an `rlx.py`."""
    started = re.compile(r"""sys\.executable,((?: "-\w",)*) "-m",""")
    found = {path.name: started.findall(path.read_text()) for path in PACKAGE.rglob("*.py")}
    options = {name: flags for name, flags in found.items() if flags}
    assert len(options) > 8
    assert all('"-P"' in each for flags in options.values() for each in flags), options


def test_importing_rlx_costs_nothing_heavy() -> None:
    code = f"import sys, rlx; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_imported() -> None:
    import rlx

    assert all(getattr(rlx, name) is not None for name in rlx.__all__)


def test_the_tree_in_the_readme_is_the_tree_there_is() -> None:
    block = (ROOT / "README.md").read_text().split("src/rlx/\n")[1].split("docs/ ")[0]
    drawn = set(re.findall(r"^  ([a-z_]+(?:/|\.py))\s", block, flags=re.M))
    there = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    there |= {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert drawn == there


def test_every_module_says_what_lives_there() -> None:
    silent = [str(path) for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')]
    assert silent == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "util", "common", "core", "helpers", "helper", "base", "manager", "misc"}
    assert [path for path in PACKAGE.rglob("*.py") if path.stem in banned] == []


def test_tests_mirror_the_tree() -> None:
    strays = []
    for test in (ROOT / "tests").rglob("test_*.py"):
        relative = test.relative_to(ROOT / "tests")
        if len(relative.parts) < 2 or relative.parts[0] in ("faults", "hosts_real"):
            continue
        if not any((above / relative.parent).is_dir() for above in (PACKAGE, ROOT)):
            strays.append(str(relative))
    assert strays == []


# How the code reads. The limits keep the figures from rising; they are goals for the whole package.

FAMILIES = ("diagnose/rules", "hosts/cli")
"""Folders that hold one module per rule or command, and may hold many."""
PLACES_OF_PROSE = ("src", "docs", "bench", "examples")
ODD_PHRASES = re.compile(
    "|".join(
        (
            r"\banew\b", r"\bmend(?:s|ed|ing)?\b", r"\bwhoever\b", r"\bnobody\b", r"\bbeside\b", r"\bunder way\b",
            r"\b(?:is|are|was|were|be) no (?!longer|more|one|such)", r"\b(?:is|are|was|were) told\b",
            r"\bwhere (?:it|that|this|they|there|a|an|the|nothing|one|none|no)\b", r"\bfor want of\b",
            r"(?:^|[.;:] )Of (?:a|an|the|its|what|all)\b", r"\bas it is it\b", r"\bof which\b", r"\botherwise than\b",
            r"\bwhat (?:is|was|it|they|he|she|has|had|failed|ran|one)\b",
            r"\b(?:a|an) \w+ an? (?:seed|episode|row|line|run|second|side|step|file|candidate|job)\b",
        )
    ),
    flags=re.I,
)  # fmt: skip


@functools.cache
def modules() -> dict[str, tuple[str, ast.Module]]:
    """Return the text and the syntax tree of every module by its path below the package."""
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


@functools.cache
def every_node() -> list[tuple[str, ast.AST]]:
    """Return every syntax node with the path of its module."""
    return [(name, node) for name, (_, tree) in modules().items() for node in ast.walk(tree)]


def nodes(*kinds: type[ast.AST]) -> list[tuple[str, Any]]:
    """Return every syntax node of these kinds with the path of its module."""
    return [(name, node) for name, node in every_node() if isinstance(node, kinds)]


@functools.cache
def code_lines(name: str) -> int:
    """Count the lines of a module that are not blank, a comment or a docstring."""
    text, tree = modules()[name]
    prose: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and is_text(body[0].value):
            prose.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and at not in prose for at, line in lines)


def total_lines() -> int:
    return sum(map(code_lines, modules()))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_statements_are_preferred_to_dense_expressions() -> None:
    conditional = [node for _, node in nodes(ast.IfExp)]
    nested = [f"{name}:{node.lineno}" for name, node in nodes(ast.IfExp)
              if isinstance(node.body, ast.IfExp) or isinstance(node.orelse, ast.IfExp)]  # fmt: skip
    tuples = [node for _, node in nodes(ast.Assign)
              if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)]  # fmt: skip
    assert nested == []
    assert 1000 * len(conditional) / total_lines() <= 20
    assert 1000 * len(tuples) / total_lines() <= 3


def test_no_folder_is_crowded() -> None:
    counts = Counter(str(Path(name).parent) for name in modules() if not name.endswith("__init__.py"))
    assert {folder: count for folder, count in counts.items() if count > 20 and folder not in FAMILIES} == {}


def test_a_module_name_means_one_thing() -> None:
    stems = [
        Path(name).stem for name in modules() if not name.startswith("hosts/") and not name.endswith("__init__.py")
    ]
    assert [stem for stem, count in Counter(stems).items() if count > 1] == []


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, set[str]] = {}
    for name, node in nodes(ast.ClassDef):
        if not node.name.startswith("_"):
            places.setdefault(node.name, set()).add(name)
    repeated = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert len(repeated) <= 5, repeated


def test_there_are_few_trouble_spots() -> None:
    """A broad except, a long parameter list, a long function or a long file needs a good reason."""
    spots = [name for name in modules() if code_lines(name) > 500]
    for name, node in nodes(ast.ExceptHandler):
        if node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"):
            spots.append(f"{name}:{node.lineno}: broad except")
    for name, node in nodes(ast.Raise):
        if "NotImplementedError" in ast.dump(node):
            spots.append(f"{name}:{node.lineno}: NotImplementedError")
    for name, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if sum(argument.arg not in ("self", "cls") for argument in arguments) > 6:
            spots.append(f"{name}:{node.lineno}: {node.name} takes more than 6 parameters")
        if node.end_lineno - node.lineno + 1 > 60:
            spots.append(f"{name}:{node.lineno}: {node.name} has more than 60 lines")
    assert len(spots) <= 15, "\n".join(spots)


def prose() -> Iterator[tuple[str, str]]:
    """Yield every text that people read with its room: strings of the package, and pages outside the skills."""
    for name, node in nodes(ast.Constant):
        if isinstance(node.value, str) and " " in node.value.strip():
            yield f"src/rlx/{name.split('/')[0]}", node.value
    pages = [*ROOT.glob("*.md"), *(page for place in PLACES_OF_PROSE for page in (ROOT / place).rglob("*.md"))]
    for page in pages:
        parts = page.relative_to(ROOT).parts
        if "skills" not in parts and "runs" not in parts:
            room = "/".join(parts[: 3 if parts[0] == "src" else 2])
            yield room, page.read_text()


def test_the_english_is_plain() -> None:
    """Count phrases that make technical English hard to read, per 1,000 words, overall and in every room."""
    words: Counter[str] = Counter()
    phrases: dict[str, list[str]] = {}
    for room, text in prose():
        words[room] += len(text.split())
        phrases.setdefault(room, []).extend(
            match[0] for line in text.splitlines() for match in ODD_PHRASES.finditer(line)
        )
    rates = {room: 1000 * len(found) / words[room] for room, found in phrases.items()}
    assert {room: (rate, phrases[room][:5]) for room, rate in rates.items() if rate > 4} == {}
    assert 1000 * sum(map(len, phrases.values())) / words.total() <= 2
