"""A region of a Python file, `Class`, `function` or `Class.method`: where it begins and ends, by its syntax tree."""

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
    """Where a definition stands: byte offsets of its first (decorators included) and behind its last byte."""

    name: str
    start: int
    end: int
    line: int
    decorators: tuple[str, ...]
    kind: str

    def within(self, source: bytes) -> bytes:
        return source[self.start : self.end]

    def outside(self, source: bytes) -> tuple[bytes, bytes]:
        """Return what stands before and after it."""
        return source[: self.start], source[self.end :]


def find(source: bytes, name: str) -> Region:
    """Find a region; `ValueError` says why there is none: a syntax error, no such definition, several of them."""
    found = list(_named(_parsed(source), name))
    if not found:
        raise ValueError(f"has no `{name}`")
    if len(found) > 1:
        lines = ", ".join(str(node.lineno) for node in found)
        raise ValueError(f"defines `{name}` {len(found)} times (lines {lines})")
    return _region(source, name, found[0])


def names(source: bytes) -> list[str]:
    """Return the regions a file has: its functions, its classes and their methods."""
    tree = _parsed(source)
    return [name for node in tree.body if isinstance(node, DEFINITIONS) for name in _names(node)]


def _names(node: Definition) -> Iterator[str]:
    yield node.name
    if isinstance(node, ast.ClassDef):
        yield from (f"{node.name}.{one.name}" for one in node.body if isinstance(one, DEFINITIONS))


def _parsed(source: bytes) -> ast.Module:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        if encoding not in ("utf-8", "utf-8-sig"):  # offsets are counted in UTF-8
            raise ValueError(f"it is encoded as {encoding}, not UTF-8")
        return ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"is no Python (line {error.lineno}: {error.msg})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"is no Python ({error})") from None


def _named(tree: ast.Module | ast.ClassDef, name: str) -> Iterator[Definition]:
    """Yield every definition of a dotted name, also those under an if or a try, where Python would find it."""
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
                    inner = part.body if isinstance(part, (ast.ExceptHandler, ast.match_case)) else [part]
                    yield from _statements([one for one in inner if isinstance(one, ast.stmt)])


def _region(source: bytes, name: str, node: Definition) -> Region:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    starts = _line_starts(source)
    return Region(
        name=name,
        start=starts[first - 1],
        end=starts[node.end_lineno - 1] + node.end_col_offset,
        line=node.lineno,
        decorators=tuple(ast.unparse(one) for one in node.decorator_list),
        kind=type(node).__name__,
    )


def _line_starts(source: bytes) -> list[int]:
    """Return the offset of every line as Python's parser counts them: \\n, \\r\\n and a lone \\r end one."""
    starts = [len(codecs.BOM_UTF8) if source.startswith(codecs.BOM_UTF8) else 0]
    for index, byte in enumerate(source):
        if byte == 0x0A or (byte == 0x0D and source[index + 1 : index + 2] != b"\n"):
            starts.append(index + 1)
    return starts
