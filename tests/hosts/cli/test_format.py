from __future__ import annotations

import io

import pytest

from rlx.errors import UsageError
from rlx.hosts.cli import format


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0, "0"), (0.123456, "0.1235"), (475.25, "475.2"), (-1234.5, "−1,234"), (123456.7, "123,457"),
        (1e12, "1e+12"), ("NaN", "nan"), ("-Infinity", "−inf"), (1e-9, "1e-09"),
    ],
)  # fmt: skip
def test_figures_read_well(value: float | str | None, text: str) -> None:
    assert format.figure(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.4, "59s"), (61, "1m 01s"), (3599.6, "1h 00m"), (90000, "1d 1h")]
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert format.duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e9, "2.5 GB")])
def test_sizes_read_well(count: float, text: str) -> None:
    assert format.size(count) == text


def test_sparklines_show_shape_and_gaps() -> None:
    assert format.sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert format.sparkline([5.0, 5.0]) == "▁▁"
    assert format.sparkline([0.0, float("nan"), 1.0]) == "▁ █"
    assert format.sparkline([0.0, 5.0], scale=(0.0, 10.0)) == "▁▅"
    assert format.sparkline([]) == ""
    assert format.sparkline([float("inf")]) == ""
    assert len(format.sparkline(list(range(1000)), width=40)) == 40


def test_sparklines_are_ascii_where_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))

    assert format.sparkline([0.0, 1.0]) == "_#"


@pytest.mark.parametrize(("text", "seconds"), [("45", 45), ("45s", 45), ("90m", 5400), ("1h30m", 5400), ("1.5h", 5400)])
def test_time_spans_are_read_as_people_type_them(text: str, seconds: float) -> None:
    assert format.timespan(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "2 weeks", "h", "-3m"])
def test_a_text_that_is_not_a_time_span_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time span"):
        format.timespan(text)


@pytest.mark.parametrize(("value", "text"), [(0.0, "+0"), (80827.4, "+80,827"), (-40741.0, "−40,741"), (0.5, "+0.5")])
def test_differences_read_well(value: float, text: str) -> None:
    assert format.signed(value) == text


def test_settings_read_as_yaml_on_one_line() -> None:
    assert format.setting({"linear": [0.001, 0.0], "is_on": True}) == "{linear: [0.001, 0.0], is_on: true}"
    assert format.setting(None) == "absent"
    assert format.setting(100_000) == "100,000"


@pytest.mark.parametrize("text", ['"open', "it's", "trailing\\"])
def test_a_command_whose_quotes_are_open_is_bad_usage(text: str) -> None:
    with pytest.raises(UsageError, match="--agent"):
        format.command_words(text, option="--agent")
    assert format.command_words("a 'b c'", option="--agent") == ["a", "b c"]
