"""Regions: a definition by its name, its decorators and all its bytes, however the file is written."""

from __future__ import annotations

import codecs

import pytest

from rlx.study.candidate import source_region

SOURCE = b'''import os

@decorated
@twice(1)
class Lift:
    """\xc3\xa9"""
    async def run(self): return "\xc3\xa9\xc3\xa9"  # comment

    def reward(self):
        def inner():
            return 1
        return inner()

def free():
    pass
'''


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("Lift", b"@decorated", b"return inner()"),
        ("Lift.run", b"    async def run", b'\xc3\xa9\xc3\xa9"'),
        ("Lift.reward", b"    def reward", b"return inner()"),
        ("free", b"def free", b"    pass"),
    ],
)
def test_a_region_is_all_of_a_definition_and_nothing_else(name: str, first: bytes, last: bytes) -> None:
    found = source_region.find(SOURCE, name)
    assert found.within(SOURCE).startswith(first)
    assert found.within(SOURCE).endswith(last)
    assert SOURCE[: found.start] + found.within(SOURCE) + SOURCE[found.end :] == SOURCE


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_line_endings_and_marks_do_not_move_it(ending: bytes, mark: bytes) -> None:
    source = mark + SOURCE.replace(b"\n", ending)
    assert source_region.find(source, "free").within(source) == b"def free():" + ending + b"    pass"
    assert source_region.find(mark + b"class A: pass", "A").within(mark + b"class A: pass") == b"class A: pass"


@pytest.mark.parametrize(
    ("source", "name", "why"),
    [
        (SOURCE, "Lift.walk", "has no `Lift.walk`"),
        (SOURCE, "inner", "has no `inner`"),
        (SOURCE, "free.inner", "has no"),
        (b"def f(): pass\ndef f(): pass\n", "f", "defines `f` 2 times"),
        (b"try:\n    def f(): pass\nexcept E:\n    def f(): pass\n", "f", "2 times"),
        (b"if a:\n  class A: pass\nelse:\n  class A: pass\n", "A", "2 times"),
        (b"def f(:\n", "f", "is not valid Python"),
        (b"\xff\xfe", "f", "is not valid Python"),
        (b"# -*- coding: latin-1 -*-\ndef f(): return '\xe9'\n", "f", "not UTF-8"),
        (b"def f(): pass\0", "f", "is not valid Python"),
    ],
)
def test_what_is_no_region_says_why(source: bytes, name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        source_region.find(source, name)


def test_the_regions_of_a_file() -> None:
    assert source_region.names(SOURCE) == ["Lift", "Lift.run", "Lift.reward", "free"]
