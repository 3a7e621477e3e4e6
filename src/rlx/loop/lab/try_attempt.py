"""Try one attempt: what an agent changed becomes a candidate of the rung's study, or one row that says why not."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx.command import rlx
from rlx.errors import ConfigError, NotFound, Refused, UsageError
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch import launch as plain
from rlx.launch.study_jobs.check_in_sandbox import ask_in_sandbox
from rlx.launch.study_jobs.launch_candidate import refused_error
from rlx.loop.lab import idea as ideas
from rlx.loop.lab.attempt import ACTION, Attempt, rung_attempts
from rlx.loop.lab.lab_folder import APPROVE_HINT, Lab
from rlx.loop.lab.staged_change import StagedChange, changed_tree, restore_surface, stage_change, surface_of
from rlx.loop.study.agent.try_candidate import SECONDS, try_candidate
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.propose import propose, withdraw
from rlx.study.candidate.diff_scope import breaches
from rlx.study.refusal import Refusal
from rlx.study.study_folder import Study

BRIEF = rlx("lab", "brief")
MOST_DESCRIPTION = 500
"""How many characters of a description a refusal's row holds."""


@dataclass(frozen=True)
class LabIdea:
    """What an agent says about its change: the claim, the expected gain, and why a settled idea deserves a retry."""

    description: str
    predicts: float | None = None
    again: str = ""
    note: Mapping[str, Any] = field(default_factory=dict)
    """What its row also holds, such as the driver's session."""

    @property
    def hypothesis(self) -> str:
        """The description on one line."""
        return " ".join(self.description.split())


def try_attempt(
    lab: Lab,
    tree: Path,
    idea: LabIdea,
    *,
    say: Say,
    seconds: float = SECONDS,
    follow: Callable[..., object] = plain.wait,
) -> Attempt:
    """Try what a folder changes against the head, at the current rung; return the attempt as it stands.

    A refusal is one row of the ledger and an error with exit code 4. The lab's own folder gets the head's files back,
    so that the next idea starts from there.
    """
    refuse_foreign_program("the training of the lab", root=lab.root, item=lab.study.folder, hint=APPROVE_HINT)
    study = lab.study
    change, reasons = _staged(lab, tree)
    figures: dict[str, float] = {}
    if change is not None:
        reasons = _problems(lab, study, change, idea)
        if not reasons and lab.config.kind == "build":
            reasons, figures = check_built_env(lab, change)
    if reasons or change is None:
        note = dict(idea.note)
        if change is not None:
            note |= {"idea": ideas.fingerprint(change), "parts": ideas.parts(change)}
        raise refuse_attempt(lab, reasons, description=idea.description, note=note)
    candidate = _propose(lab, change, idea, figures)
    is_own = tree.resolve() == lab.root.resolve()
    restored = restore_surface(lab, tree) if is_own else []
    attempt = continue_attempt(lab, candidate, say=say, seconds=seconds, follow=follow)
    if is_own and restored == surface_of(tree):  # nobody edited it meanwhile: it follows the head
        restore_surface(lab, tree)
    return attempt


def continue_attempt(
    lab: Lab, candidate: str, *, say: Say, seconds: float = SECONDS, follow: Callable[..., object] = plain.wait
) -> Attempt:
    """Bring a candidate as far as the time allows; one whose check is refused is withdrawn."""
    study = lab.study
    require_candidate(lab, candidate)
    try:
        try_candidate(study, candidate, seconds=seconds, say=say, follow=follow)
    except Refused:
        standing = study.state().candidates[candidate]
        if standing.state == "draft" and standing.check_refusals:
            withdraw(study, candidate, why="; ".join(str(reason["says"]) for reason in standing.check_refusals))
        raise
    return find_attempt(lab, candidate)


def require_candidate(lab: Lab, name: str) -> None:
    """Raise if the current rung has no such candidate."""
    known = list(lab.study.state().candidates)
    if name not in known:
        newest = ", ".join(known[-5:]) or "none yet"
        raise NotFound(f"rung {lab.rung.name} has no candidate `{name}`", hint=f"the newest: {newest} (rlx lab show)")


def find_attempt(lab: Lab, candidate: str) -> Attempt:
    """Return a candidate of the current rung as an attempt."""
    found = rung_attempts(lab.study, lab.rung)
    return next(attempt for attempt in found if attempt.candidate == candidate)


def refuse_attempt(
    lab: Lab, reasons: Sequence[Refusal], *, description: str, note: dict[str, Any] | None = None
) -> Refused:
    """Write one row for an attempt that never became a candidate; return the error to raise."""
    rows = [{"code": reason.code, "says": reason.message[:2000]} for reason in reasons]
    words = " ".join(description.split())[:MOST_DESCRIPTION]
    lab.study.ledger.append("refused", action=ACTION, description=words, reasons=rows, note=note or {})
    return refused_error("the attempt is refused", reasons)


def _staged(lab: Lab, tree: Path) -> tuple[StagedChange | None, list[Refusal]]:
    try:
        return stage_change(lab, tree), []
    except ConfigError as error:
        return None, [Refusal("VALUE", error.message, BRIEF)]
    except Refused as error:
        return None, [Refusal("SIZE", error.message, BRIEF)]


