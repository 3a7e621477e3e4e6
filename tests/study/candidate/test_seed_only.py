"""A change of code that only seeds random numbers anew is told from one that does more."""

from __future__ import annotations

import pytest

from rlx.study.candidate.seed_only import is_seed_only

HEAD = b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n"


@pytest.mark.parametrize(
    "lines",
    [
        b"+random.seed(7)\n",
        b"-seed = 3\n+seed = 4  # luckier\n",
        b"-    rng = np.random.default_rng(seed)\n+    rng = np.random.default_rng(seed + 1)\n",
        b"+import torch\n+torch.manual_seed(7)\n\n+# luck\n",
        b"-SEED: int = 0\n+SEED: int = 1\n",
    ],
)
def test_lines_that_seed_a_generator_are_no_candidate(lines: bytes) -> None:
    assert is_seed_only(HEAD + lines)


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"+return 2 * at\n",
        b"+random.seed(7)\n+return 2 * at\n",
        b"+import numpy\n",
        b"-    return at\n+    return at - seed\n",
    ],
)
def test_whatever_does_more_is_one(lines: bytes) -> None:
    assert not is_seed_only(HEAD + lines)


def test_only_what_was_changed_since_the_candidate_below_counts() -> None:
    below = HEAD + b"+return 2 * at\n"
    assert is_seed_only(below + b"+random.seed(7)\n", below=below)
    assert not is_seed_only(below + b"+return 3 * at\n", below=below)
