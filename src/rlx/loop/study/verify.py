"""Verify a study: recompute every number from raw episodes and hashes, and check the ledger's chain and anchors.

Limits: the owner of the account can rewrite everything that is not anchored elsewhere. An anchor in git reveals a
rewritten ledger only to people who have a copy of the repository.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

from rlx import external_programs, files
from rlx.errors import EvidenceInvalid, FileDamaged, Refused, RlxError
from rlx.launch.study_jobs import study_job
from rlx.launch.study_jobs.checkpoint_hashes import checkpoint_hash
from rlx.loop.study import measure_scores
from rlx.loop.study.evaluator import StudyEvaluator, figures_again
from rlx.loop.study.evidence_checks import altered_files
from rlx.loop.study.step_commands import next_step
from rlx.runs.run import Run
from rlx.study.approval.approval import forgery_risks
from rlx.study.ledger import ledger as ledgers
from rlx.study.ledger.ledger import Anchor, Event
from rlx.study.ledger.state import State, replay
from rlx.study.moves import CLOCK_SKEW_SECONDS
from rlx.study.study_folder import Study

ANCHORS = "refs/rlx/ledgers"
CLOSE = 1e-9
_MISSING = "rows are gone from the ledger, or an earlier study had this name"


def verify(study: Study) -> dict[str, Any]:
    """Recompute everything; return how much was checked, and the problems."""
    state = study.state()
    checked: Counter[str] = Counter()
    problems = [f"ledger: {one}" for one in (*state.violations, *_without_intent(study, state)[0])]
    events = study.ledger.events()
    evidence = {one["run"] for one in events if one.kind == "weights"}
    for event in events:
        for what, says in _checks(study, state, event, evidence):
            checked[what] += 1
            problems += [says] if says else []
    for standing in state.candidates.values():
        checked["candidates"] += 1
        problems += altered_files(study, standing)
    problems += _pin_problems(study)
    checked["pinned evaluator"] += 1
    step = next_step(study)
    is_done = bool(problems) or step.move.kind in ("report", "done")
    command = f"rlx study audit {study.name}" if is_done else str(step.command)
    return {"study": study.name, "checked": dict(checked), "problems": problems, "command": command}


def integrity(study: Study, candidates: Collection[str] | None = None) -> list[str]:
    """Return what contradicts the ledger: its chain, its rows, its anchor, the score files and the proposals.

    It hashes no weights: `verify` does that too. With `candidates`, only their scores and weights are checked.
    """
    known = _anchor(study)
    found = ledgers.audit(study.ledger.path, anchors=[known] if known else [])
    if found.says:
        return [f"ledger: {found.says}"]
    events = study.ledger.events()
    state = replay(events)
    problems = [f"ledger: {one}" for one in (*state.violations, *_without_intent(study, state)[0])]
    for event in events:
        is_asked = candidates is None or event.get("candidate") in candidates
        if event.kind == "evaluated" and is_asked:
            problems.append(_score_problem(study, event))
        elif event.kind == "weights" and candidates is not None and is_asked:
            problems += [_weights_problem(study, event["run"], int(seed), sha) for seed, sha in
                         event["checkpoints"].items()]  # fmt: skip
    for standing in state.candidates.values():
        if candidates is None or standing.id in candidates:
            problems += altered_files(study, standing)
    return [problem for problem in problems if problem]


def _checks(study: Study, state: State, event: Event, runs: Collection[str]) -> Iterator[tuple[str, str]]:
    if event.kind == "evaluated":
        yield "scores", _score_problem(study, event)
    elif event.kind == "weights":
        for seed, sha256 in event["checkpoints"].items():
            yield "checkpoints", _weights_problem(study, event["run"], int(seed), sha256)
    elif event.kind == "intent" and event.get("run") in runs:
        yield "runs", _identity_problem(study, event)
    elif event.kind == "decided":
        yield "decisions", _decision_problem(study, state, event)


def _score_problem(study: Study, event: Event) -> str:
    """Recompute a score from its episodes."""
    path = study.folder / event["file"]
    try:
        content = path.read_bytes()
    except OSError:
        return f"{event['file']} is gone"
    if files.sha256(content) != event["sha256"]:
        return f"{event['file']} is not the file that was recorded"
    document = files.decode(content)
    if document.get("parameters") != event.get("parameters"):
        return f"{event['file']} counts {document.get('parameters')} parameters, the ledger {event.get('parameters')}"
    try:
        again = measure_scores.score_of(study, {**document, "figures": figures_again(document)})
    except EvidenceInvalid as error:
        return f"{event['file']}: {error.message}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return f"{event['file']} is not an evaluation ({type(error).__name__})"
    told = files.number(event["score"])
    is_same = math.isclose(again, told, rel_tol=CLOSE, abs_tol=CLOSE) or (again != again and told != told)
    return "" if is_same else f"{event['file']}: its episodes give {again:g}, the ledger says {told:g}"


def _weights_problem(study: Study, run: str, seed: int, sha256: str) -> str:
    try:
        now = checkpoint_hash(Run(study.root / "runs" / run).seed(seed))
    except (RlxError, OSError):
        return f"{run}: the checkpoint of seed {seed} is gone"
    return "" if now == sha256 else f"{run}: the checkpoint of seed {seed} is not the one that was recorded"


def _identity_problem(study: Study, event: Event) -> str:
    """Compare a run's commit, limits and candidate with its intent."""
    run = str(event["run"])
    try:
        is_same = study_job.identity_of(Run(study.root / "runs" / run)) == event.get("identity")
    except OSError:
        return f"{run}/metadata.json is gone"
    return "" if is_same else f"{run}/metadata.json is not what the run was made with"


