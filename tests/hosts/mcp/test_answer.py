"""Answers fit into 2 kB, page through everything once, and mark what is foreign."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from rlx.errors import UsageError
from rlx.hosts.mcp.answer import LIMIT_BYTES, AnswerPage, clip, foreign, page, shortened, size


class Item(BaseModel):
    name: str
    notes: list[str] = []


class Items(AnswerPage):
    items: list[Item]


def ask(rows: list[dict[str, object]], cursor: str | None = None) -> Items:
    return page(Items, "items", rows, cursor, {})


def test_pages_cover_everything_once() -> None:
    rows: list[dict[str, object]] = [{"name": f"run_{number:03d}", "notes": ["x" * 50]} for number in range(120)]
    seen, cursor = [], None
    while True:
        answer = ask(rows, cursor)
        assert size(answer) <= LIMIT_BYTES
        assert answer.total == 120
        seen += [item.name for item in answer.items]
        cursor = answer.cursor
        if cursor is None:
            break
    assert seen == [row["name"] for row in rows]


def test_an_item_that_is_too_large_is_cut_and_not_left_out() -> None:
    answer = ask([{"name": "long", "notes": ["é" * 5000, "b" * 5000]}, {"name": "short"}])
    assert answer.items[0].name == "long"
    assert answer.items[0].notes[0].endswith("…")
    assert size(answer) <= LIMIT_BYTES


def test_nothing_is_an_answer_too() -> None:
    assert ask([]).cursor is None


@pytest.mark.parametrize("cursor", ["-1", "x", "99999999999999999999", "1; drop"])
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        ask([{"name": "one"}], cursor)


def test_whatever_is_around_the_list_is_cut_until_it_fits() -> None:
    class Loud(BaseModel):
        text: str
        more: dict[str, list[str]]

    assert size(shortened(Loud(text="t" * 9000, more={"a": ["b" * 900] * 100}))) <= LIMIT_BYTES


def test_foreign_text_keeps_its_end_and_loses_its_escapes() -> None:
    told = foreign("begin" * 1000 + "\x1b[31mred\x1b[0m\x00 end", chars=20)
    assert told.untrusted_text.endswith("red end")
    assert told.is_cut
    assert len(told.untrusted_text) == 20


def test_clip_leaves_numbers_alone() -> None:
    assert clip({"a": 1.5, "b": [1, 2], "c": None}, 10) == {"a": 1.5, "b": [1], "c": None}
