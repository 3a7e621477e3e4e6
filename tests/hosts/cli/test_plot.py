from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from rlx import files
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_draws_a_picture_into_the_runs_folder_and_a_line_on_the_terminal(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, 2.0, 3.0], 1: [3.0, 4.0, 5.0]})

    answer = cli("plot", run.name)

    path = run.path / "plots" / "rollout_return_mean.png"
    assert answer.code == 0
    with Image.open(path) as picture:
        assert picture.size == (1200, 750)
    assert f"picture: {path}" in answer.out
    assert "▁" in answer.out
    assert "mean 4 at 300, n = 2" in answer.out


def test_several_runs_go_into_one_picture_of_the_project(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    names = [make_run("a").name, make_run("b").name, make_run("b").name]

    data = cli("plot", *names, names[0], "--json").data

    assert Path(data["path"]) == tmp_path / "plots" / "rollout_return_mean_a_001_b_001_b_002.png"
    assert [one["run"] for one in data["runs"]] == names
    many = [make_run("c").name for _ in range(9)]
    assert "c_001_and_8_more_" in cli("plot", *many, "--json").data["path"]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_ending_chooses_the_kind_of_file(cli: Cli, make_run: MakeRun, tmp_path: Path, ending: str) -> None:
    out = tmp_path / "a folder" / f"curve.{ending}"

    assert cli("plot", make_run().name, "--out", str(out)).code == 0
    content = out.read_bytes()
    if ending == "svg":
        texts = {text.text for text in ElementTree.fromstring(content).iter() if text.tag.endswith("}text")}
        assert {"steps", "rollout/return_mean", "cartpole_001 (n = 1 seed)"} <= texts
    else:
        assert content[:5] in (b"\x89PNG\r", b"%PDF-")


def test_another_ending_is_refused_before_anything_is_read(cli: Cli) -> None:
    answer = cli("plot", "nosuch", "--out", "curve.bmp")

    assert answer.code == 2
    assert "hint: use a name that ends in .png, .svg, .pdf" in answer.err


def test_an_unknown_metric_is_refused_with_the_near_one_and_the_list(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()
    for wrong in ("rollout/retrun_mean", "return_mean"):
        answer = cli("plot", run.name, "--metric", wrong)
        assert answer.code == 3
        assert "hint: did you mean `rollout/return_mean`? known: rollout/return_mean, train/loss" in answer.err


def test_a_run_without_metrics_is_refused(cli: Cli, make_run: MakeRun) -> None:
    answer = cli("plot", make_run(state="prepared").name)

    assert answer.code == 3
    assert "has logged no metrics yet" in answer.err


def test_evaluations_during_training_are_a_metric_too(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()
    for event in (
        {"event": "evaluated", "step": 100, "mean": 5.0},
        {"event": "evaluated", "step": 200, "mean": 99.0},
        {"event": "resumed", "step": 100},
        {"event": "evaluated", "step": 200, "mean": 7.0},
    ):
        files.append_line(run.path / "seed_0" / "events.jsonl", files.encode({"time": 1100.0, **event}))

    (one,) = cli("plot", run.name, "--metric", "eval/return_mean", "--json").data["runs"]

    assert one["curve"] == [5.0, 7.0]


def test_a_seed_that_ends_early_ends_the_mean_and_is_named(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0] * 10, 3: [3.0] * 4})

    answer = cli("plot", run.name)

    assert "mean 2 at 400, n = 2" in answer.out
    assert "the mean of all seeds ends with seed 3" in answer.out


def test_seeds_that_share_no_stretch_have_no_mean_and_that_is_said(cli: Cli, make_run: MakeRun) -> None:
    nan = float("nan")
    run = make_run(seeds={0: [1.0, 2.0, nan, nan], 1: [nan, nan, 3.0, 4.0]})

    answer = cli("plot", run.name)

    assert answer.code == 0
    assert "no stretch has values of all seeds" in answer.out


def test_non_finite_values_are_gaps_and_counted(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, float("nan"), float("inf"), 4.0]})

    assert "2 values NaN or infinite: not drawn" in cli("plot", run.name).out


def test_a_run_of_nothing_but_nan_still_draws(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [float("nan")] * 3})

    assert cli("plot", run.name).code == 0


