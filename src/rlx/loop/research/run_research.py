"""Run a research campaign on a run's config: plan rounds, train variants as ordinary runs, and keep everything tried.

`.rlx/research/NAME/ledger.jsonl` is the truth: a hash-chained ledger like that of a study. Only the config changes;
environment, evaluation and the number of steps are locked, so all scores are at one budget. The campaign is replayed
from the ledger, so one that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx.command import is_plain_word
from rlx.compare.code_version import CurrentCode
from rlx.compare.race import Race
from rlx.config.labels import value_at
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.load_case import read_case
from rlx.diagnose.rules import load as load_rule
from rlx.errors import NotFound, Refused, RlxError, UsageError, hint_for
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.loop.advisor.advise import Refusals, base_data, refuse_untrainable, settings_of
from rlx.loop.advisor.llm_endpoint import Endpoint
from rlx.loop.advisor.llm_vote import LlmPlanner
from rlx.loop.research.campaign import (
    BASE,
    CampaignState,
    ProposalsAsked,
    RaceDone,
    ResearchCampaign,
    SeedsAsked,
    least_budget,
)
from rlx.loop.sweep.sweep_log import LEDGER, SweepLog, SweepState, free_name
from rlx.loop.sweep.sweep_plan import SweepPlan
from rlx.loop.sweep.trial_runs import TrialRuns
from rlx.runs import project
from rlx.runs.run import SNAPSHOT, Run
from rlx.search.auto import TrialJob, settings_for
from rlx.search.minority_vote import LARGEST_SHARE
from rlx.search.observation import Observation
from rlx.search.planners.finding_variants import Variant, cross_checked, from_findings
from rlx.search.planners.neighbourhood import neighbourhood, single_steps
from rlx.search.samplers import sampler_named
from rlx.search.space import Space, Values

FOLDER = Path(".rlx") / "research"
VARIANTS = 4
"""Variants per round."""


@dataclass(frozen=True)
class ResearchRequest:
    """What the user asks for: rounds, seeds in all, and where proposals come from."""

    rounds: int = 3
    budget: int = 80
    planner: str = "rules"
    endpoint: str = ""
    is_strict: bool = False


@dataclass(frozen=True)
class ResearchProgress:
    """Where a campaign stands: round, seeds spent, the head, and how far the present trainings are."""

    round: int
    rounds: int
    spent: int
    budget: int
    head: str
    doing: str
    eta_seconds: float | None = None


Report = Callable[[ResearchProgress], None]


@dataclass
class ResearchRound:
    """The variants of one round as the ledger has them."""

    number: int
    configs: list[int]
    variants: list[Mapping[str, Any]]
    refused: list[Mapping[str, Any]] = field(default_factory=list)
    audit: list[Mapping[str, Any]] = field(default_factory=list)


def start(run: Run, request: ResearchRequest, *, root: Path, report: Report, name: str | None = None) -> SweepLog:
    """Start a campaign on a run's config, and run it to its end."""
    refuse_untrainable(run)
    if request.rounds < 1:
        raise UsageError(f"--rounds {request.rounds}: at least 1", hint="--rounds 3")
    if request.budget < least_budget():
        message = f"a budget of {request.budget} seeds cannot race and confirm one variant: {least_budget()} can"
        raise UsageError(message, hint=f"--budget {least_budget()} or more")
    if request.planner == "llm":
        Endpoint(request.endpoint)  # raises before anything is trained
    log = create(run, request, root=root, name=name)
    project.mark_own(root)
    return resume(log.name, root=root, report=report)


def create(run: Run, request: ResearchRequest, *, root: Path, name: str | None = None) -> SweepLog:
    """Create the folder of a campaign and write its plan."""
    name = name or free_name(f"research_{run.name}", folder=root / FOLDER)
    folder = root / FOLDER / name
    if (folder / LEDGER).exists():
        raise UsageError(f"there is a campaign {name} already", hint=f"rlx research resume {name}")
    settings = settings_of(run)
    plan = SweepPlan(
        name=name,
        base=f"runs/{run.name}/{SNAPSHOT}",
        data=base_data(run),
        space=neighbourhood(settings),
        settings=settings_for(2),
        fixed={"backend": "auto"},
    )
    plan.experiment({})
    folder.mkdir(parents=True, exist_ok=True)
    project.mark_made_here(folder)
    log = SweepLog(folder)
    log.append("planned", key="1", plan=plan.document(), run=run.name, request=vars(request))
    log.add_trial(BASE, {}, by="the run")
    return log


def find(name: str, *, root: Path) -> SweepLog:
    """Return a campaign by its name."""
    known = names(root)
    if name not in known:
        raise NotFound(f"there is no campaign `{name}`", hint=hint_for(name, known, otherwise="rlx research ls"))
    return SweepLog(root / FOLDER / name)


