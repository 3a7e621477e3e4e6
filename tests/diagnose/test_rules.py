"""Every rule finds its failure, in any unit, and is silent on a healthy run and without its metrics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlx.diagnose.analyze import analyze
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.rule import KINDS
from rlx.diagnose.rules import NAMES, all_rules, load
from rlx.diagnose.run_case import RETURN, EvaluationScore, RunCase, SeedCase
from rlx.runs.metrics import Series
from tests.diagnose.cases import FIRES, FLAT, HEALTHY, LEARNS, SOUND, STEPS, WORSE, case, ill, noise, wobble

RETURNS = (RETURN,)
REWARD_UNITS = {
    RETURN: 1, "rollout/return_std": 1, "reward/mean_abs": 1, "reward/max_abs": 1, "reward/std": 1, "train/q_mean": 1,
    "train/target_abs": 1, "train/value_abs": 1, "train/value_loss": 2, "train/critic_loss": 2, "train/ent_coef": 1,
}  # fmt: skip


def in_unit(some: RunCase, factor: float, shift: float) -> RunCase:
    """Return the run as it were had rewards been multiplied, and returns shifted."""

    def score(one: EvaluationScore | None) -> EvaluationScore | None:
        return one and replace(one, mean=factor * one.mean + shift, sd=factor * one.sd)

    def series(name: str, one: Series) -> Series:
        power = REWARD_UNITS.get(name, 1 if name.startswith("reward/term") else 0)
        return Series(one.steps, factor**power * one.values + (shift if name == RETURN else 0.0))

    def seed(one: SeedCase) -> SeedCase:
        return replace(
            one,
            series={name: series(name, values) for name, values in one.series.items()},
            evaluations=Series(one.evaluations.steps, factor * one.evaluations.values + shift),
            **{name: score(getattr(one, name)) for name in ("untrained", "report", "best", "claimed")},
        )

    reachable = None if some.reachable is None else factor * some.reachable + shift
    known = some.best_other_run and replace(some.best_other_run, mean=factor * some.best_other_run.mean + shift)
    seeds = tuple(map(seed, some.seeds))
    return replace(some, seeds=seeds, random=score(some.random), reachable=reachable, best_other_run=known)


def test_every_rule_has_a_run_that_it_must_find() -> None:
    assert set(FIRES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_finds_its_failure_with_evidence_and_something_to_try(name: str) -> None:
    (finding,) = load(name).find(FIRES[name])
    assert finding.rule == name
    assert finding.evidence
    assert finding.tries
    assert finding.document()["claim"]


@pytest.mark.parametrize("unit", [(1000.0, 0.0), (1.0, -500.0), (1000.0, -500.0), (0.01, 3.0)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_rewards_changes_no_finding(name: str, unit: tuple[float, float]) -> None:
    plain, changed = diagnose(FIRES[name]), diagnose(in_unit(FIRES[name], *unit))
    assert [one.rule for one in changed.findings] == [one.rule for one in plain.findings]


@pytest.mark.parametrize("name", SOUND)
def test_a_healthy_run_has_no_finding(name: str) -> None:
    assert [finding.claim for finding in diagnose(SOUND[name]).findings] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_without_its_metrics_is_silent_and_says_why(name: str) -> None:
    rule = load(name)
    bare = replace(FIRES[name], seeds=(SeedCase(0, step=60_000),))
    if rule.needs:
        assert "no " in (rule.blindness(bare) or "")
        assert not rule.find(bare)
    assert not load("crashed").find(bare)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_looks_at_an_empty_run_without_an_error(name: str) -> None:
    assert not load(name).find(RunCase("empty"))


def test_rules_are_complete() -> None:
    for rule in all_rules():
        assert rule.kind in KINDS
        assert rule.source
        assert rule.cannot_see
        assert rule.summary
        assert rule.advice


def test_a_threshold_is_written_once() -> None:
    seen: dict[tuple[object, ...], str] = {}
    for rule in all_rules():
        for limit in rule.limits:
            key = (limit.metric, limit.statistic, limit.part, limit.above is None, limit.per)
            assert seen.setdefault(key, rule.id) == rule.id


@pytest.mark.parametrize(
    ("cause", "symptom"),
    [
        ("update_too_large", "collapse_after_peak"),
        ("policy_frozen", "no_learning"),
        ("entropy_collapse", "no_learning"),
        ("observation_scale", "no_learning"),
        ("exploration_never_annealed", "no_learning"),
        ("replay_too_small", "no_learning"),
    ],
)
def test_a_cause_comes_before_its_symptom(cause: str, symptom: str) -> None:
    found = [finding.rule for finding in diagnose(FIRES[cause]).findings]
    assert found[0] == cause
    assert symptom in found


def test_a_moderate_sign_counts_only_where_returns_are_bad() -> None:
    sign = {"train/approx_kl": wobble(0.05)}
    assert not load("update_too_large").find(case({**HEALTHY, **sign}))
    assert load("update_too_large").find(case({**ill(), **sign}))


def test_one_seed_of_five_is_no_finding_about_the_run() -> None:
    well, bad = case(HEALTHY, seeds=5), case(ill())
    mixed = replace(well, seeds=(*well.seeds[:4], replace(bad.seeds[0], seed=4)))
    assert not load("no_learning").find(mixed)


def test_a_curve_at_its_ceiling_from_the_first_row_is_no_failure() -> None:
    assert not load("no_learning").find(case({RETURN: FLAT + 400}))


def test_without_a_yardstick_flat_is_not_learning() -> None:
    lone = SeedCase(0, step=60_000, series={RETURN: Series(STEPS, FLAT)})
    assert load("no_learning").find(RunCase("script_001", is_script=True, seeds=(lone,)))


@pytest.mark.parametrize("state", ["running", "interrupted", "stopped", "lost"])
def test_a_run_that_has_just_begun_is_not_called_flat_nor_one_that_ended_there(state: str) -> None:
    begun = replace(case(ill(), state=state, step=2000), planned_steps=1_000_000)
    assert [finding.rule for finding in diagnose(begun).findings] == []


def test_changes_are_of_keys_the_config_has() -> None:
    (finding,) = load("update_too_large").find(FIRES["update_too_large"])
    assert dict(finding.changes[0]) == {"algo.learning_rate": pytest.approx(9e-5)}


def test_a_schedule_is_scaled_at_both_ends() -> None:
    some = FIRES["update_too_large"]
    config = {**some.config, "algo": {**some.config["algo"], "learning_rate": {"linear": [1e-3, 0.0]}}}
    (finding,) = load("update_too_large").find(replace(some, config=config))
    assert finding.changes[0]["algo.learning_rate"] == {"linear": [pytest.approx(3e-4), 0.0]}


def test_a_time_limit_that_every_episode_meets_is_no_failure() -> None:
    pendulum = {**HEALTHY, "rollout/truncated_share": np.ones(60), "rollout/length_mean": np.full(60, 200.0)}
    assert diagnose(case(pendulum)).findings == ()


def test_a_clip_to_nothing_is_not_a_matter_of_rewards() -> None:
    config = {**FIRES["reward_scale"].config, "algo": {**FIRES["reward_scale"].config["algo"], "max_grad_norm": 1e-9}}
    assert not load("reward_scale").find(replace(FIRES["reward_scale"], config=config))


def test_a_target_that_moves_by_a_millionth_is_stale() -> None:
    some = FIRES["few_updates"]
    config = {**some.config, "algo": {**some.config["algo"], "tau": 1e-6}}
    assert load("stale_target").find(replace(some, config=config))
    assert not load("stale_target").find(some)


def test_a_rollout_that_slows_down_once_learning_begins_is_sound() -> None:
    rates = np.where(np.arange(60) < 5, 20_000.0, 300.0)
    assert not load("throughput_collapse").find(case({**HEALTHY, "time/steps_per_second": rates}))


def test_a_return_in_another_unit_than_evaluations_is_not_held_against_the_random_policy() -> None:
    flat_at_its_best = case({RETURN: noise(4.0, 0.1)}, report=EvaluationScore(400.0, 10.0, 20, 400.0))
    assert load("no_learning").find(flat_at_its_best)
    assert not load("no_learning").find(replace(flat_at_its_best, has_same_reward=False))
    rising = case({RETURN: np.linspace(0.2, 4.0, 60)}, report=EvaluationScore(400.0, 10.0, 20, 400.0))
    assert diagnose(replace(rising, has_same_reward=False)).findings == ()


def test_a_reward_that_is_learned_with_the_wrong_sign_shows_where_evaluations_pay_with_the_right_one() -> None:
    turned = case({RETURN: np.linspace(-22, -9, 60) + noise(0, 0.3)}, report=EvaluationScore(9.3, 0.8, 20, 9.3))
    turned = replace(turned, has_same_reward=False)
    assert [finding.rule for finding in diagnose(turned).findings] == ["worse_than_random"]


def test_a_final_score_like_the_random_policys_is_no_learning_whatever_the_training_return_did() -> None:
    flat = Series(STEPS[::6], FLAT[::6])
    bribed = case({RETURN: LEARNS}, report=EvaluationScore(21.0, 6.0, 20, 21.0), evaluations=flat)
    bribed = replace(bribed, has_same_reward=False)
    assert [finding.rule for finding in diagnose(bribed).findings] == ["no_learning"]


def test_rising_returns_are_learning_although_the_greedy_policy_scores_like_the_random_one() -> None:
    rising = case({RETURN: LEARNS}, seeds=5)
    greedy = [replace(seed, report=EvaluationScore(22.0, 8.0, 20, 22.0)) for seed in rising.seeds[:2]]
    some = replace(rising, seeds=(*greedy, *rising.seeds[2:]))
    assert [finding.rule for finding in diagnose(some).findings] == ["seeds_disagree"]
    assert analyze(some).stuck == ()
    every = replace(some, seeds=(*greedy, replace(greedy[0], seed=2)))
    assert [finding.rule for finding in diagnose(every).findings] == ["greedy_gap"]


def test_rising_returns_that_no_evaluation_confirms_are_worth_watching() -> None:
    level = Series(STEPS[5::6], 100 + noise(0, 60, seed=6)[5::6])
    unsure = case({RETURN: LEARNS / 3 + 13}, report=EvaluationScore(58.6, 63.8, 20, 58.6), evaluations=level)
    (finding,) = diagnose(unsure).findings
    assert (finding.rule, finding.severity) == ("no_learning", "medium")
    assert finding.claim.startswith("no evaluation confirms that it learns")
    assert finding.commands[0].words == ("rlx", "eval", "own_001", "--episodes", "100")
    rising = Series(STEPS[5::6], LEARNS[5::6])
    assert diagnose(replace(unsure, seeds=(replace(unsure.seeds[0], evaluations=rising),))).findings == ()


@pytest.mark.parametrize("has_same_reward", [True, False])
def test_evaluations_that_rise_only_to_the_random_policys_score_are_no_learning(*, has_same_reward: bool) -> None:
    recovering = Series(STEPS[5::6], np.linspace(9, 19, len(STEPS[5::6])))
    stuck = case(ill(), report=EvaluationScore(19.0, 6.0, 20, 19.0), evaluations=recovering)
    found = diagnose(replace(stuck, has_same_reward=has_same_reward)).findings
    assert [finding.rule for finding in found] == ["no_learning"]


def test_returns_that_fall_while_evaluations_rise_are_not_getting_worse() -> None:
    explores = case({RETURN: WORSE}, evaluations=Series(STEPS[::6], LEARNS[::6]), report=None)
    assert not load("getting_worse").find(explores)
    assert load("getting_worse").find(case({RETURN: WORSE}, report=None))


def test_one_episode_or_none_that_varies_says_nothing_about_chance() -> None:
    assert case(HEALTHY, report=None).above_random(case(HEALTHY, report=None).seeds[0]) is None
    same = replace(
        case(HEALTHY, report=EvaluationScore(20.0, 0.0, 20, 20.0)), random=EvaluationScore(20.0, 0.0, 20, 20.0)
    )
    assert same.above_random(same.seeds[0]) == 0.0


def test_a_run_that_had_fewer_steps_than_the_better_one_or_half_its_gain_is_not_outdone() -> None:
    some = FIRES["outdone"]
    assert some.best_other_run is not None
    for known in (replace(some.best_other_run, steps=70_000), replace(some.best_other_run, mean=300.0)):
        assert not load("outdone").find(replace(some, best_other_run=known))


def test_actions_that_grow_ever_wider_are_exploration_that_never_ends() -> None:
    rule = load("exploration_never_annealed")
    assert rule.find(case({**HEALTHY, "train/std": np.geomspace(1, 18, 60)}))
    assert not rule.find(case({**HEALTHY, "train/std": np.linspace(1, 0.5, 60)}))
    assert not rule.find(case({**HEALTHY, "train/std": np.linspace(1, 2, 60)}))
