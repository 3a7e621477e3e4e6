from __future__ import annotations

import io

import pytest

from rlx.hosts.cli import output


def test_colour_is_only_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.has_colour(Terminal())
    assert not output.has_colour(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not output.has_colour(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.has_colour(Terminal())


def test_tables_cut_nothing() -> None:
    long = "a_very_long_name_" * 20
    text = output.table(["name", "n"], [[long, "1"], ["b", "12"]], right=(1,))

    assert long in text
    assert text.splitlines()[2].endswith("12")