def names(root: Path) -> list[str]:
    """Return the names of all campaigns of a project."""
    found = [path.parent.name for path in (root / FOLDER).glob(f"*/{LEDGER}")]
    return sorted(name for name in found if is_plain_word(name))


def request_of(log: SweepLog) -> ResearchRequest:
    """Return what a campaign was started with."""
    return ResearchRequest(**log.ledger.events()[0]["request"])


def rounds_of(log: SweepLog) -> list[ResearchRound]:
    """Return the rounds that the ledger has."""
    return [
        ResearchRound(event["number"], event["configs"], event["variants"], event["refused"], event["audit"])
        for event in log.ledger.events()
        if event.kind == "round"
    ]


def resume(name: str, *, root: Path, report: Report) -> SweepLog:
    """Continue a campaign; one that is over stays as it is."""
    log = find(name, root=root)
    refuse_foreign_program(f"the trainings and the planner of the campaign {name}", root=root, item=log.folder)
    with log.held():
        if any(event.kind == "claimed" for event in log.ledger.events()):
            return log
        state = log.state()
        for run_name in list(state.runs.values())[:1]:
            changes = CurrentCode(root).changes(Run(root / "runs" / run_name))
            if changes:
                message = f"the campaign {name} cannot go on: {', '.join(changes)} changed since it began"
                raise Refused(message, hint=f"start a new one: rlx research {log.ledger.events()[0]['run']}")
        log.append("session")
        _Research(log, state, root=root, report=report).run()
    return log


