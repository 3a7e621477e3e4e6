"""The reward rises while the task is not done better."""

from __future__ import annotations

from rlx.diagnose.case import NOTHING, RETURN, Case, SeedCase
from rlx.diagnose.curve import Shape, shape
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed

SUCCESS = "rollout/success_rate"
DONE = 0.5  # successes: above that a flat rate may be a ceiling


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return a return that rises beside successes that do not, or fall."""
    returns, successes = _shape(seed, RETURN), _shape(seed, SUCCESS)
    worse = successes.answer in ("declining", "collapsed") or (successes.answer == "flat" and successes.end < DONE)
    if returns.answer != "improving" or not worse:
        return []
    return [
        Evidence(f"{RETURN} from {returns.start:.4g} to", returns.end, steps=(returns.changed, seed.step)),
        Evidence(f"{SUCCESS} from {successes.start:.4g} to", successes.end, steps=(successes.changed, seed.step)),
    ]


def _shape(seed: SeedCase, metric: str) -> Shape:
    series = seed.series.get(metric, NOTHING)
    return shape(series.steps, series.values)


RULE = Rule(
    id="reward_hacking",
    kind="cause",
    severity="high",
    says="the reward rises while the task is not done better",
    look=by_seed(see),
    needs=(SUCCESS, RETURN),
    source="Amodei et al. 2016; Pan et al. 2022 (proxy up, true reward down)",
    cannot_see="tasks without a measure of success: set info['is_success']",
    tries=("see which term pays for it: rlx reflect RUN", "lower or bound the term that rises"),
)
