"""Checkpoints made by these tests lie outside any project; that such ones are refused is tested in tests/evaluate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlx.evaluate.stored_code import trust_stored_code


@pytest.fixture(autouse=True)
def own_checkpoints() -> Iterator[None]:
    """Trust the code that every checkpoint names, as `--trust` does."""
    trust_stored_code(is_trusted=True)
    yield
    trust_stored_code(is_trusted=False)
