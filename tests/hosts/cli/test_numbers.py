"""Numbers that disagreed: the same run has the same figures in every command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.hosts.cli import resume
from rlx.hosts.cli.format import spread
from rlx.runs import store
from rlx.runs.run import Run

RAMP = [float(value) for value in range(60)]


def logged(run: Run, **metrics: float) -> None:
    """Log more metrics in every seed of a run, in every row."""
    for seed in run.seeds:
        rows = [{**row, **{name.replace("__", "/"): value for name, value in metrics.items()}} for row in seed.rows]
        seed.metrics_path.write_bytes(b"".join(files.encode(row) + b"\n" for row in rows))


def evaluated(run: Run, scores: dict[int, float], *, metric: str = "return") -> None:
    for seed, score in scores.items():
        document = {"purpose": "report", "seed": seed, "mean": score, "score": score, "metric": metric, "episodes": []}
        store.save_evaluation(run.path, "f", f"seed_{seed}_latest", {**document, "protocol": {"metric": metric}})


def test_a_metric_is_healthy_only_within_its_own_limits(cli: Any, make_run: Any) -> None:
    logged(make_run("one", seeds={0: RAMP, 1: RAMP}), train__approx_kl=0.01, reward__term__goal=-0.04)
    rows = {row["metric"]: row for row in cli("explain-metrics", "one_001", "--json").data["metrics"]}
    kl = rows["train/approx_kl"]
    assert kl["says"] == "healthy"
    assert [list(ends) for ends in kl["measured"]] == [[0.01, 0.01]] * len(kl["healthy"])
    term = rows["reward/term/goal"]
    assert "its size" in term["healthy"][0], "the limit is on the spread as a share of the size"
    assert term["says"] != "healthy", "only the rule can compute that figure"
    text = cli("explain-metrics", "one_001", "--metric", "approx_kl").out
    assert "last 0.01 (median over 2 seeds): healthy" in text
    assert "at most 0.03 (here 0.01)" in text


def test_success_rates_are_not_ranked_among_returns(cli: Any, make_run: Any) -> None:
    evaluated(make_run("rate", group="a"), {0: 0.9}, metric="success_rate")
    evaluated(make_run("low", group="b"), {0: -200.0})
    evaluated(make_run("high", group="c"), {0: 50.0})
    names = [row["name"] for row in cli("ls", "--sort", "return", "--json").data["runs"]]
    assert names == ["high_001", "low_001", "rate_001"]


def test_returns_in_environments_with_other_arguments_are_not_ranked(cli: Any, make_run: Any) -> None:
    for name, bonus, score in (("small", 1, 2.0), ("large", 20, 9.0), ("small", 1, 3.0)):
        run = make_run(name)
        text = (run.path / "config_snapshot.yaml").read_text()
        text = text.replace("{id: CartPole-v1}", f"{{id: CartPole-v1, kwargs: {{bonus: {bonus}}}}}")
        (run.path / "config_snapshot.yaml").write_text(text)
        evaluated(run, {0: score})
    best = cli("summarize", "--json").data["best"]
    assert {title: row["run"] for title, row in best.items()} == {
        "CartPole-v1 (bonus 1)": "small_002", "CartPole-v1 (bonus 20)": "large_001",
    }  # fmt: skip


def test_a_group_has_the_mean_steps_of_its_seeds(cli: Any, make_run: Any) -> None:
    make_run("one", seeds={0: [1.0] * 10})
    make_run("two", seeds={1: [1.0] * 20, 2: [1.0] * 30})
    (group,) = cli("ls", "--group", "--json").data["groups"]
    assert (group["seeds"], group["steps"]) == (3, 2000)


def test_a_seed_that_is_being_resumed_is_not_called_lost(make_run: Any) -> None:
    run = make_run("one", state="lost")
    data = resume.attach.outcome(run)
    assert [row["state"] for row in data["seeds"]] == ["lost"]
    resumed = resume._resuming({**data, "state": "running"})
    assert [(row["state"], row["reason"]) for row in resumed["seeds"]] == [("resuming", "")]
    assert "lost" not in resume.render({**resumed, "resumed": {}})


def test_a_deleted_seed_folder_is_named_and_counts_nowhere(cli: Any, make_run: Any) -> None:
    run = make_run("one", seeds={0: RAMP, 1: RAMP, 2: RAMP})
    evaluated(run, {0: 1.0, 1: 2.0, 2: 3.0})
    shutil.rmtree(run.path / "seed_1")
    (row,) = cli("ls", "--json").data["runs"]
    assert (row["seeds"], row["return"]["n"]) == (2, 2)
    info = cli("info", "one_001", "--json").data
    assert [evaluation["return"]["n"] for evaluation in info["evaluations"]] == [2]
    for command in ("info", "analyze", "diagnose", "summarize"):
        assert "the folder of seed 1 is gone" in cli(command, "one_001").out, command


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (-2.7431, 0.06576, "−2.743 ± 0.066"),
        (1234.5, 56.2, "1,234 ± 56"),
        (0.8, 0.0, "0.8 ± 0"),
        (500.0, None, "500"),
        (3.0, 1e-9, "3 ± 1e-09"),
    ],
)
def test_a_mean_has_as_many_digits_as_its_spread_supports(mean: float, sd: float | None, text: str) -> None:
    assert spread({"mean": mean, "sd": sd}) == text


def test_a_latex_table_has_the_digits_that_the_spread_supports() -> None:
    from rlx.hosts.cli.compare import render

    sides = [{"run": name, "n": 10, "mean": mean, "sd": sd, "metric": "return"}
             for name, mean, sd in (("a", 123.45678, 3.21), ("b", 130.98765, 2.71828))]  # fmt: skip
    verdict = {"run": "b", "verdict": "better", "leaning": 7.53087, "interval": [1.23456, None], "line": "better"}
    text = render({"baseline": "a", "runs": sides, "candidates": [verdict], "shape": "latex"})
    assert "a & 10 & $123.5 \\pm 3.2$" in text
    assert "b & 10 & $131.0 \\pm 2.7$ & $+7.5\\ [+1.2, +\\infty]$ & better" in text


def test_patterns_work_wherever_a_run_is_named(cli: Any, make_run: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_run(name, seeds={0: RAMP})
    make_run("other", seeds={0: RAMP})
    assert cli("tag", "[ot][nw]*", "keep").out == "one_001: keep\ntwo_001: keep\n"
    assert cli("untag", "t*", "keep").out == "two_001: no tags\n"
    assert cli("note", "o*", "a", "note").out == "one_001: a note\nother_001: a note\n"
    for command in ("analyze", "diagnose", "suggest", "wait"):
        runs = cli(command, "o*", "--json").data["runs"]
        assert [row["run"] for row in runs] == ["one_001", "other_001"], command
        assert cli(command, "o*").out.count("run: o") == 2, command
        assert "runs" not in cli(command, "two*", "--json").data, command
    assert cli("summarize", "o*", "--json").data["total"] == 2
    assert cli("stop", "o*").code == 2
    assert cli("analyze", "walker*").code == 3
