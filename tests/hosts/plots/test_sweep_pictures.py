"""The pictures of a sweep are written for any number of trials, also with failed ones."""

from pathlib import Path

from rlx.hosts.plots import sweep_pictures


def test_pictures_are_drawn_with_failed_and_conditional_trials(tmp_path: Path) -> None:
    trials = [
        {"score": 2.0, "places": [0.1, 0.5]},
        {"score": 1.0, "places": [0.9, None]},
        {"score": None, "places": [0.5, 0.2]},
    ]
    marks = [[(0.0, "1e-05"), (1.0, "0.1")], [(0.5, "tanh")]]
    sweep_pictures.parallel(trials, ["rate", "kind"], marks, out=tmp_path / "parallel.png")
    sweep_pictures.bars({"rate": 0.4, "kind": 0.0}, out=tmp_path / "importance.png")
    sweep_pictures.bars({}, out=tmp_path / "empty.png")

    assert all(path.stat().st_size > 2000 for path in tmp_path.glob("*.png"))
    assert len(list(tmp_path.glob("*.png"))) == 3
