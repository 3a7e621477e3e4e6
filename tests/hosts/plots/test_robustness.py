"""The pictures of probes and stress tests, from literal documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.plots import parameter_sweep, stress


def point(value: object, mean: float | None, *, nominal: bool = False, refused: str | None = None) -> dict[str, Any]:
    if mean is None:
        return {"value": value, "nominal": nominal, "refused": refused, "random": None, "feasible": False}
    return {"value": value, "nominal": nominal, "mean": mean, "interval": [mean - 1, mean + 1], "random": 20.0,
            "feasible": mean > 80, "refused": None}  # fmt: skip


def probe(*points: dict[str, Any], low: object = None, high: object = None) -> dict[str, Any]:
    scores = [{"at": None if one["nominal"] else one["value"], "seeds": {"0": 90.0, "1": 99.0}} for one in points]
    return {"parameter": "wind", "metric": "return", "points": list(points), "scores": scores,
            "feasible": {"low": low, "high": high}}  # fmt: skip


@pytest.mark.parametrize("kind", [".png", ".svg", ".pdf"])
def test_a_probe_is_drawn_with_its_range_and_what_was_refused(tmp_path: Path, kind: str) -> None:
    numbers = probe(
        point(-1, None, refused="no air"),
        point(5, 90.0),
        point(10, 100.0, nominal=True),
        point(15, 20.0),
        low=5,
        high=10,
    )
    words = probe(point(None, 100.0, nominal=True), point("euler", 90.0), point(True, 10.0))
    parameter_sweep.draw([numbers, words], out=tmp_path / f"probe{kind}")
    assert (tmp_path / f"probe{kind}").stat().st_size > 2000


def test_the_same_probe_gives_the_same_bytes_and_names_its_parameter(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        parameter_sweep.draw(
            [probe(point(10, 100.0, nominal=True), point(15, 20.0), low=10, high=10)], out=tmp_path / name
        )
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert ">wind<" in text
    assert "trained policies" in text


def condition(name: str, drop: float | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "strength": 0.5, "unit": "sd", "drop": drop, "drop_interval": None if drop is None else
            [drop - 0.1, drop + 0.1], "brittle": (drop or 0) > 0.2, "refused": None, **more}  # fmt: skip


def test_a_stress_test_is_drawn_worst_first(tmp_path: Path) -> None:
    document = {"limit": 0.2, "conditions": [condition("noise", 0.8), condition("wind", -0.05), condition("x", None)]}
    stress.draw(document, out=tmp_path / "s.svg")
    text = (tmp_path / "s.svg").read_text()
    assert text.index("noise 0.5 sd") < text.index("wind 0.5 sd")
    assert "x 0.5 sd" not in text


def test_where_nothing_could_be_measured_the_picture_is_empty_and_still_made(tmp_path: Path) -> None:
    stress.draw({"limit": 0.2, "conditions": [condition("x", None)]}, out=tmp_path / "s.png")
    assert (tmp_path / "s.png").is_file()
