"""Find a region of a Python file (`Class`, `function` or `Class.method`) by the file's syntax tree."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Region:
    """The place of a definition: byte offsets of its start, with decorators, and of its end."""

    name: str
    start: int
    end: int
    line: int
    decorators: tuple[str, ...]
    kind: str

    def within(self, source: bytes) -> bytes:
        return source[self.start : self.end]


def find(source: bytes, name: str) -> Region:
    """Find a region; `ValueError` says why it cannot: a syntax error, no such definition, or several."""
    nodes = list(_named(_parsed(source), name))
    if not nodes:
        raise ValueError(f"has no `{name}`")
    if len(nodes) > 1:
        lines = ", ".join(str(node.lineno) for node in nodes)
        raise ValueError(f"defines `{name}` {len(nodes)} times (lines {lines})")
    return _region(source, name, nodes[0])


def names(source: bytes) -> list[str]:
    """Return the regions of a file: its functions, its classes and their methods."""
    found = []
    for node in _parsed(source).body:
        if isinstance(node, DEFINITIONS):
            found.append(node.name)
        if isinstance(node, ast.ClassDef):
            found += [f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, DEFINITIONS)]
    return found


def _parsed(source: bytes) -> ast.Module:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        if encoding not in ("utf-8", "utf-8-sig"):  # offsets are counted in UTF-8
            raise ValueError(f"it is encoded as {encoding}, not UTF-8")
        return ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"is not valid Python (line {error.lineno}: {error.msg})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"is not valid Python ({error})") from None


def _named(tree: ast.Module | ast.ClassDef, name: str) -> Iterator[Definition]:
    """Yield every definition of a dotted name, also those inside an `if` or `try`."""
    first, _, rest = name.partition(".")
    for node in _statements(tree.body):
        if isinstance(node, DEFINITIONS) and node.name == first:
            if not rest:
                yield node
            elif isinstance(node, ast.ClassDef):
                yield from _named(node, rest)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if not isinstance(node, DEFINITIONS):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                for part in getattr(node, field, []):
                    if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                        yield from _statements(part.body)
                    elif isinstance(part, ast.stmt):
                        yield from _statements([part])


def _region(source: bytes, name: str, node: Definition) -> Region:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    starts = _line_starts(source)
    return Region(
        name=name,
        start=starts[first - 1],
        end=starts[node.end_lineno - 1] + node.end_col_offset,
        line=node.lineno,
        decorators=tuple(map(ast.unparse, node.decorator_list)),
        kind=type(node).__name__,
    )


def _line_starts(source: bytes) -> list[int]:
    """Return the offset of every line as Python's parser counts them: \\n, \\r\\n and a lone \\r end a line."""
    starts = [len(source) - len(source.removeprefix(codecs.BOM_UTF8))]
    for index, byte in enumerate(source):
        if byte == 0x0A or (byte == 0x0D and source[index + 1 : index + 2] != b"\n"):
            starts.append(index + 1)
    return starts
