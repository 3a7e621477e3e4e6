from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rlx.errors import EvidenceInvalid, NotFound
from rlx.hosts.plots.scores import evaluated, last_values, refuse_empty
from rlx.runs import store
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def with_evaluations(run: Run, returns: Mapping[int, list[float]], *, fingerprint: str = "f1") -> Run:
    for seed, each in returns.items():
        document: dict[str, Any] = {
            "purpose": "report", "mean": sum(each) / len(each), "step": 200, "time": 1.0, "n": len(each), "seed": seed,
            "checkpoint": "latest", "protocol": {"episodes": len(each)}, "episodes": [{"return": one} for one in each],
        }  # fmt: skip
        store.save_evaluation(run.path, fingerprint, f"seed_{seed}_latest", document)
    return Run(run.path)


def test_scores_are_the_report_evaluations_under_the_shared_protocol(make_run: MakeRun) -> None:
    one = with_evaluations(make_run("a", seeds={0: [1.0], 1: [1.0], 2: [1.0]}), {0: [1.0, 3.0], 1: [float("nan")]})
    two = with_evaluations(make_run("b"), {0: [5.0]})

    first, second = evaluated([one, two])

    assert (first.seeds, first.episodes, first.missing) == ({0: 2.0}, {0: [1.0, 3.0]}, 2)
    assert (second.name, second.seeds, second.missing) == ("b_001", {0: 5.0}, 0)


def test_different_protocols_are_refused_with_the_commands_that_help(make_run: MakeRun) -> None:
    one = with_evaluations(make_run("a"), {0: [1.0]})
    two = with_evaluations(make_run("b"), {0: [1.0]}, fingerprint="f2")

    with pytest.raises(EvidenceInvalid, match="under different protocols") as refused:
        evaluated([one, two])
    assert refused.value.hint == "rlx eval a_001 && rlx eval b_001 --like a_001"


def test_a_metrics_last_finite_values_can_be_the_scores(make_run: MakeRun) -> None:
    (found,) = last_values([make_run(seeds={0: [1.0, 2.0, float("nan")], 4: [float("nan")]})], "rollout/return_mean")

    assert (found.seeds, found.missing) == ({0: 2.0}, 1)


def test_a_run_without_any_score_is_refused(make_run: MakeRun) -> None:
    with pytest.raises(NotFound, match="no seed of cartpole_001 has a finite score"):
        refuse_empty(last_values([make_run(seeds={0: [float("nan")]})], "rollout/return_mean"))