def _decision_problem(study: Study, state: State, event: Event) -> str:
    """Judge again on the recorded scores, and compare p, effect and guardrails."""
    if event["decision"] == "debug":
        return ""
    from rlx.loop.study.judge_scores import judge_again  # with NumPy, which `rlx next` does without

    again, guards = judge_again(study, event)
    for name in ("p", "effect"):
        told, now = files.number(event[name]), getattr(again, name)
        if not (math.isclose(told, now, rel_tol=1e-6, abs_tol=CLOSE) or (told != told and now != now)):
            return f"{event['candidate']} was {event['decision']} with {name} {told:g}; its scores give {now:g}"
    for name, recorded in (event.get("guardrails") or {}).items():
        answer = guards[name].answer if name in guards else recorded["answer"]
        if answer != recorded["answer"]:
            return f"{event['candidate']}: `{name}` was recorded as {recorded['answer']}; its figures give {answer}"
    return ""


def _pin_problems(study: Study) -> list[str]:
    try:
        StudyEvaluator(study).verify()
    except RlxError as error:
        return [f"evaluator: {error.message}"]
    except OSError as error:
        return [f"evaluator: {error.strerror}: {error.filename}"]
    return []


def audit(study: Study, *, is_anchored: bool = False) -> dict[str, Any]:
    """Check the chain, that every row is legal, and that it contains the anchor; if asked, anchor it."""
    known = _anchor(study)
    found = ledgers.audit(study.ledger.path, anchors=[known] if known else [])
    state = replay(study.ledger.events()) if found.is_sound else None
    problems = [found.says] if found.says else []
    problems += [str(one) for one in state.violations] if state else []
    trained, never = _without_intent(study, state) if state else ([], [])
    problems += trained
    if is_anchored and not problems:
        known = _anchored(study)
    return {
        "study": study.name,
        "rows": found.rows,
        "head": found.head,
        "is_sound": not problems,
        "anchor": f"{ANCHORS}/{study.task_name}/{study.name} at row {known.rows}" if known else None,
        "problems": problems,
        "notes": [*_forgeable(state), *never, *(_backwards(study) if found.is_sound else ())],
        "command": str(next_step(study).command) if not problems else f"rlx study log {study.name}",
    }


def _anchored(study: Study) -> Anchor:
    try:
        return _put_anchor(study)
    except RlxError as error:
        hint = error.hint or "an anchor is an object of the project's git repository: git init, then the same again"
        raise Refused(f"the ledger's head was not anchored: {error.message}", hint=hint) from None


def _forgeable(state: State | None) -> tuple[str, ...]:
    """Return how the approval could have been forged."""
    approval = state.approval if state else None
    return forgery_risks(approval.level, human=approval.is_human) if approval else ()


def _backwards(study: Study) -> Iterator[str]:
    """Yield the rows dated long before the row above: a clock was set, and times prove nothing there."""
    events = study.ledger.events()
    for number, (above, below) in enumerate(pairwise(events), start=2):
        if below.time < above.time - CLOCK_SKEW_SECONDS:
            minutes = (above.time - below.time) / 60
            yield f"row {number} is dated {minutes:.0f} min before the row above it: a clock was set"


def _without_intent(study: Study, state: State) -> tuple[list[str], list[str]]:
    """Return the runs of this study that its ledger does not name: those that trained, and those that never could.

    A launch that died before its intent leaves a run that cannot train. If such a run did train, rows are missing.
    """
    known = {job.run for job in state.jobs.values()}
    trained, never = [], []
    for path in sorted((study.root / "runs").glob("[!.]*/metadata.json")):
        run = Run(path.parent)
        try:
            lineage = run.metadata.get("lineage") or {}
        except FileDamaged:  # its study is unknown; if the run is evidence, `verify` reports it
            continue
        is_own = (lineage.get("task"), lineage.get("study")) == (study.task_name, study.name)
        if not is_own or "job" not in lineage or run.name in known:
            continue
        if any(seed.events for seed in run.seeds):
            trained.append(f"{run.name} was trained for {study.name}, and no row names it: {_MISSING}")
        else:
            never.append(f"{run.name}: its launch died before the intent was written; nothing can train it")
    return trained, never


def _reference(study: Study) -> str:
    return f"{ANCHORS}/{study.task_name}/{study.name}"


def _anchor(study: Study) -> Anchor | None:
    text = external_programs.git("cat-file", "blob", _reference(study), folder=study.root)
    if not text:
        return None
    document = files.decode(text)
    return Anchor(str(document["head"]), int(document["rows"]))


def _put_anchor(study: Study) -> Anchor:
    """Store the ledger's head as a git object with a reference to it."""
    events = study.ledger.events()
    anchor = Anchor(events[-1].hash if events else ledgers.GENESIS, len(events))
    content = files.encode({"head": anchor.head, "rows": anchor.rows, "study": study.name})
    made = (
        external_programs.git_bytes("hash-object", "-w", "--stdin", folder=study.root, stdin=content).decode().strip()
    )
    external_programs.git_bytes("update-ref", _reference(study), made, folder=study.root)
    study.ledger.append("anchored", commit=made, head=anchor.head)
    return anchor
