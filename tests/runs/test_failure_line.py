"""The line of a program's output that says why it failed."""

from __future__ import annotations

import pytest

from rlx.runs.failure_line import failure_line

ADVICE = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
RAISED = """\
Error executing job with overrides: ['seed=0']
Traceback (most recent call last):
  File "train.py", line 9, in main
    raise ValueError("the arm fell off")
ValueError: the arm fell off
"""
STRUCT = """\
Could not override 'algo.lerning_rate'.
To append to your config use +algo.lerning_rate=1
Key 'lerning_rate' is not in struct
    full_key: algo.lerning_rate
    object_type=dict
"""


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (RAISED, "ValueError: the arm fell off"),
        (RAISED + ADVICE, "ValueError: the arm fell off"),
        (RAISED + "torch.distributed.elastic.ChildFailedError: \n train.py FAILED\n", "ValueError: the arm fell off"),
        ("subprocess.CalledProcessError: it ended\n", "subprocess.CalledProcessError: it ended"),
        (STRUCT + ADVICE, "Key 'lerning_rate' is not in struct"),
        ("a.b.KeyMissingError: no `x`\n    full_key: x\n", "a.b.KeyMissingError: no `x`"),
        ("train.py: error: what is --x\nusage: train.py\n\n", "train.py: error: what is --x"),
        ("tracking error: 0.25\nthe arm fell off\n", "the arm fell off"),
        ("ValueError: handled\n" + "step\n" * 100 + "the arm fell off\n", "the arm fell off"),
        ("50%\r100%\rdone", "done"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_cause_is_told_and_not_what_stands_below_it(printed: str, says: str) -> None:
    assert failure_line(printed) == says
