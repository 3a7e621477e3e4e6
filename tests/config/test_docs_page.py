"""The reference page has every key."""

from __future__ import annotations

from rlx.config import catalog
from rlx.config.docs_page import page
from rlx.config.key_docs import MEANINGS
from rlx.config.schema import ALGORITHMS


def test_every_key_algorithm_and_catalog_config_is_on_the_page() -> None:
    text = page()
    assert [key for key in MEANINGS if f"| `{key}` |" not in text and key != "algo.kwargs"] == []
    assert all(f"### {name}\n" in text for name in ALGORITHMS)
    assert all(f"| `catalog:{name}` |" in text for name in catalog.names())


def test_only_the_environment_and_what_a_part_makes_no_sense_without_are_required() -> None:
    required = [line.split("|")[1].strip() for line in page().splitlines() if "| required |" in line]
    parts = ["`env.wrappers.name`", "`stop.plateau.steps`", "`command.train`", "`command.metrics.reader`"]
    assert required == ["`env`", "`env.id`", *parts]


def test_every_row_of_a_table_has_the_same_width() -> None:
    for block in page().split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 1