class _Research:
    """One session of a campaign."""

    def __init__(self, log: SweepLog, state: SweepState, *, root: Path, report: Report) -> None:
        self.log = log
        self.state = state
        self.root = root
        self.request = request_of(log)
        self._report = report
        self.rounds = {known.number: known for known in rounds_of(log)}
        self.campaign = ResearchCampaign(rounds=self.request.rounds, budget=self.request.budget)
        self.trials = TrialRuns(log, state, root=root, watch=self._watch)
        self._round = 0
        self._began = time.monotonic()
        self._scores_before = len(state.scores)

    def run(self) -> CampaignState:
        """Answer what the campaign asks for until it ends."""
        steps = self.campaign.run()
        answer: Any = None
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration:
                break
            answer = None
            if isinstance(asked, SeedsAsked):
                answer = self._train(asked)
            elif isinstance(asked, ProposalsAsked):
                self._round = asked.round
                answer = self._propose(asked.round).configs
            elif isinstance(asked, RaceDone):
                self._record_race(asked.config, asked.result)
        self._record_end()
        return self.campaign.state

    def _train(self, asked: SeedsAsked) -> dict[int, float | None]:
        if asked.config not in self.state.trials:
            self._add_config(asked.config)
        scores = self.trials.train([TrialJob(asked.config, seed, 1.0) for seed in asked.seeds])
        if asked.config == BASE and all(score is None for score in scores.values()):
            reason = next((ended.reason for ended in self.state.scores.values() if ended.reason), "no score")
            raise RlxError(f"the config of the run does not train: {reason}", hint=f"rlx info {self.state.runs[BASE]}")
        return {job.seed: score for job, score in scores.items()}

    # Proposals

    def _propose(self, number: int) -> ResearchRound:
        known = self.rounds.get(number)
        if known is None:
            known = self._plan_round(number)
            self.log.append("round", key=str(number), **vars(known))
            self.rounds[number] = known
        return known

    def _add_config(self, config: int) -> None:
        """Write a variant's config: its changes on top of the present head, which may have moved since the plan."""
        variant = variants_by_config(list(self.rounds.values()))[config]
        values = {**self._head_values(), **variant["changes"]}
        self.log.add_trial(config, values, by=variant["source"])
        self.state.trials[config] = values

    def _head_values(self) -> Values:
        return dict(self.state.trials[self.campaign.state.head])

    def _plan_round(self, number: int) -> ResearchRound:
        """Return up to four variants of the head: findings first, then a language model, then the optimiser."""
        head = Run(self.root / "runs" / self.state.runs[self.campaign.state.head])
        settings = settings_of(head)
        audit: list[Mapping[str, Any]] = []
        proposed: list[Variant] = []
        if self.request.planner == "llm":
            proposed += self._from_model(head, settings, audit)
        if self.request.planner != "sampler":
            findings = diagnose(read_case(head)).findings
            proposed += from_findings(findings, describe=lambda rule: load_rule(rule).source)
        proposed += self._from_optimiser(settings, number)
        tried = self._tried()

        def refusal(changes: Mapping[str, Any]) -> str:
            reason = Refusals(head, base_data(head), root=self.root)(changes)
            if reason:
                return reason
            if self._identity({**self._head_values(), **changes}) in tried:
                return "it was tried before"
            return ""

        plan = cross_checked(proposed, settings, refusal=refusal, most=VARIANTS)
        first = 1 + max((config for known in self.rounds.values() for config in known.configs), default=BASE)
        refused: list[Mapping[str, Any]] = [
            left_out.document() for left_out in plan.left_out if left_out.cause != "no room"
        ]
        return ResearchRound(
            number,
            list(range(first, first + len(plan.variants))),
            [variant.document() for variant in plan.variants],
            refused,
            audit,
        )

    def _identity(self, values: Mapping[str, Any]) -> str:
        """Return the hash of a config: the same for every spelling of the same training."""
        from rlx.config.load import group_hash

        return group_hash(self.state.plan.experiment(values))

    def _tried(self) -> set[str]:
        return {self._identity(values) for values in self.state.trials.values()}

    def _history(self, space: Space) -> list[Observation]:
        """Return every config so far with its mean score, as values of a space around the head."""
        from rlx.config.load import document

        history = []
        for number, values in self.state.trials.items():
            config = document(self.state.plan.experiment(values))
            scores = [ended.score for job, ended in self.state.scores.items() if job.trial == number]
            known = [score for score in scores if score is not None]
            score = None
            if known:
                score = sum(known) / len(known)
            observed = {key: value_at(config, key) for key in space.keys}
            history.append(Observation(observed, score, has_failed=bool(scores) and not known))
        return history

    def _from_optimiser(self, settings: Mapping[str, Any], number: int) -> list[Variant]:
        """Return single steps of the head first, later what a model of all scores so far finds most promising."""
        space = neighbourhood(settings)
        if not space.parameters:
            return []
        base = {key: settings[key] for key in space.keys}
        seed = self.state.plan.settings.seed + number
        proposed = sampler_named("model").propose(space, self._history(space), 2 * VARIANTS, seed=seed)
        changes = [{key: value for key, value in values.items() if value != base[key]} for values in proposed]
        steps = single_steps(settings)
        mixed = [change for pair in zip(steps[: len(changes)], changes, strict=False) for change in pair]
        if self.request.planner == "sampler":
            mixed = [*changes, *steps]
        reason = "a step from the head, or the optimiser's choice after all scores so far"
        return [Variant(change, "the search", reason, "optimiser", "unknown", "sampler") for change in mixed if change]

    def _from_model(self, head: Run, settings: Mapping[str, Any], audit: list[Mapping[str, Any]]) -> list[Variant]:
        space = neighbourhood(settings, keys=12)
        base = {key: settings[key] for key in space.keys}
        count = max(1, math.floor(LARGEST_SHARE * VARIANTS))
        endpoint = Endpoint(self.request.endpoint)
        data = {"run": head.name, "note": head.note, "tags": list(head.tags)}
        planner = LlmPlanner(endpoint, is_strict=self.request.is_strict, audited=audit.append, data=data)
        return [
            Variant(planned.changes, planned.signal, planned.rationale, "language model", "unknown", "llm")
            for planned in planner.propose(space, base, self._history(space), count)
        ]

    # The log

    def _record_race(self, config: int, result: Race) -> None:
        self.log.append("raced", key=str(config), config=config, **result.document())

    def _record_end(self) -> None:
        state = self.campaign.state
        claim = None
        if state.confirmation is not None:
            claim = state.confirmation.document()
        self.log.append(
            "claimed", key="1", head=state.head, spent=state.spent, moves=state.moves, stop=state.stop, claim=claim
        )
        if state.head != BASE:
            self.write_best(self.state.trials[state.head])

    def write_best(self, values: Values) -> None:
        """Write the head as a config that extends the run's config."""
        from rlx.loop.sweep.run_sweep import write_best

        write_best(self.log, self.state.plan, values, root=self.root)

    def _watch(self, active: Mapping[TrialJob, float]) -> None:
        trials = sorted({job.trial for job in active})
        doing = ""
        if active:
            share = sum(active.values()) / len(active)
            doing = f"config {', '.join(map(str, trials))}, {len(active)} seeds, {share:.0%}"
        state = self.campaign.state
        head = "the original config"
        if state.head != BASE:
            head = f"config {state.head}"
        self._report(
            ResearchProgress(
                self._round, self.request.rounds, state.spent, self.request.budget, head, doing, self._eta()
            )
        )

    def _eta(self) -> float | None:
        """Return the time that the rest of the budget takes at the pace of this session."""
        spent = self.campaign.state.spent
        trained = len(self.state.scores) - self._scores_before
        if not trained:
            return None
        pace = (time.monotonic() - self._began) / trained
        return pace * max(0, self.request.budget - spent)


def variants_by_config(rounds: Sequence[ResearchRound]) -> dict[int, Mapping[str, Any]]:
    """Return config → the variant that it came from."""
    found: dict[int, Mapping[str, Any]] = {}
    for known in rounds:
        for config, variant in zip(known.configs, known.variants, strict=True):
            found[config] = {**variant, "round": known.number}
    return found
