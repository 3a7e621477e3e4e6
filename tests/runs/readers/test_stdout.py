from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlx.errors import ConfigError
from rlx.runs.readers.stdout import StdoutReader
from rlx.testing import ReaderContract


class TestStdout(ReaderContract):
    reader = StdoutReader
    place = "train.log"

    def write(self, path: Path, start: int, count: int) -> None:
        with path.open("a") as stream:
            for row in range(start, start + count):
                score = {2: "nan", 3: "inf"}.get(row, str(row))
                stream.write(f"\x1b[32m[info]\x1b[0m step={100 * row:,} loss: {row / 4:.6f} score={score}\n")


def test_a_pattern_names_the_figures_and_a_step_counts_for_what_follows() -> None:
    pattern = r"Iteration (?P<step>\d+)/|Mean reward:\s+(?P<reward>\S+)|success rate (?P<success>[\d.]+)%"
    lines = [
        "Learning iteration",
        "   Iteration 5/100",
        " Mean reward:   -1.25e2",
        "success rate 50.0%",
        "Mean reward: x",
    ]
    points = StdoutReader(pattern=pattern).parse(lines)
    assert [(point.step, dict(point.values)) for point in points] == [(5, {"reward": -125.0}), (5, {"success": 50.0})]


def test_a_progress_bar_is_read_line_by_line() -> None:
    points = StdoutReader().parse(["epoch step=1 loss=3.0\rstep=2 loss=2.0\rstep=3 loss=1.0"])
    assert [(point.step, point.values["loss"]) for point in points] == [(1, 3.0), (2, 2.0), (3, 1.0)]


def test_tables_of_stable_baselines_are_understood() -> None:
    lines = ["| time/              |      |", "|    total_timesteps | 2048 |", "| rollout/ep_rew_mean | 21.5 |"]
    points = StdoutReader(step="total_timesteps").parse(lines)
    assert [(point.step, dict(point.values)) for point in points] == [(2048, {"rollout/ep_rew_mean": 21.5})]


@pytest.mark.parametrize("printed", [
    '{"step": 5, "success_rate": 0.35, "name": "dock", "ok": true}',
    "{'step': 5, 'success_rate': np.float64(0.35), 'name': 'dock'}",
])  # fmt: skip
def test_printed_json_and_dictionaries_are_understood(printed: str) -> None:
    assert [(one.step, dict(one.values)) for one in StdoutReader().parse([printed])] == [(5, {"success_rate": 0.35})]


def test_json_that_goes_over_several_lines_is_understood() -> None:
    points = StdoutReader().parse(["{", '  "step": 5,', '  "success_rate": 3.5e-1', "}"])
    assert [(one.step, dict(one.values)) for one in points] == [(5, {"success_rate": 0.35})]


def test_versions_times_and_words_are_no_figures() -> None:
    reader = StdoutReader()
    assert reader.parse(["step=1", "version: 1.2.3 at 12:30:05, loss=none, name=inform"])[0:] == []
    assert reader.parse(["loss=-inf"])[0].values["loss"] == -math.inf


def test_figures_before_any_step_are_counted() -> None:
    reader = StdoutReader()
    assert reader.parse(["loss=1", "loss=2"]) == []
    assert (reader.skipped, list(reader.names)) == (2, ["loss"])


def test_a_pattern_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        StdoutReader(pattern="(?P<step>")
