"""Hardly any update for the steps that were taken."""

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import OFF_POLICY, Limit, RunRule, SuggestedChange, by_seed

UPDATES = Limit("train/updates", below=0.01, statistic="max", over="steps trained")


USUAL = ("sac", "tqc", "td3", "ddpg")
"""Algorithms whose published results make one update per step of the environment."""
SPARSE = 0.5  # updates per step: fewer are named if the returns show harm


def planned_updates(case: RunCase) -> float | None:
    """Return the updates per environment step that the config makes, if it says so.

    One call of a vector of environments is a step in each of them, so `train_every` counts calls.
    """
    envs = case.setting("env.num_envs")
    every = case.setting("algo.train_every")
    updates = case.setting("algo.gradient_steps")
    if not isinstance(every, int) or not isinstance(updates, int) or case.algorithm not in USUAL:
        return None
    if updates < 0 or every < 1:
        return 1.0
    return updates / (every * (envs if isinstance(envs, int) else 1))


def look(case: RunCase) -> Iterator[Sighting]:
    """Find trainings with hardly any update, and SAC-like ones whose environments outrun their updates."""
    for sighting in by_seed(look_at_seed)(case):
        yield sighting
        return
    ratio = planned_updates(case)
    harmed = [
        seed.seed for seed in case.seeds if case.is_harmed(seed) or case.shapes[seed.seed].answer == "still rising"
    ]
    if ratio is None or ratio >= SPARSE or 2 * len(harmed) < len(case.seeds) or not harmed:
        return
    envs = case.setting("env.num_envs")
    claim = (
        f"{case.algorithm} makes one update per {1 / ratio:g} steps ({envs} environments, "
        f"train_every {case.setting('algo.train_every')}, gradient_steps {case.setting('algo.gradient_steps')}); "
        "its published results make one per step"
    )
    yield Sighting((Evidence("updates per step", ratio, SPARSE, seeds=tuple(harmed)),), claim)


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the updates per step."""
    updates = UPDATES.measure(seed, case)
    if updates is None or not seed.step:
        return None
    return UPDATES.judge(updates / seed.step, seed, case)


RULE = RunRule(
    id="few_updates",
    severity="medium",
    summary="there are hardly any updates for the steps taken",
    look=look,
    limits=(UPDATES,),
    algorithms=OFF_POLICY,
    source="RL Baselines3 Zoo: one update per step to one per four steps; never one per hundred",
    cannot_see="updates that are too small",
    advice=(
        "update as often as you step: algo.gradient_steps -1, or fewer environments",
        "use more gradient steps each time",
    ),
    changes=(SuggestedChange("algo.gradient_steps", to=-1), SuggestedChange("algo.train_every", to=1)),
)
