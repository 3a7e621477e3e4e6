"""Ideas for the next candidate, with the evidence behind them, from what the head's runs and their reward show.

The findings are those of `diagnose`, `reflect` and `review`, without running any code, and the changes that they
suggest; a change that worked in an earlier study of the task is an idea too. Every idea with a change passes the same
checks as a proposal. Ideas are ranked: defects of the reward first, then by severity; failed ones come last.
The answer is stored in `ideas.json` in the study's folder, which may be deleted.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import NotFound, RlxError
from rlx.loop.study.agent.history import Lesson, lessons, repeats, short_key
from rlx.loop.study.step_commands import Step, situation_of
from rlx.runs.run import Run
from rlx.study.candidate import candidate as candidates
from rlx.study.candidate import candidate_experiment, path_patterns
from rlx.study.candidate.candidate import Candidate, Kind
from rlx.study.contract import contract as contracts
from rlx.study.situation import Situation, head_phase
from rlx.study.study_folder import Study

SCHEMA = 1
FILE = "ideas.json"
SHOWN = 3
FARMED = ("reward_hacking", "term_domination", "shaping_farmable", "alive_bonus_beats_finishing")
"""Rules about a term that pays for the wrong thing: the idea is to stop paying it."""
SPARSE = ("term_zero", "reward_sparse")
"""Rules about a reward that does not guide: the idea is to pay for progress."""
GUIDING = re.compile(r"shap|progress|potential|dense|distance|guide", re.I)
NAME = re.compile(r"[^A-Za-z0-9_.-]")
"""What the name of an idea, which is a word of a command, cannot have."""
PAY = 0.1
"""The weight of a guiding term that was not paid: small against a goal that pays 1."""
NEVER = ("algo.total_timesteps",)
"""Keys that a candidate cannot change: it must not train longer than the baseline."""


@dataclass(frozen=True)
class Idea:
    """One idea: a name to call it by, what to do, the evidence, and the proposal that it makes."""

    name: str
    text: str
    because: str
    kind: Kind
    changes: Mapping[str, Any]
    rank: float
    tried: str = ""
    """The earlier candidate that made the same change, and its result."""
    has_failed: bool = False

    @property
    def command(self) -> str:
        return f"rlx try --idea {self.name}"

    def proposal(self) -> dict[str, Any]:
        """Return the proposal of a candidate that tries this idea."""
        document = {"kind": self.kind, "hypothesis": f"{self.text}: {self.because}", "changes": dict(self.changes)}
        if self.kind in candidates.REWARD_KINDS:
            document["records"] = {"reflection": self.because}
        return document

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        shown = {"idea": self.text, "because": self.because, "propose": self.command}
        return {**shown, "tried": self.tried} if self.tried else shown


def best_ideas(study: Study, at: Situation) -> list[Idea]:
    """Return the ideas, the best first; they are computed once for a head, its runs and the candidates so far."""
    key = _cache_key(study, at)
    path = study.folder / FILE
    try:
        stored = files.read_json(path)
        if stored.get("key") == key:
            return [Idea(**document) for document in stored["ideas"]]
    except (RlxError, OSError, ValueError, KeyError, TypeError):
        pass  # the file is derived: it is computed again
    found = find_ideas(study, at)
    document = {
        "schema": SCHEMA,
        "key": key,
        "ideas": [{**asdict(idea), "changes": dict(idea.changes)} for idea in found],
    }
    with contextlib.suppress(OSError):  # a folder that cannot be written only costs time
        files.write_json(path, document)
    return found


def best_idea(study: Study, at: Situation, step: Step) -> str:
    """Return the name of the best idea that did not fail before, if the step asks for one."""
    if step.move.kind != "propose":
        return ""
    return next((idea.name for idea in best_ideas(study, at) if not idea.has_failed), "")


def find_idea(study: Study, name: str) -> Idea:
    """Return an idea by its name."""
    known = best_ideas(study, situation_of(study))
    for idea in known:
        if idea.name == name:
            return idea
    names = ", ".join(idea.name for idea in known) or "none"
    raise NotFound(f"there is no idea `{name}` now; there are: {names}", hint="rlx next")


def _cache_key(study: Study, at: Situation) -> str:
    """Return a hash of everything that ideas depend on; other studies count by the size of their ledgers."""
    runs = [str(job.run) for job in _head_jobs(at)]
    states = {name: standing.state for name, standing in at.state.candidates.items()}
    others = [path for path in study.folder.parent.glob("*/ledger.jsonl") if path.parent != study.folder]
    sizes = {path.parent.name: path.stat().st_size for path in others}
    return files.sha256(files.encode([at.state.contract, at.state.head, runs, states, sizes]))


def _head_jobs(at: Situation) -> list[Any]:
    """Return the jobs that trained the head: its fresh seeds if it has some, else those that it won with."""
    head = at.state.head
    return at.state.ended_jobs(head, head_phase(head)) or at.state.ended_jobs(head, "trial")


def find_ideas(study: Study, at: Situation) -> list[Idea]:
    """Look at the head's newest run and at earlier lessons; return the ideas that may be proposed, ranked."""
    jobs = _head_jobs(at)
    found: list[Idea] = []
    if jobs:
        run = Run(study.root / "runs" / str(jobs[-1].run))
        settled = candidate_experiment.changes_of(study.chain(at.state.head))
        found += [idea for idea in _from_findings(study, run) if idea.changes.keys().isdisjoint(settled)]
    known = lessons(study, at.state)
    found += _from_lessons(known)
    merged = [replace(idea, kind=_kind(study, idea)) for idea in _merged(found)]
    allowed = [_with_result(idea, known) for idea in merged if _is_allowed(study, at, idea)]
    return sorted(allowed, key=lambda idea: idea.rank)


