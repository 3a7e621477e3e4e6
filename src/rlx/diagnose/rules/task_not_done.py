"""The return rose and levelled off, and yet the task is hardly ever done."""

from collections.abc import Iterator

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_terms.proxy_divergence import RATES, known_part
from rlx.diagnose.reward_terms.term_stats import find_hacks, mean_shares
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import SUCCESS, TERMS, RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange
from rlx.diagnose.seed_outcomes import success_rates
from rlx.number_format import figure

DONE = 0.05  # of the episodes: a task that is done more often is being learned
SHORTER = 0.7  # of the first episodes' length
RARE = 0.05  # of |reward|
PART = 0.2  # of the run: its start and its end
LENGTH = "rollout/length_mean"
TRUNCATED = "rollout/truncated_share"


def look(case: RunCase) -> Iterator[Sighting]:
    """Find the seeds that settled above the random policy while their success rate stayed near zero."""
    history = case.reward_history
    if history.metric not in RATES or find_hacks(history.seeds, history.metric):
        return  # without a rate there is no task to be done; a farmed reward has its own rule
    rates = success_rates(case)
    settled = [seed for seed in case.seeds if seed.seed in rates and case.has_begun(seed)]
    failing = [
        seed for seed in settled
        if rates[seed.seed] <= DONE and case.shapes[seed.seed].answer == "levelled off" and case.is_above_floor(seed)
    ]  # fmt: skip
    if not failing or 2 * len(failing) <= len(settled):
        return
    numbers = tuple(seed.seed for seed in failing)
    mean = sum(rates[number] for number in numbers) / len(numbers)
    evidence = [Evidence(f"late {history.metric}", mean, DONE, seeds=numbers)]
    claim = (
        f"the return levelled off, and {history.metric} is {figure(mean)} on {len(failing)} of {len(case.seeds)} "
        "seeds: it settled for something else"
    )
    lengths = [ends for ends in map(_lengths, failing) if ends is not None]
    tries: tuple[str, ...] = ()
    if 2 * len(lengths) > len(failing):
        start, end = (float(np.median([ends[index] for ends in lengths])) for index in (0, 1))
        evidence.append(Evidence("episode length at the end", end, SHORTER * start, seeds=numbers))
        claim += f". It ends episodes early (length {figure(start)} → {figure(end)}), which costs less than going on"
        tries = (
            "let a failure cost more than the rest of the episode would, or let time cost nothing",
            "pay for progress towards the goal: γΦ(s′) − Φ(s)",
        )
    rare = _rare_bonuses(case)
    if rare:
        names = " or ".join(f"`{name}`" for name in rare)
        tries = (f"raise {names}: at most {RARE:.0%} of |reward| comes from it", *tries)
    yield Sighting(tuple(evidence), claim, tries=tries)


def _rare_bonuses(case: RunCase) -> list[str]:
    """Return the reward terms that only ever pay, and pay so little that nothing is learned from them."""
    seeds = case.reward_history.seeds
    rare = []
    for name, share in mean_shares(seeds).items():
        paid = np.concatenate([known_part(seed.per_step[name].values) for seed in seeds if name in seed.per_step])
        if share <= RARE and len(paid) and paid.min() >= 0 and paid.max() > 0:
            rare.append(name)
    return rare


def _lengths(seed: SeedCase) -> tuple[float, float] | None:
    """Return the episode length at the start and at the end, if episodes got shorter and fewer reach the time limit."""
    ends = []
    for metric in (LENGTH, TRUNCATED):
        values = seed.values(metric)
        values = values[np.isfinite(values)]
        if not len(values):
            return None
        count = max(1, round(PART * len(values)))
        ends.append((float(np.median(values[:count])), float(np.median(values[-count:]))))
    (first, last), (truncated_first, truncated_last) = ends
    if last >= SHORTER * first or truncated_last >= truncated_first:
        return None
    return first, last


RULE = RunRule(
    id="task_not_done",
    kind="symptom",
    severity="medium",
    summary="the return levelled off and the task is hardly ever done",
    look=look,
    needs=(f"{SUCCESS}|{TERMS}",),
    source="a success or pass rate of at most 5 % in the last fifth of the run, on most seeds",
    cannot_see="tasks without a measure of success: set info['is_success']; tasks that are solved much later",
    advice=(
        Advice("see what each term paid", "reflect {run}", "reward terms"),
        Advice("watch what it does instead", "replay {run} --episode worst"),
        "start closer to the goal, or explore more",
    ),
    changes=(SuggestedChange("algo.entropy_coef", to=0.02),),
)
