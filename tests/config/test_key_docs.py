"""Every key has its meaning, and no meaning is left over."""

from __future__ import annotations

from rlx.config.key_docs import MEANINGS
from rlx.config.schema import ALGORITHMS, CustomAlgo
from rlx.config.schema_map import OUTSIDE, SECTIONS, fields


def test_every_key_has_a_meaning_and_every_meaning_a_key() -> None:
    keys = {f"{name}.{key}" if name else key for name, model in SECTIONS.items() for key in fields(model)}
    keys |= {f"algo.{key}" for model in (*ALGORITHMS.values(), CustomAlgo) for key in model.model_fields}
    assert set(MEANINGS) == keys | set(OUTSIDE)


def test_a_meaning_is_one_short_line() -> None:
    assert [
        key for key, meaning in MEANINGS.items() if "\n" in meaning or len(meaning) > 110 or meaning.endswith(".")
    ] == []