def _from_findings(study: Study, run: Run) -> Iterator[Idea]:
    """Yield the ideas that the findings about a run suggest; a run that cannot be read suggests none."""
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.load_case import read_case
    from rlx.diagnose.reward_review.review import review_unplayed
    from rlx.diagnose.rule import run_rules
    from rlx.diagnose.rules import term_rules

    try:
        case = read_case(run)
        findings = [*diagnose(case).findings, *run_rules(term_rules(), case).findings]
        findings += review_unplayed(run, root=_code_folder(study, run)).findings
    except (RlxError, OSError):
        return
    arguments = argument_values(study, run)
    has_code = _may_edit_reward(study)
    for finding in findings_by_claim(findings):
        yield from _ideas_of(finding, arguments, has_code=has_code)


def findings_by_claim(findings: Sequence[Any]) -> list[Any]:
    """Return the findings without those that two tools found alike."""
    return list({(finding.rule, finding.term, finding.claim): finding for finding in findings}.values())


def _code_folder(study: Study, run: Run) -> Path:
    """Return the folder with the code that a run trained."""
    name = (run.metadata.get("lineage") or {}).get("worktree")
    folder = study.root / str(name)
    return folder if name and folder.is_dir() else study.root


def argument_values(study: Study, run: Run) -> dict[str, Any]:
    """Return the arguments of a run's environment and wrappers by dotted key; of a command, its own keys."""
    task = study.task()
    if task.adapter.kind == "command":
        return dict(task.adapter.defaults)
    env = run.config.get("env") or {}
    values = {f"env.kwargs.{name}": value for name, value in (env.get("kwargs") or {}).items()}
    for index, wrapper in enumerate(env.get("wrappers") or ()):
        for name, value in (wrapper.get("kwargs") or {}).items():
            values[f"env.wrappers.{index}.kwargs.{name}"] = value
    return values


def _may_edit_reward(study: Study) -> bool:
    contract, task = study.contract(), study.task()
    if contract.scope is None or "reward" not in task.surfaces:
        return False
    opened = contracts.open_places(contract.scope, task).paths
    files_of_reward = [path_patterns.split(path)[0] for path in task.surfaces["reward"].paths]
    return any(path_patterns.split(path)[0] in files_of_reward for path in opened)


