"""Rules on the plan of a spec: batch arithmetic, buffers, agents, data, randomisation, curricula and evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from rlx.design.signals import OFF_POLICY, ON_POLICY
from rlx.design.spec_rules import SpecCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, Sighting
from rlx.number_format import counted

FEWEST_DEMONSTRATIONS = 50
FEWEST_EPISODES = 20
FEWEST_SEEDS = 3
SHORTEST_PERIOD = 5
LONGEST_PERIOD = 20


def _sighting(what: str, value: float | str, claim: str, *, limit: float | None = None) -> Sighting:
    return Sighting((Evidence(what, value, limit=limit),), claim)


def find_batch(case: SpecCase) -> Iterator[Sighting]:
    """Find a rollout that minibatches do not divide, or a batch larger than its data."""
    rollout = case.spec.architecture.rollout
    learner = case.spec.architecture.learner
    name = case.spec.strategy.algorithm
    size = rollout.num_envs * rollout.steps
    if name in ON_POLICY and name != "a2c":
        if learner.batch_size > size or size % learner.batch_size:
            claim = (
                f"{rollout.num_envs} environments × {rollout.steps} steps = {size} samples do not divide into batches "
                f"of {learner.batch_size}"
            )
            yield _sighting("samples left over", size % learner.batch_size, claim, limit=0.0)
        if size > case.spec.strategy.total_timesteps / 10:
            claim = (
                f"a rollout of {size:,} steps leaves fewer than 10 updates in {case.spec.strategy.total_timesteps:,}"
            )
            yield _sighting("updates", case.spec.strategy.total_timesteps / size, claim, limit=10.0)
    elif name in OFF_POLICY and 0 < case.spec.architecture.buffer.size < learner.batch_size:
        claim = f"a buffer of {case.spec.architecture.buffer.size} cannot fill a batch of {learner.batch_size}"
        yield _sighting("buffer size", case.spec.architecture.buffer.size, claim, limit=float(learner.batch_size))


def find_buffer_kind(case: SpecCase) -> Iterator[Sighting]:
    """Find an on-policy learner with a replay buffer, or an off-policy one without."""
    name = case.spec.strategy.algorithm
    kind = case.spec.architecture.buffer.kind
    if name in ON_POLICY and kind == "replay":
        yield _sighting("buffer", kind, f"`{name}` learns from fresh data only, but the buffer keeps old data")
    if name in OFF_POLICY and kind == "rollout":
        yield _sighting("buffer", kind, f"`{name}` reuses old data, but the buffer is cleared after each update")


def find_policy_lag(case: SpecCase) -> Iterator[Sighting]:
    """Find actors that lag behind an on-policy learner without a correction."""
    rollout = case.spec.architecture.rollout
    if case.spec.strategy.algorithm in ON_POLICY and rollout.policy_lag > 1 and rollout.correction == "none":
        claim = f"actors lag {rollout.policy_lag} updates behind an on-policy learner without importance weights"
        yield _sighting("updates of lag", rollout.policy_lag, claim, limit=1.0)


def find_agents(case: SpecCase) -> Iterator[Sighting]:
    """Find several declared agents on an environment with one, and plans without a baseline."""
    plan = case.spec.multi_agent
    if plan is None:
        if case.profile.agents > 1:
            claim = f"{case.spec.env.id} has {case.profile.agents} agents, and the spec has no section multi_agent"
            yield _sighting("agents of the environment", case.profile.agents, claim, limit=1.0)
        return
    if plan.agents != case.profile.agents:
        claim = f"the spec has {plan.agents} agents, but {case.spec.env.id} has {case.profile.agents}"
        yield _sighting("agents of the environment", case.profile.agents, claim, limit=float(plan.agents))
    if plan.training == "central" and plan.baseline == "none":
        yield _sighting("baseline", "none", "central training without independent learners as the baseline")


def find_hierarchy(case: SpecCase) -> Iterator[Sighting]:
    """Find goals that are not observed, and periods that are too short or too long."""
    plan = case.spec.hierarchy
    if plan is None:
        return
    names = {column.name for column in case.profile.record.columns}
    unknown = [goal for goal in plan.goals if goal not in names]
    if unknown:
        claim = f"goals that the observation does not have: {', '.join(unknown)}"
        yield _sighting("unknown goals", len(unknown), claim, limit=0.0)
    if plan.period >= case.profile.horizon:
        claim = f"the manager decides every {plan.period} steps, but an episode lasts {case.profile.horizon}"
        yield _sighting("period", plan.period, claim, limit=float(case.profile.horizon))
    elif not SHORTEST_PERIOD <= plan.period <= LONGEST_PERIOD:
        claim = f"the manager decides every {plan.period} steps, outside {SHORTEST_PERIOD} to {LONGEST_PERIOD}"
        yield _sighting("period", plan.period, claim)


def find_demonstrations(case: SpecCase) -> Iterator[Sighting]:
    """Find too few demonstrations for cloning, and datasets that do not fit."""
    plan = case.spec.imitation
    if plan is None:
        return
    yield from _dataset(case, "imitation")
    is_few = plan.demonstrations < FEWEST_DEMONSTRATIONS
    if plan.method == "bc" and is_few and not plan.is_expert_queryable:
        claim = f"cloning from {plan.demonstrations} episodes, with an expert that cannot be asked"
        yield _sighting("demonstrations", plan.demonstrations, claim, limit=float(FEWEST_DEMONSTRATIONS))
    if plan.method == "dagger" and not plan.is_expert_queryable:
        yield _sighting("expert", "not queryable", "DAgger needs an expert that answers queries")


def _dataset(case: SpecCase, section: str) -> Iterator[Sighting]:
    for name, problem in case.dataset_problems:
        if name == section:
            yield _sighting(f"{section}.dataset", problem, f"{section}.dataset: {problem}")


def find_offline(case: SpecCase) -> Iterator[Sighting]:
    """Find an offline plan without a baseline, tuned on the test, with narrow data, or with data that does not fit."""
    plan = case.spec.offline
    if plan is None:
        return
    yield from _dataset(case, "offline")
    if plan.algorithm != "bc" and plan.baseline == "none":
        yield _sighting("baseline", "none", f"`{plan.algorithm}` without cloning as the baseline")
    if plan.validation == "test_environment":
        yield _sighting("validation", plan.validation, "settings are chosen in the environment that tests them")
    if plan.algorithm != "bc" and plan.behaviour_policies < 2:
        claim = "one policy made the data: value methods have no contrast"
        yield _sighting("behaviour policies", plan.behaviour_policies, claim, limit=2.0)


def find_preferences(case: SpecCase) -> Iterator[Sighting]:
    """Find preference data without a hold-out, with one annotator or with leaking pairs."""
    plan = case.spec.preferences
    if plan is None:
        return
    if plan.hold_out == 0:
        yield _sighting("hold-out", 0.0, "no pair is held out: the model's accuracy cannot be measured")
    if plan.annotators < 2:
        yield _sighting("annotators", plan.annotators, "one annotator: agreement cannot be measured", limit=2.0)
    if plan.split == "pair":
        yield _sighting("split", plan.split, "pairs of one episode can be in both halves")


def find_randomisation(case: SpecCase) -> Iterator[Sighting]:
    """Find randomised factors that the environment does not have."""
    for name, why in case.absent_factors:
        yield _sighting(name, why, f"randomisation.factors: the environment has no `{name}`: {why}")


def find_curriculum(case: SpecCase) -> Iterator[Sighting]:
    """Find a curriculum without levels, by schedule, or measured on its own levels."""
    plan = case.spec.curriculum
    if plan is None:
        return
    if plan.levels < 2:
        yield _sighting("levels", plan.levels, "a curriculum of one level", limit=2.0)
    if plan.is_generated and plan.score != "regret":
        claim = f"generated levels are chosen by {plan.score}: unsolvable ones look hardest"
        yield _sighting("score", plan.score, claim)
    if plan.is_generated and plan.held_out_levels == 0:
        yield _sighting("held-out levels", 0, "generated levels without held-out ones measure memory", limit=1.0)


def find_evaluation(case: SpecCase) -> Iterator[Sighting]:
    """Find too few episodes or seeds, and a metric that the environment does not report."""
    plan = case.spec.evaluation
    if plan.episodes < FEWEST_EPISODES and not case.profile.is_deterministic:
        claim = f"{counted(plan.episodes, 'episode')} per evaluation of an environment with random starts"
        yield _sighting("episodes", plan.episodes, claim, limit=float(FEWEST_EPISODES))
    if plan.training_seeds < FEWEST_SEEDS:
        claim = f"{counted(plan.training_seeds, 'training seed')} cannot separate a gain from luck"
        yield _sighting("training seeds", plan.training_seeds, claim, limit=float(FEWEST_SEEDS))
    reports = any(episode.success is not None for episode in case.episodes)
    if plan.metric == "success_rate" and case.episodes and not reports:
        yield _sighting("success", "not reported", "evaluation.metric is success_rate, but no episode reports success")


def find_robustness(case: SpecCase) -> Iterator[Sighting]:
    """Find shifts without a control arm, and a policy for hardware without any shift."""
    plan = case.spec.robustness
    if plan is not None and plan.conditions and not plan.control:
        yield _sighting("control arm", "none", "shifts without an unshifted arm: noise looks like brittleness")
    if case.spec.is_for_robot and (plan is None or not plan.conditions):
        yield _sighting("conditions", 0, "a policy for hardware without a single shift in its tests", limit=1.0)


PLAN_RULES: tuple[Rule[SpecCase], ...] = (
    Rule("spec_batch", "high", find_batch, ("rlx docs batch-calculator --run lists batches that fit",)),
    Rule("spec_buffer_kind", "high", find_buffer_kind, ("architecture.buffer.kind: replay for off-policy learners",)),
    Rule("spec_policy_lag", "medium", find_policy_lag, ("architecture.rollout.correction: vtrace",)),
    Rule("spec_agents", "high", find_agents, ("make the agents one environment: rlx docs guides/data-and-teams",)),
    Rule("spec_hierarchy", "medium", find_hierarchy, ("hierarchy: {period: 10, goals: [observation[0]]}",)),
    Rule("spec_demonstrations", "medium", find_demonstrations, ("imitation.demonstrations: 100",)),
    Rule("spec_offline", "medium", find_offline, ("offline.baseline: bc",)),
    Rule("spec_preferences", "medium", find_preferences, ("preferences: {hold_out: 0.2, annotators: 2}",)),
    Rule("spec_randomisation", "high", find_randomisation, ("rlx probe lists the parameters it can vary",)),
    Rule("spec_curriculum", "medium", find_curriculum, ("curriculum: {score: regret, held_out_levels: 50}",)),
    Rule("spec_evaluation", "medium", find_evaluation, ("evaluation: {episodes: 50, training_seeds: 5}",)),
    Rule("spec_robustness", "medium", find_robustness, ("robustness: {conditions: [delay], control: true}",)),
)
