"""HTML as values, charts as SVG, and colours that people can read."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from rlx.hosts.plots.curves import Curve, Curves
from rlx.hosts.ui.chart import Marking, decimated, line_chart, short, sparkline, ticks
from rlx.hosts.ui.html import Html, el, link, table, text, url, words
from rlx.hosts.ui.layout import STATIC
from rlx.hosts.ui.study_charts import effect_chart, timeline
from rlx.hosts.ui.sweep_charts import importance_bars, parallel_coordinates, pareto_chart, race_lanes


def test_every_text_is_escaped() -> None:
    evil = "<b onclick='x'>&\""
    assert text(evil) == "&lt;b onclick=&#x27;x&#x27;&gt;&amp;&quot;"
    assert "<b" not in el("p", evil, title=evil, data_x=evil)
    assert "<b" not in table([evil], [[evil]], caption=evil)
    assert el("p", Html("<i>x</i>"), None, [1, "<"]) == "<p><i>x</i>1&lt;</p>"
    assert text("\udcff") == "?"


def test_stored_values_are_spelt_for_people() -> None:
    assert words({"a": [1, None, 2.5], "b": True, "c": None}) == "a: 1, 2.5, b: yes"
    assert words("x") == "x"


def test_addresses_are_encoded() -> None:
    assert url("run", "a/b?c", x=["1", "2"], y="", z=None) == "/run/a%2Fb%3Fc?x=1&x=2"
    assert link("x", url("run", '"><script>')) == '<a href="/run/%22%3E%3Cscript%3E">x</a>'


def test_decimation_keeps_the_extremes() -> None:
    x = np.arange(50_000.0)
    y = np.sin(x / 900)
    y[31_234] = 9.0
    y[12] = -9.0
    few_x, few_y = decimated(x, y, columns=300)
    assert len(few_x) <= 600
    assert few_y.max() == 9.0
    assert few_y.min() == -9.0
    assert (np.diff(few_x) > 0).all()


def test_a_chart_names_seeds_and_findings() -> None:
    seeds = tuple(Curve(seed, np.arange(5.0), np.arange(5.0) + seed) for seed in range(3))
    chart = line_chart(
        [Curves("<run>", seeds)], x_label="steps", y_label="return", markings=[Marking(1, 2, "plateau", "x")]
    )
    assert chart.count("seed s0") == 3
    assert "plateau" in chart
    assert "&lt;run&gt;: mean 5 at 4, n = 3 seeds" in chart
    assert "<run>" not in chart
    nothing = Curves("empty", (Curve(0, np.empty(0), np.empty(0)),))
    assert "No values" in line_chart([nothing], x_label="steps", y_label="return")
    assert sparkline(np.empty(0), np.empty(0)).startswith("<svg")


def test_findings_stand_in_lanes_above_the_curve() -> None:
    curve = Curves("run", (Curve(0, np.arange(5.0), np.arange(5.0)),))
    marks = [Marking(0, 4, "<first>", "first"), Marking(3, 4, "second", "steps 3 to 4")]
    chart = line_chart([curve], x_label="steps", y_label="return", markings=marks)
    assert "&lt;first&gt;" in chart
    bottoms = [
        float(top) + float(height) for top, height in re.findall(r'y="(\d+)" width="[\d.]+" height="(\d+)"', chart)
    ]
    assert len(set(bottoms)) == 2
    rows = [float(row) for row in re.findall(r"[\d.]+,([\d.]+)", re.findall(r'points="([^"]+)"', chart)[-1])]
    assert min(rows) > max(bottoms)


def test_a_curve_of_one_point_is_a_dot() -> None:
    seeds = tuple(Curve(seed, np.array([6144.0]), np.array([50.0 + seed])) for seed in range(2))
    chart = line_chart([Curves("run", seeds)], x_label="steps", y_label="return")
    assert chart.count("<circle") == 3
    column = float(re.findall(r'cx="([\d.]+)"', chart)[0])
    assert 300 < column < 500


def test_a_table_of_sentences_can_be_stacked_on_a_phone() -> None:
    stacked = table(["name", "said"], [["a", "x"], ["b", "–"]], stacks=True)
    assert stacked.count('data-label="said"') == 2
    assert stacked.count('class="blank"') == 1
    assert "data-label" not in table(["name"], [["a"]])


def test_parallel_coordinates_draw_one_line_per_scored_trial() -> None:
    trials = [{"trial": number, "score": float(number), "values": {"lr": 10.0**-number, "act": "<tanh>"}}
              for number in range(1, 6)]  # fmt: skip
    chart = parallel_coordinates([*trials, {"trial": 9, "score": None, "values": {}}])
    assert chart.count("<polyline") == 5
    assert chart.count("mean s1") == 1
    assert "&lt;tanh&gt;" in chart
    assert "<tanh>" not in chart
    rows = re.findall(r'points="60.0,([\d.]+)', chart)
    gaps = np.diff(sorted(map(float, rows)))
    assert np.allclose(gaps, gaps[0], atol=0.2)  # a logarithmic axis
    assert "Too few" in parallel_coordinates(trials[:1])


def test_the_best_trials_of_a_falling_metric_are_the_lowest() -> None:
    trials = [{"trial": number, "score": float(number), "values": {"lr": number}} for number in range(1, 12)]
    thick = re.findall(r'class="mean s1"/><title>trial (\d+)', parallel_coordinates(trials, is_lower_better=True))
    assert thick == ["1"]


def test_lanes_importance_and_costs_of_a_sweep_are_drawn() -> None:
    evil = "<b>"
    first = {"trial": 0, "score": 3.0, "state": "finished", "share": 1.0, "seeds": 6, "cpu_seconds": 2.0}
    second = {**first, "trial": 1, "score": 2.0, "seeds": 3, "cpu_seconds": 1.0}
    dropped = {"trial": 2, "score": None, "state": "dropped", "share": 0.3, "seeds": 0, "cpu_seconds": None}
    trials = [first, second, dropped]
    lanes = race_lanes(trials, {"halving": {"shares": [0.3, 1.0]}, "race": {"sizes": [3, 6]}})
    assert lanes.count('class="lane"') == 3
    assert lanes.count('class="fill s1"') == 2  # the winner in the search and in the race
    assert "trial 2: dropped, trained 30%" in lanes
    bars = importance_bars({"small": 0.1, evil: 0.5})
    assert evil not in bars
    assert bars.index("50%") < bars.index("10%")
    costs = pareto_chart(trials, [0, 1])
    assert costs.count("<circle") == 2
    assert 'class="mean s1"' in costs
    assert "Too few" in pareto_chart(trials[2:], [])
    assert "No trial" in race_lanes([], {})


def test_effects_and_the_ledger_of_a_study_are_drawn() -> None:
    rows = [{"candidate": "baseline", "effect": None}, {"candidate": "<c>", "effect": 2.0, "interval": [1.0, 3.0]},
            {"candidate": "c2", "effect": -1.0, "interval": None}]  # fmt: skip
    chart = effect_chart(rows)
    assert chart
    assert chart.count("<circle") == 2
    assert "&lt;c&gt;: +2 against the head" in chart
    assert effect_chart(rows[:1]) is None
    events = [SimpleNamespace(kind=kind, time=float(at)) for at, kind in enumerate(("created", "proposed", "odd"))]
    drawn = timeline(events)
    assert drawn
    assert drawn.count("<circle") == 3


def test_ticks_are_round() -> None:
    assert ticks(0, 41_000) == [0, 10_000, 20_000, 30_000, 40_000]
    assert ticks(3.0, 3.0) == [3.0]
    assert [short(value) for value in (1500, 2e6, -0.25, 0)] == ["1.5k", "2M", "−0.25", "0"]


def luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def themes() -> list[dict[str, str]]:
    css = (STATIC / "app.css").read_text()
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", css, re.S)]


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_words_have_enough_contrast(theme: dict[str, str]) -> None:
    assert len(theme) > 15
    for ink in ("ink", "muted", "link", "good", "bad", "warn", "busy"):
        for paper in ("paper", "panel", "sunk"):
            bright, dim = sorted((luminance(theme[ink]), luminance(theme[paper])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (ink, paper)
    for line in range(8):
        bright, dim = sorted((luminance(theme[f"s{line}"]), luminance(theme["panel"])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3.0, line