def _problems(lab: Lab, study: Study, change: StagedChange, idea: LabIdea) -> list[Refusal]:
    """Return everything against an attempt that is known before any code runs."""
    evaluator_uses = ideas.module_uses(change)
    if ideas.is_empty(change) and not evaluator_uses:
        return [Refusal("NO_CHANGE", "it changes nothing: the head has the same code and settings", BRIEF)]
    contract = study.contract()
    found = [
        Refusal("SCOPE", message, BRIEF) for message in breaches(change.changes, change.keys, contract, study.task())
    ]
    for place in evaluator_uses:
        found.append(Refusal("EVALUATOR", f"{place}: imports the evaluator, which is the person's", BRIEF))
    if lab.config.kind == "build":
        for place in ideas.module_uses(change, "rlx"):
            found.append(Refusal("EVALUATOR", f"{place}: imports rlx, which judges the environment", BRIEF))
    if change.lines > lab.config.caps.diff_lines:
        most = lab.config.caps.diff_lines
        found.append(Refusal("SIZE", f"the diff has {change.lines} lines, more than the cap of {most}", BRIEF))
    weights = sum(least_weights(value) for key, value in change.keys.items() if key.startswith("policy."))
    if weights > lab.config.caps.parameters:
        most = lab.config.caps.parameters
        found.append(Refusal("SIZE", f"the network has over {weights:,} weights; the cap is {most:,}", BRIEF))
    if not idea.description.strip():
        found.append(Refusal("CANDIDATE", "the description is empty: say what changes and why", BRIEF))
    if not found and not idea.again:
        found += _settled(lab, study, change)
    return found


def least_weights(sizes: object) -> int:
    """Return the least number of weights of layers with these sizes: between them, and one bias each."""
    if isinstance(sizes, Mapping):
        return sum(least_weights(value) for value in sizes.values())
    if not isinstance(sizes, list) or not all(type(size) is int for size in sizes):
        return 0
    widths: list[int] = sizes
    return sum(widths) + sum(before * after for before, after in itertools.pairwise(widths))


def _settled(lab: Lab, study: Study, change: StagedChange) -> list[Refusal]:
    """Answer an idea from the tree if its result stands at this rung."""
    name = ideas.fingerprint(change)
    for attempt in reversed(rung_attempts(study, lab.rung)):
        if attempt.notes.get("idea") == name and attempt.is_settled:
            effect = "" if attempt.effect is None else f", {attempt.effect:+.4g} against {attempt.against}"
            learned = f"; lesson: {attempt.lesson}" if attempt.lesson else ""
            says = f"{attempt.candidate} tried this idea at {attempt.rung.name}: {attempt.status}{effect}{learned}"
            return [Refusal("SETTLED", says, rlx("lab", "show", attempt.candidate))]
    return []


def check_built_env(lab: Lab, change: StagedChange) -> tuple[list[Refusal], dict[str, float]]:
    """Play the evaluator's checks on the environment of a change, in a sandbox; return refusals and the floors."""
    limits = {"headroom": lab.config.metric.headroom, "max_steps": lab.config.worlds.max_steps}
    with changed_tree(lab.study, change) as tree:
        asked = ask_in_sandbox("rlx.evaluate.built_env.built_env_checks", limits, tree=tree)
    if asked.answer is None:
        return [Refusal("EVALUATOR", asked.problem, BRIEF)], {}
    problems = [str(problem) for problem in asked.answer.get("problems") or ()]
    figures = {str(name): float(value) for name, value in (asked.answer.get("figures") or {}).items()}
    if not problems and "random_floor" not in figures:
        problems = ["the candidate's code changed the answer of the check"]
    return [Refusal("EVALUATOR", problem, BRIEF) for problem in problems], figures


def _propose(lab: Lab, change: StagedChange, idea: LabIdea, figures: Mapping[str, float]) -> str:
    """Propose a change, once: a proposal whose note is missing was cut off between its two rows."""
    study = lab.study
    note = {**idea.note, "idea": ideas.fingerprint(change), "parts": ideas.parts(change), "lines": change.lines}
    candidate = _without_note(study, change, idea)
    if candidate is None:
        try:
            candidate = _proposed(
                study, change, idea, {"description": idea.hypothesis[:MOST_DESCRIPTION], "note": note}
            )
        except (ConfigError, UsageError) as error:  # it never became a proposal, so it has no row yet
            reasons = [Refusal("VALUE", error.message, BRIEF)]
            raise refuse_attempt(lab, reasons, description=idea.description, note=note) from None
    if idea.again:
        note["again"] = idea.again
    if figures:
        note["env"] = dict(figures)
    study.ledger.append("noted", candidate=candidate, note=note)
    return candidate


def _without_note(study: Study, change: StagedChange, idea: LabIdea) -> str | None:
    """Return the candidate that the same idea became, if nothing was noted about it yet."""
    events = study.ledger.events()
    noted = {event["candidate"] for event in events if event.kind == "noted"}
    head = study.state().head
    for name in (str(event["candidate"]) for event in events if event.kind == "proposed"):
        if name in noted:
            continue
        known = study.candidate(name)
        if (known.hypothesis, known.builds_on, known.changes) == (idea.hypothesis, head, change.keys):
            return name
    return None


def _proposed(study: Study, change: StagedChange, idea: LabIdea, details: Mapping[str, Any]) -> str:
    """Propose a change; a refusal is one row with these details."""
    proposal: dict[str, Any] = {"kind": "code", "hypothesis": idea.hypothesis}
    if change.keys:
        proposal["changes"] = change.keys
    if idea.predicts is not None:
        proposal["predicts"] = float(idea.predicts)
    with tempfile.TemporaryDirectory(prefix="rlx-attempt-") as folder:
        patch = Path(folder) / "change.patch"
        patch.write_bytes(change.patch)
        return str(propose(study, proposal, patch=patch, details=details)["candidate"])
