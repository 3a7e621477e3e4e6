"""Tools of a governed study: status, next, propose, check, launch, verdict, decide, report. None approves."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from rlx.hosts.cli.words import guarded
from rlx.hosts.mcp.answer import Answer, Command, Page, page, shortened
from rlx.hosts.mcp.call import document, in_thread, tool
from rlx.hosts.mcp.evidence_tools import KEEPS, Figure, told_error
from rlx.hosts.mcp.run_tools import MOST_SECONDS, READS, STARTS, Cursor
from rlx.runs import project

LAUNCHES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
CandidateId = Annotated[str, Field(description="a candidate's id, such as c001")]
StudyName = Annotated[str | None, Field(description="another study than the one in use")]
Phase = Literal["smoke", "baseline", "trial", "promotion", "confirmation"]


class Tried(BaseModel):
    """A candidate and what came of it."""

    candidate: str
    kind: str
    state: str
    standing: str = ""
    effect: Figure = None
    against: str = ""
    p: Figure = None
    hypothesis: str = ""
    says: str = ""


class Choice(BaseModel):
    action: str
    command: Command
    why: str = ""


class NextStep(Page):
    """What to do: `action` is recommended, `also` are the other legal ones; `next` is the command to type."""

    study: str
    task: str
    status: str
    action: str
    why: str
    also: list[Choice] = Field(default_factory=list)
    head: str
    incumbent: str | None = None
    allowed: dict[str, list[str]] = Field(default_factory=dict)
    left: dict[str, Figure] = Field(default_factory=dict)
    findings: list[str] = Field(default_factory=list)
    recent: list[Tried] = Field(default_factory=list)


class StudyStatus(Page):
    study: str
    task: str
    status: str
    missing: list[str] = Field(default_factory=list)
    approval: str
    head: str
    incumbent: str | None = None
    spent: dict[str, Figure] = Field(default_factory=dict)
    left: dict[str, Figure] = Field(default_factory=dict)
    jobs: list[dict[str, Any]] = Field(default_factory=list)
    violations: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    candidates: list[Tried] = Field(default_factory=list)


class Proposed(Answer):
    """The new candidate; code is changed in its `worktree` only, then `check` it."""

    candidate: str
    kind: str
    builds_on: str
    worktree: str | None = None
    notes: list[str] = Field(default_factory=list)


class Checked(Answer):
    """A sound candidate; `plan` goes into `launch`, and is stale after any change."""

    candidate: str
    plan: str
    changes: dict[str, Any] = Field(default_factory=dict)
    files: list[str] = Field(default_factory=list)
    lines: int = 0


class Launched(Answer):
    """The job that was started, or that was there already (`is_known`); `wait` for `run`."""

    candidate: str
    phase: str
    run: str | None
    seeds: list[int]
    reserve: dict[str, Figure]
    is_known: bool = False


class StudyVerdict(Answer):
    """Where a candidate stands; with `decide` also what the rule decided. While `is_running`, call again."""

    candidate: str
    is_running: bool = False
    verdict: str | None = None
    decision: str | None = None
    study_decision: str | None = None
    recorded: str | None = None
    against: str | None = None
    test: str | None = None
    metric: str | None = None
    effect: Figure = None
    interval: list[Figure] = Field(default_factory=list)
    p: Figure = None
    n: list[int] = Field(default_factory=list)
    reason: str | None = None
    guardrails: dict[str, str] = Field(default_factory=dict)
    objections: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    level: str | None = None
    approval: str | None = None
    enforced: str | None = None


class Report(Page):
    study: str
    outcome: str
    head: str
    incumbent: str | None = None
    level: str
    approval: str
    enforced: str
    spent: dict[str, Figure] = Field(default_factory=dict)
    file: str
    candidates: list[Tried] = Field(default_factory=list)


def add(server: MCPServer) -> None:
    """Register the tools of a study."""
    server.tool(annotations=READS)(status)
    server.tool(name="next", annotations=READS)(next_step)
    server.tool(annotations=STARTS)(propose)
    server.tool(annotations=KEEPS)(check)
    server.tool(annotations=LAUNCHES)(launch)
    server.tool(annotations=KEEPS)(verdict)
    server.tool(annotations=KEEPS)(decide)
    server.tool(annotations=KEEPS)(report)


def _chosen(study: str | None) -> list[str]:
    return ["--study", study] if study else []


@tool
async def status(study: StudyName = None, cursor: Cursor = None) -> StudyStatus:
    """Where a study stands: approval, budget, head and incumbent, open jobs, every candidate."""
    found = await in_thread(document, "status", "--", *([study] if study else []))
    top = {key: found[key] for key in StudyStatus.model_fields if key in found and key != "candidates"}
    rows = [_tried(one) for one in reversed(found["candidates"])]
    return page(
        rows,
        cursor,
        lambda shown: StudyStatus(**top, next=found["command"], candidates=[Tried(**row) for row in shown]),
    )


@tool
async def next_step(study: StudyName = None, cursor: Cursor = None) -> NextStep:
    """What to do next, from the state on disk alone: start here, and after every step ask again."""
    found = await in_thread(document, "next", *_chosen(study))
    top = {key: found[key] for key in NextStep.model_fields if key in found and key not in ("recent", "also")}
    also = [Choice(**{key: str(one.get(key) or "") for key in Choice.model_fields}) for one in found["also"]]
    rows = [_tried(one) for one in reversed(found["recent"])]
    return page(
        rows,
        cursor,
        lambda shown: NextStep(**top, also=also, next=found["command"], recent=[Tried(**row) for row in shown]),
    )


def _tried(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one.get(key) for key in Tried.model_fields if one.get(key) is not None}


@tool
async def propose(
    kind: Annotated[str, Field(description="the kind of change; rlx://docs/candidates lists them")],
    hypothesis: Annotated[str, Field(description="what was seen, the mechanism, what should change")],
    changes: Annotated[dict[str, Any], Field(description="config keys with their new values")] = {},  # noqa: B006
    records: Annotated[dict[str, str], Field(description="what the kind asks for")] = {},  # noqa: B006
    predicts: Annotated[float | None, Field(description="expected change of the metric")] = None,
    study: StudyName = None,
) -> Proposed:
    """Propose one bounded change with a hypothesis; duplicates and seed-only changes are refused."""
    proposal: dict[str, Any] = {"kind": kind, "hypothesis": hypothesis, "changes": changes, "records": records}
    if predicts is not None:
        proposal["predicts"] = predicts
    found = await in_thread(_propose, proposal, study)
    top = {key: found[key] for key in Proposed.model_fields if key in found}
    return shortened(Proposed(**top, next=found["command"]))


def _propose(proposal: dict[str, Any], study: str | None) -> dict[str, Any]:
    from rlx.loop.proposals import propose as write
    from rlx.study.study import find

    return write(find(project.root(), study), proposal)


@tool
async def check(candidate: CandidateId, study: StudyName = None) -> Checked:
    """Check a candidate's records, keys and real diff; returns the plan hash that `launch` must name."""
    found = await in_thread(document, "check", "candidate", *_chosen(study), "--", candidate)
    top = {key: found[key] for key in Checked.model_fields if key in found}
    return shortened(Checked(**top, next=found["command"]))


