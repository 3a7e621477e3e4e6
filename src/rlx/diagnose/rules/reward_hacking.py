"""The return rises while the task metric does not: the policy exploits the reward."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_terms.load_terms import RewardHistory
from rlx.diagnose.reward_terms.term_stats import RewardHack, find_hacks
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import EVALUATIONS, RETURN, SUCCESS, TERMS, RunCase
from rlx.diagnose.run_rule import Advice, RunRule
from rlx.number_format import figure, listed


def look(case: RunCase) -> Iterator[Sighting]:
    """Find one sighting with all seeds whose reward is farmed, and the curves of task metric and return."""
    history = case.reward_history
    hacks = find_hacks(history.seeds, history.metric)
    if hacks:
        yield _sighting(hacks, history)


def _sighting(hacks: Mapping[int, RewardHack], history: RewardHistory) -> Sighting:
    terms = Counter(hack.term for hack in hacks.values())
    term = max(terms, key=lambda name: (terms[name], bool(name)))
    is_fall = any(hack.divergence.is_fall for hack in hacks.values())
    blamed = [hack for hack in hacks.values() if hack.term == term]
    falling = [hack for hack in blamed if hack.divergence.is_fall]
    first = min(falling or blamed, key=lambda hack: hack.divergence.step)
    divergence = first.divergence
    claim = (
        f"{_subject(term)} from step {divergence.step:,} on: it pays {figure(first.paid[0])} → "
        f"{figure(first.paid[1])} per episode while {history.metric} {'fell' if divergence.is_fall else 'stayed flat'} "
        f"({figure(divergence.task[0])} → {figure(divergence.task[1])}); "
        f"seen on {len(hacks)} of {len(history.seeds)} seeds"
    )
    others = [name for name in terms if name not in (term, "")]
    if others:
        claim += f"; other seeds farm {listed([f'`{name}`' for name in others])}"
    tries = tuple(advice for name in (term, *others) if name for advice in _tries(name))
    evidence = tuple(_evidence(hacks, history, term, first))
    return Sighting(evidence, claim, "high" if is_fall else "medium", tries, term=term)


def _subject(term: str) -> str:
    return f"`{term}` is farmed" if term else "the return rises"


def _tries(term: str) -> tuple[str, str]:
    return (
        f"make `{term}` a difference of potentials (γΦ(s′) − Φ(s)), pay it once, or cap it per episode",
        f"lower the weight of `{term}` until finishing pays more than farming it",
    )


def _evidence(
    hacks: Mapping[int, RewardHack], history: RewardHistory, term: str, first: RewardHack
) -> Iterator[Evidence]:
    """Yield the task metric, the return and the farmed term: their levels, and their curves over these seeds."""
    divergence = first.divergence
    steps = (divergence.step, divergence.last_step)
    seeds = tuple(sorted(hacks))
    chosen = replace(history, seeds=tuple(seed for seed in history.seeds if seed.seed in hacks))
    task = chosen.mean_curve(lambda seed: seed.task)
    returns = chosen.mean_curve(lambda seed: seed.returns)
    yield Evidence(f"{history.metric} at the end", divergence.task[1], divergence.task[0], steps, seeds, task)
    if term:
        paid = chosen.mean_curve(lambda seed: seed.per_episode.get(term))
        yield Evidence(f"{term} per episode at the end", first.paid[1], first.paid[0], steps, seeds, paid)
    yield Evidence(
        f"{RETURN} per episode at the end", divergence.returns[1], divergence.returns[0], steps, seeds, returns
    )


RULE = RunRule(
    id="reward_hacking",
    severity="high",
    summary="the reward rises while the task metric does not",
    look=look,
    needs=(f"{SUCCESS}|{TERMS}|{EVALUATIONS}", RETURN),
    source="Amodei et al. 2016; Pan et al. 2022 (proxy up, true reward down)",
    cannot_see=(
        "tasks without a measure of success: set info['is_success'], or change the reward in a RewardWrapper, which "
        "evaluations leave out; hacking on half of the seeds or fewer"
    ),
    advice=(Advice("see what each term paid", "reflect {run}", "reward terms"), "lower or bound the term that rises"),
)
