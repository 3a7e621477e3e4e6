"""The evaluations a run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.compare.stored_scores import WinnersCurse, newest, required_scores, shared_fingerprints, winners_curse
from rlx.runs import store
from rlx.runs.run import Run
from tests.evaluate.linear import GOOD, make_run


def keep(run: Run, name: str, **fields: Any) -> Run:
    document = {"purpose": "report", "step": 9, "time": 1.0, "protocol": {"episodes": 20}, **fields}
    store.save_evaluation(run.path, fields.pop("fingerprint", "aaa"), name, document)
    return Run(run.path)


def test_only_report_evaluations_of_final_policies_count(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD}, names=())
    keep(run, "seed_0_best", seed=0, mean=500)
    keep(run, "seed_0_step_9", seed=0, mean=400, purpose="selection")
    run = keep(run, "seed_0_latest", seed=0, mean="NaN", n=7, random={"mean": 20.5}, length_mean=30, success_rate=0.5)
    found = required_scores(run)
    assert list(found) == ["aaa"]
    report = found["aaa"][0]
    assert report.score != report.score
    assert (report.episodes, report.random, report.figures) == (7, 20.5, {"length": 30.0, "success_rate": 0.5})


def test_reward_terms_are_figures_too(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD}, names=())
    episodes = [{"return": 1.0, "terms": {"alive": 3.0, "energy": -1.0}}, {"return": 2.0, "terms": {"alive": 5.0}}]
    run = keep(run, "seed_0_latest", seed=0, mean=1.5, length_mean=30, episodes=episodes)
    assert required_scores(run)["aaa"][0].figures == {"length": 30.0, "alive": 4.0, "energy": -0.5}


def test_the_shared_protocol_with_most_seeds_then_episodes_then_the_newest_counts(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD, 1: GOOD}, names=())
    for fingerprint, seed, episodes, time in (("old", 0, 20, 1.0), ("new", 0, 20, 2.0), ("long", 0, 50, 1.0)):
        run = keep(run, f"seed_{seed}_latest", fingerprint=fingerprint, seed=seed, mean=1, time=time,
                   protocol={"episodes": episodes})  # fmt: skip
    found = required_scores(run)
    assert shared_fingerprints([found, found])[0] == "long"
    del found["long"]
    assert shared_fingerprints([found, found])[0] == "new"
    assert shared_fingerprints([found, {"else": {}}]) == []
    assert newest(found).time == 2.0
    run = keep(run, "seed_1_latest", fingerprint="old", seed=1, mean=1)
    assert shared_fingerprints([required_scores(run)])[0] == "old"
    assert shared_fingerprints([required_scores(run)], ["new"])[0] == "new"
    assert shared_fingerprints([required_scores(run)], ["new", "old"])[0] == "old"


def test_the_claim_of_best_is_the_evaluation_that_selected_it(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD, 1: GOOD}, names=())
    for step, mean in ((1, 30), (2, 90), (3, 50)):
        keep(run, f"seed_0_step_{step}", fingerprint="sel", seed=0, mean=mean, purpose="selection", step=step)
    keep(run, "seed_0_latest", seed=0, mean=60)
    assert winners_curse(run, "aaa") is None
    keep(run, "seed_1_best", seed=1, mean=60, step=2)
    run = keep(run, "seed_0_best", seed=0, mean=70, step=2)
    assert winners_curse(run, "aaa") == WinnersCurse(90.0, 70.0, 1, "report")
    assert winners_curse(run, "bbb") is None


def test_best_on_fresh_episodes_of_the_same_protocol_counts_before_its_report(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD, 1: GOOD}, names=())
    for seed in (0, 1):
        keep(run, f"seed_{seed}_step_2", fingerprint="sel", seed=seed, mean=90 + seed, purpose="selection", step=2)
        keep(run, f"seed_{seed}_best", seed=seed, mean=80, step=2)
    other = {"episodes": 100, "env": {"id": "Other-v0"}}
    keep(run, "seed_1_best", fingerprint="else", seed=1, mean=1, purpose="fresh", step=2, protocol=other)
    assert winners_curse(run, "aaa") == WinnersCurse(90.5, 80.0, 2, "report")
    keep(run, "seed_0_best", fingerprint="old", seed=0, mean=40, purpose="fresh", step=2, time=0.5)
    keep(run, "seed_0_best", fingerprint="new", seed=0, mean=65, purpose="fresh", step=2)
    assert winners_curse(run, "aaa") == WinnersCurse(90.0, 65.0, 1, "fresh")