def test_the_seeds_can_be_left_out(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(seeds={0: [1.0, 9.0], 1: [9.0, 1.0]})
    for option, out in (("--seeds", "with.png"), ("--no-seeds", "without.png")):
        assert cli("plot", run.name, option, "--out", out).code == 0

    assert (tmp_path / "with.png").read_bytes() != (tmp_path / "without.png").read_bytes()


@pytest.mark.parametrize("axis", ["steps", "wall", "episodes"])
def test_the_horizontal_axis_can_be_chosen(cli: Cli, make_run: MakeRun, axis: str) -> None:
    run = make_run(seeds={})
    folder = run.path / "seed_0"
    folder.mkdir()
    for time in (1000.0, 5000.0):
        files.append_line(folder / "attempts.jsonl", files.encode({"time": time}))
    for row in (
        {"step": 10, "time": 1030.0, "rollout/episodes": 2, "loss": 1.0},
        {"step": 20, "time": 1060.0, "rollout/episodes": 5, "loss": 2.0},
        {"step": 30, "time": 5060.0, "rollout/episodes": 9, "loss": 3.0},
    ):
        files.append_line(folder / "metrics.jsonl", files.encode(row))

    data = cli("plot", run.name, "--metric", "loss", "--x", axis, "--json").data

    assert data["runs"][0]["last_x"] == {"steps": 30.0, "wall": 2.0, "episodes": 9.0}[axis]


def test_no_values_on_the_axis_is_an_error_with_the_one_that_has_them(cli: Cli, make_run: MakeRun) -> None:
    answer = cli("plot", make_run().name, "--x", "episodes")

    assert answer.code == 3
    assert "--x steps" in answer.err


def test_nine_runs_are_told_apart_by_colour_or_line(cli: Cli, make_run: MakeRun) -> None:
    from rlx.hosts.plots.style import COLOURS, STYLES

    names = [make_run(f"r{number}").name for number in range(9)]

    assert cli("plot", *names, "--out", "nine.svg").code == 0
    text = Path("nine.svg").read_text()
    assert all(colour.lower() in text for colour in COLOURS)
    assert len(COLOURS) * len(STYLES) >= 32


def test_runs_share_one_scale_on_the_terminal(cli: Cli, make_run: MakeRun) -> None:
    high = make_run("high", seeds={0: [100.0] * 40})
    low = make_run("low", seeds={0: [0.0] * 20})

    lines = cli("plot", high.name, low.name).out.splitlines()

    assert lines[0] == "rollout/return_mean over steps; all lines from 0 to 100"
    assert lines[1].split()[1] == "█" * 40
    assert lines[2].split()[1] == "▁" * 20


def test_a_run_without_the_metric_is_named_and_not_drawn(cli: Cli, make_run: MakeRun) -> None:
    answer = cli("plot", make_run("full").name, make_run("empty", state="prepared").name)

    assert answer.code == 0
    assert "empty_001: no values of rollout/return_mean over steps, not drawn" in answer.out


def test_smoothing_is_said(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [0.0, 10.0, 20.0]})

    answer = cli("plot", run.name, "--smooth", "2", "--out", "s.svg")

    assert "mean of the last 2 points" in answer.out
    assert "mean 15 at 300" in answer.out
    assert "mean of the last 2 points" in Path("s.svg").read_text()


def test_what_the_band_is_stands_at_the_axis(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, 2.0], 1: [2.0, 4.0]})
    for option, is_there in (("--band", True), ("--no-band", False)):
        assert cli("plot", run.name, option, "--out", "b.svg").code == 0
        assert ("band: 95 % bootstrap interval" in Path("b.svg").read_text()) == is_there


def test_runs_of_one_config_are_pooled_on_request(cli: Cli, make_run: MakeRun) -> None:
    names = [make_run("a", seeds={0: [1.0], 1: [3.0]}).name, make_run("a", seeds={1: [9.0], 2: [5.0]}).name]
    other = make_run("b", group="g2").name

    answer = cli("plot", *names, other, "--by", "config")

    assert "a_001 + a_002  " in answer.out
    assert "mean 3 at 100, n = 3" in answer.out
    assert "1 seed of the same number in several runs: drawn once" in answer.out


def test_intervals_and_profiles_of_a_metrics_last_values(cli: Cli, make_run: MakeRun) -> None:
    names = [make_run("a", seeds={0: [1.0], 1: [3.0]}).name, make_run("b", seeds={0: [7.0]}).name]
    for kind in ("--intervals", "--profile"):
        answer = cli("plot", *names, kind, "--metric", "rollout/return_mean")
        assert answer.code == 0
        assert "2 [1, 3]" in answer.out
        assert "use rlx compare to decide" in answer.out
        assert Path(answer.out.splitlines()[-1].removeprefix("picture: ")).is_file()
    data = cli("plot", *names, "--intervals", "--metric", "rollout/return_mean", "--json").data
    assert data["runs"][0]["mean"] == {"value": 2.0, "low": 1.0, "high": 3.0}
    assert data["runs"][1]["mean"] == {"value": 7.0, "low": None, "high": None}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--intervals"], 3, "hint: it has no checkpoint to evaluate: rlx info cartpole_001"),
        (["--profile", "--intervals"], 2, "not allowed with"),
        (["--profile", "--smooth", "3"], 2, "are for curves"),
        (["--profile", "--metric", "train/loss", "--over", "episodes"], 2, "leave out --metric"),
        (["--smooth", "0"], 2, "must be at least 1"),
        (["--metric", "rollout/retrun"], 3, "did you mean `rollout/return_mean`?"),
        (["--out", "curve.bmp"], 2, "use a name that ends in .png, .svg, .pdf"),
        (["--out", "runs/cartpole_001/metadata.json/c.png"], 2, "hint: name another file with --out"),
    ],
)
def test_bad_input_is_one_line_with_a_hint(cli: Cli, make_run: MakeRun, words: list[str], code: int, said: str) -> None:
    answer = cli("plot", make_run().name, *words)

    assert answer.code == code
    assert said in answer.err
    assert "Traceback" not in answer.err