def _ideas_of(finding: Any, arguments: Mapping[str, Any], *, has_code: bool) -> Iterator[Idea]:
    severity = {"high": 0.0, "medium": 1.0, "low": 2.0}[finding.severity]
    is_reward = finding.rule in (*FARMED, *SPARSE) or finding.rule.startswith(("reward_", "shaping_"))
    rank = severity - (1.75 if is_reward else 0.0)
    changes = list(_term_changes(finding, arguments)) or [dict(change) for change in finding.changes]
    for number, change in enumerate(changes, start=1):
        if any(key in NEVER for key in change):
            continue
        name = NAME.sub("_", f"{finding.rule}-{short_key(next(iter(change)))}")
        settings = ", ".join(f"set {short_key(key)} to {value}" for key, value in change.items())
        yield Idea(name, settings, finding.claim, "hyperparameter", change, rank + number - 1.5)
    if not changes and is_reward and has_code and finding.tries:
        yield Idea(finding.rule, finding.tries[0], finding.claim, "reward engineering", {}, rank + 0.5)


def _term_changes(finding: Any, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the change of an argument that pays or stops paying the term that a finding is about."""
    for key, value in arguments.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number:
            continue
        is_same_term = bool(finding.term) and short_key(key) == finding.term
        if finding.rule in FARMED and is_same_term and value != 0:
            yield {key: 0.0}
        elif finding.rule in SPARSE and value == 0 and (is_same_term or GUIDING.search(short_key(key))):
            yield {key: PAY}


def _from_lessons(known: Sequence[Lesson]) -> Iterator[Idea]:
    """Yield the changes that worked in an earlier study of the task."""
    for lesson in known:
        if lesson.study and lesson.changes and lesson.state in ("advanced", "confirmed"):
            because = f"{lesson.name}: {lesson.learned}"
            yield Idea(
                f"{lesson.study}-{lesson.candidate}", lesson.text, because, "hyperparameter", lesson.changes, -2.0
            )


def _merged(found: Sequence[Idea]) -> list[Idea]:
    """Return one idea per change; each further finding that suggests it makes it rank higher."""
    by_change: dict[str, Idea] = {}
    for idea in sorted(found, key=lambda idea: idea.rank):
        key = ",".join(sorted(idea.changes)) or idea.name
        first = by_change.get(key)
        if first is None:
            by_change[key] = idea
        elif first.changes == idea.changes:
            by_change[key] = replace(first, rank=first.rank - 0.5)
    return list(by_change.values())


def _kind(study: Study, idea: Idea) -> Kind:
    """Return the kind of an idea's change: some surfaces belong to kinds of their own."""
    surfaces = study.task().surfaces
    for surface, kinds in candidates.KINDS_OF.items():
        keys = surfaces[surface].keys if surface in surfaces else ()
        if any(path_patterns.any_covers_key(keys, key) for key in idea.changes):
            return kinds[0]
    return idea.kind


def _is_allowed(study: Study, at: Situation, idea: Idea) -> bool:
    """Whether a proposal of an idea would pass, as far as that shows without its code."""
    return not idea.changes or not any(_problems(study, at, idea))


def _problems(study: Study, at: Situation, idea: Idea) -> tuple[Any, ...]:
    from rlx.launch.study_jobs.candidate_check import code_by_candidate, not_withdrawn
    from rlx.study.task import infer_task

    task = study.task()
    try:
        candidate = as_candidate(study, at, idea)
        base = infer_task.baseline_values(task, study.root)
        code = code_by_candidate(study, candidate)
        return candidates.problems(candidate, at.contract, task, not_withdrawn(study), base=base, code=code)
    except (RlxError, ValueError):
        return ("it cannot be proposed",)


def as_candidate(study: Study, at: Situation, idea: Idea) -> Candidate:
    """Return the candidate that an idea would become."""
    identity = candidates.next_id(list(at.state.candidates))
    return Candidate.model_validate({"id": identity, "builds_on": at.state.head, **idea.proposal()})


def _with_result(idea: Idea, known: Sequence[Lesson]) -> Idea:
    """Return an idea with what became of the same change before; one that failed comes last."""
    earlier = repeats(idea.changes, known)
    if not earlier:
        return idea
    last = earlier[-1]
    is_failed = last.state not in ("advanced", "confirmed")
    tried = f"{last.name}: {last.learned}"
    return replace(idea, tried=tried, has_failed=is_failed, rank=idea.rank + 5.0 * is_failed)
