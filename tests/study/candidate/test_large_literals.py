"""Data in a code change is named with its place and size."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import rlx
from rlx.study.candidate.large_literals import large_literals

HEAD = b"diff --git a/envs/pay.py b/envs/pay.py\n--- a/envs/pay.py\n+++ b/envs/pay.py\n@@ -1 +1,2 @@\n"


def test_weights_as_text_or_as_numbers_are_named_and_plain_code_is_not() -> None:
    noise = random.Random(0).randbytes(3000)
    text = HEAD + b"+WEIGHTS = '" + base64.b64encode(noise) + b"'\n"
    assert large_literals(text) == ["envs/pay.py: 4,000 characters of text without a blank"]
    numbers = HEAD + b"+W = [" + b", ".join(b"%.4f" % (byte / 7) for byte in noise[:500]) + b"]\n"
    assert large_literals(numbers) == ["envs/pay.py: 500 numbers"]
    hexadecimal = HEAD + b"+W = b'" + b"".join(b"\\x%02x" % byte for byte in noise[:400]) + b"'\n"
    assert large_literals(hexadecimal) == ["envs/pay.py: 1,600 characters of text without a blank"]
    assert large_literals(HEAD + b"+    return 1.0 if there else at / 100\n" * 50) == []
    prose = "奖励函数根据到目标的距离给出一个小的奖励，到达目标时给出完整的奖励。" * 30
    assert large_literals(HEAD + f"+# {prose}\n".encode()) == []
    assert large_literals(text.replace(b"+WEIGHTS", b"-WEIGHTS")) == []


def test_a_binary_file_is_named() -> None:
    patch = b"diff --git a/nets/w.bin b/nets/w.bin\nnew file mode 100644\nGIT binary patch\nliteral 4\nzc\n"
    assert large_literals(patch) == ["nets/w.bin: a binary file"]


def test_data_in_short_lines_is_named() -> None:
    noise = random.Random(0).randbytes(3000)
    for lines in (
        base64.encodebytes(noise),
        b"\n".join(noise[at : at + 30].hex().encode() for at in range(0, 3000, 30)),
    ):
        (text,) = large_literals(HEAD + b"".join(b"+" + line + b"\n" for line in lines.split()))
        assert text.endswith("characters that look like encoded data")
    escaped = b"".join(b'+    "' + b"".join(b"\\x%02x" % byte for byte in noise[at : at + 15]) + b'"\n'
                       for at in range(0, 600, 15))  # fmt: skip
    assert large_literals(HEAD + escaped) == ["envs/pay.py: 600 numbers"]
    braille = "".join(chr(0x2800 + byte) for byte in noise[:500]).encode()
    assert large_literals(HEAD + b"+W = '" + braille + b"'\n") == [
        "envs/pay.py: 500 characters outside ASCII without a blank"
    ]


def test_a_line_that_looks_like_a_files_name_does_not_divide_the_data() -> None:
    part = b"+    [" + b"1, " * 90 + b"]\n+++ b/other.py\n"
    assert large_literals(HEAD + part * 3) == ["envs/pay.py: 270 numbers"]


def test_data_that_is_spread_over_files_is_named() -> None:
    files = [HEAD.replace(b"pay", b"pay%d" % number) + b"+W = [" + b"1, " * 90 + b"]\n" for number in range(4)]
    assert large_literals(b"".join(files)) == ["4 files together: 360 numbers"]


def test_no_module_of_rlx_looks_like_data() -> None:
    found = {}
    for path in sorted(Path(rlx.__file__).parent.rglob("*.py")):
        lines = [line for line in path.read_bytes().split(b"\n") if line.isascii()]
        named = large_literals(HEAD + b"".join(b"+" + line + b"\n" for line in lines))
        found[path.name] = [text for text in named if not text.endswith(" numbers")]
    assert len(found) > 500
    assert not any(found.values()), found
