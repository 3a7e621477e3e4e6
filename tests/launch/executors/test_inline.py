from __future__ import annotations

import pytest

from rlx.testing import ExecutorContract


@pytest.mark.slow
class TestInline(ExecutorContract):
    executor = "inline"
    survives = False
