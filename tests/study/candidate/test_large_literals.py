"""Data in a code change is named with its place and size."""

from __future__ import annotations

import base64
import random

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
    assert large_literals(text.replace(b"+WEIGHTS", b"-WEIGHTS")) == []


def test_a_binary_file_is_named() -> None:
    patch = b"diff --git a/nets/w.bin b/nets/w.bin\nnew file mode 100644\nGIT binary patch\nliteral 4\nzc\n"
    assert large_literals(patch) == ["nets/w.bin: a binary file"]