@tool
async def launch(
    candidate: CandidateId,
    plan: Annotated[str | None, Field(description="what `check` returned")] = None,
    phase: Phase = "trial",
    dry_run: bool = False,
    study: StudyName = None,
) -> Launched:
    """Start a checked candidate through the one door and return at once; launching what runs names that run."""
    asked = ["--phase", phase, *(["--plan", plan] if plan else []), *(["--dry-run"] if dry_run else [])]
    found = await in_thread(document, "launch", *asked, *_chosen(study), "--", candidate)
    return shortened(Launched(**{key: found[key] for key in Launched.model_fields if key in found}))


@tool
async def verdict(candidate: CandidateId, ctx: Context, study: StudyName = None) -> StudyVerdict:
    """Judge a candidate on what is trained, measuring what is not measured yet; decides nothing."""
    return await _judged("verdict", candidate, study, ctx)


@tool
async def decide(candidate: CandidateId, ctx: Context, study: StudyName = None) -> StudyVerdict:
    """Let the contract's rule decide and write it into the ledger; the decision is the rule's, not the caller's."""
    return await _judged("decide", candidate, study, ctx)


async def _judged(verb: str, candidate: str, study: str | None, ctx: Context) -> StudyVerdict:
    """Measure in a process of its own, which may take longer than a call; the same call finds it again."""
    from rlx.launch import errand

    words = [verb, *_chosen(study), "--", candidate]
    errant = await in_thread(errand.start, words, root=project.root())
    begun = time.monotonic()
    while await in_thread(lambda: errant.is_running) and (spent := time.monotonic() - begun) < MOST_SECONDS - 5:
        await ctx.report_progress(spent, None, f"measuring {candidate[:40]}")
        await anyio.sleep(0.3)
    found = await in_thread(errant.result)
    if found is None and errant.is_running:
        return StudyVerdict(candidate=candidate, is_running=True, exit_code=1, next=f"rlx {verb} {candidate}")
    await in_thread(errant.forget)
    if found is None or "error" in found:
        raise told_error(found or {"error": f"rlx {verb} {candidate} ended without a word", "hint": "rlx doctor"})
    guards = {name: guarded(one) for name, one in found["guardrails"].items()}
    top = {key: found[key] for key in StudyVerdict.model_fields if key in found and key != "guardrails"}
    return shortened(StudyVerdict(**top, guardrails=guards, next=found["command"]))


@tool
async def report(study: StudyName = None, cursor: Cursor = None) -> Report:
    """Write the study's report and return its outcome; quote its figures, with their levels."""
    found = await in_thread(document, "study", "report", "--", *([study] if study else []))
    top = {key: found[key] for key in Report.model_fields if key in found and key != "candidates"}
    rows = [_tried(one) for one in reversed(found["candidates"])]
    return page(
        rows,
        cursor,
        lambda shown: Report(**top, next=found["command"], candidates=[Tried(**row) for row in shown]),
    )
