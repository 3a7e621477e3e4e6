"""Tools of a study: status, next, try, propose, check, launch, verdict, decide, report, schema. None approves."""

import shlex
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from rlx import files
from rlx.command import Command as CommandLine
from rlx.command import rlx
from rlx.errors import UsageError
from rlx.hosts.cli.arguments import find_study
from rlx.hosts.cli.document import document, option
from rlx.hosts.cli.next import short_answer
from rlx.hosts.mcp.answer import Answer, AnswerPage, Command, PageType, answer, page
from rlx.hosts.mcp.call import in_thread, tool
from rlx.hosts.mcp.evidence_tools import KEEPS, Figure, guardrail_texts, printed_error
from rlx.hosts.mcp.run_tools import MOST_SECONDS, READS, STARTS, Cursor
from rlx.runs import project
from rlx.study.candidate.candidate import Kind

LAUNCHES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
CandidateId = Annotated[str, Field(description="the id of a candidate, such as c001")]
StudyName = Annotated[str | None, Field(description="a study (default: the active one)")]
Phase = Literal["smoke", "baseline", "trial", "promotion", "confirmation"]
TRY_SECONDS = 30 * 86_400
"""How long the background process of a try goes on: its seeds have limits of their own."""
Idea = Annotated[str | None, Field(description="try this idea, by its name in `next`")]
KindOfChange = Annotated[Kind | None, Field(description="the kind of change; `schema` describes each")]
Hypothesis = Annotated[str, Field(description="the observation, the mechanism, the expected change")]
Changes = Annotated[dict[str, Any], Field(description="dotted config keys with new values; none: a code change")]
KindRecords = Annotated[dict[str, str], Field(description="the records that the kind needs")]


class Tried(BaseModel):
    """A candidate and its result."""

    candidate: str
    kind: str
    state: str
    standing: str = ""
    effect: Figure = None
    against: str = ""
    p: Figure = None
    hypothesis: str = ""
    says: str = ""


class LegalAction(BaseModel):
    action: str
    command: Command
    why: str = ""


class NextInShort(Answer):
    """Scores, the best ideas, what was tried, and the command; `person`: a person has to type it."""

    model_config = ConfigDict(extra="allow")

    study: str
    action: str
    why: str
    person: bool = False


class ProposalFields(BaseModel):
    """One bounded change, as candidate.json has it."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    hypothesis: Hypothesis
    changes: Changes = Field(default_factory=dict)
    records: KindRecords = Field(default_factory=dict)
    predicts: float | None = None


class TryAnswer(Answer):
    """What was measured and decided. While `is_running`, call again with `candidate`."""

    model_config = ConfigDict(extra="allow")

    candidate: str
    decision: str = ""
    is_running: bool = False
    why: str = ""


class NextStep(AnswerPage):
    """What to do: `action` is recommended, `also` lists the other legal actions, `next` is the command to run."""

    study: str
    task: str
    status: str
    action: str
    why: str
    also: list[LegalAction] = Field(default_factory=list)
    head: str
    incumbent: str | None = None
    allowed: dict[str, list[str]] = Field(default_factory=dict)
    left: dict[str, Figure] = Field(default_factory=dict)
    findings: list[str] = Field(default_factory=list)
    recent: list[Tried] = Field(default_factory=list)


class StudyStatus(AnswerPage):
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
    """The new candidate. Change code only in its `worktree`, then `check` it."""

    candidate: str
    kind: str
    builds_on: str
    worktree: str | None = None
    notes: list[str] = Field(default_factory=list)


class Checked(Answer):
    """A candidate that passed. `launch` needs its `plan`, which any change makes invalid."""

    candidate: str
    plan: str
    changes: dict[str, Any] = Field(default_factory=dict)
    files: list[str] = Field(default_factory=list)
    lines: int = 0


class Launched(Answer):
    """The started job, or the one that is already running (`is_known`); `wait` for `run`."""

    candidate: str
    phase: str
    run: str | None
    seeds: list[int]
    reserve: dict[str, Figure]
    is_known: bool = False


class SchemaAnswer(Answer):
    """What a candidate of one kind needs."""

    kind: str
    kinds: list[str] = Field(default_factory=list)
    records: dict[str, str] = Field(default_factory=dict)
    example: dict[str, Any] = Field(default_factory=dict)


class StudyVerdict(Answer):
    """The verdict on a candidate; with `decide` also the decision. While `is_running`, call again."""

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


class Report(AnswerPage):
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
    server.tool(annotations=READS)(schema)
    server.tool(name="try", annotations=STARTS)(try_idea)
    server.tool(annotations=STARTS)(propose)
    server.tool(annotations=KEEPS)(withdraw)
    server.tool(annotations=LAUNCHES)(launch)
    for function in (check, verdict, decide, report):
        server.tool(annotations=KEEPS)(function)


def _study_page(model: type[PageType], key: str, data: Mapping[str, Any], cursor: str | None) -> PageType:
    """Build a page of candidates, the newest first."""
    rows = []
    for candidate in reversed(data[key]):
        rows.append({name: value for name, value in candidate.items() if value is not None})
    return page(model, key, rows, cursor, _with_next(data))


@tool
async def status(study: StudyName = None, cursor: Cursor = None) -> StudyStatus:
    """Show the state of a study: approval, budget, head and incumbent, open jobs, every candidate."""
    data = await in_thread(document, "status", "--", *filter(None, [study]))
    return _study_page(StudyStatus, "candidates", data, cursor)


@tool
async def next_step(
    full: Annotated[bool, Field(description="also candidates, scope and other commands")] = False,
    study: StudyName = None,
    cursor: Cursor = None,
) -> NextInShort:
    """Return what to do next: scores, ideas with evidence, what was tried, the command. Start here."""
    if not full:
        return await in_thread(_next_in_short, study)
    data = await in_thread(document, "next", "--full", *option("--study", study))
    also = [
        {**action, "command": action.get("command") or "", "why": action.get("why") or ""} for action in data["also"]
    ]
    whole = _study_page(NextStep, "recent", {**data, "also": also}, cursor)
    return NextInShort.model_validate(whole.model_dump())


def _next_in_short(study: str | None) -> NextInShort:
    """Return the short answer with a command that has a tool, or with the person who has to type it."""
    data, command = short_answer(find_study(study))
    printed: dict[str, Any] = files.decode(files.encode(data))  # numbers as JSON can hold them
    shown = {key: value for key, value in printed.items() if key not in ("command", "also", "status")}
    same_tool = tool_command(command)
    if same_tool is None:
        return NextInShort.model_validate({**shown, "person": True, "why": f"{data['why']}; a person types: {command}"})
    return NextInShort.model_validate({**shown, "next": str(same_tool)})


def _with_next(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with `next`: its command if a tool can run it, else `rlx next`, which says what to do."""
    command = tool_command(CommandLine(tuple(shlex.split(data["command"]))))
    return {**data, "next": str(command or rlx("next"))}


def tool_command(command: CommandLine) -> CommandLine | None:
    """Return the command that a tool carries out; None if only a person can type it."""
    if command.argv[:3] == ("rlx", "study", "baseline"):
        return rlx("launch", "baseline", "--phase", "baseline")
    if command.argv[:3] == ("rlx", "study", "report"):
        return command
    if command.argv[0] == "rlx" and command.argv[1] in TOOL_VERBS:
        return command
    return None


TOOL_VERBS = (
    "ls", "info", "wait", "logs", "diagnose", "reflect", "status", "next", "try", "propose", "check", "launch",
    "verdict", "decide", "schema",
)  # fmt: skip
"""The verbs of study commands that are tools of the same name."""


@tool
async def schema(kind: KindOfChange = None) -> SchemaAnswer:
    """Describe a candidate: its fields, and the records that each kind of change needs, with an example."""
    data = await in_thread(document, "schema", "candidate", "--kind", kind or "hyperparameter")
    return answer(SchemaAnswer, data)


@tool
async def try_idea(
    ctx: Context,
    idea: Idea = None,
    proposal: ProposalFields | None = None,
    candidate: Annotated[str | None, Field(description="go on with this candidate, such as c001")] = None,
    claim: Annotated[bool, Field(description="claim the head on fresh seeds")] = False,
    study: StudyName = None,
) -> TryAnswer:
    """Try one idea, proposal or candidate: check, train, measure and decide. While `is_running`, call again."""
    if not candidate and not claim:
        candidate, to_edit = await in_thread(_candidate_of, proposal, idea, study)
        if to_edit:
            return TryAnswer.model_validate(_with_next(to_edit))
    words = ["try", "--seconds", str(TRY_SECONDS), *option("--study", study)]
    words += ["--claim"] if claim else ["--", str(candidate)]
    name = "the head" if claim else str(candidate)
    data = await _in_background(words, f"training {name[:40]}", ctx)
    if data is None:
        again = "rlx try --claim" if claim else f"rlx try {candidate}"
        return TryAnswer(candidate=name, is_running=True, why="it trains or is measured", exit_code=1, next=again)
    shown = {key: value for key, value in _with_next(data).items() if key not in ("schema", "command")}
    return TryAnswer.model_validate(shown)


def _candidate_of(
    proposal: ProposalFields | None, idea: str | None, study: str | None
) -> tuple[str, dict[str, Any] | None]:
    """Return the candidate of a proposal, old or new; for a code change, also the answer that names its files."""
    from rlx.loop.study.agent.ideas import find_idea
    from rlx.loop.study.agent.try_candidate import try_proposal

    found = find_study(study)
    if idea:
        change = find_idea(found, idea).proposal()
    elif proposal is not None:
        change = proposal.model_dump(mode="json", exclude_none=True)
    else:
        raise UsageError("name an idea, a proposal or a candidate", hint="rlx next lists ideas")
    data = try_proposal(found, change, seconds=0.0, say=lambda text: None)
    has_files = bool(data["worktree"])
    return data["candidate"], data if has_files else None


@tool
async def propose(
    kind: Annotated[Kind, Field(description="the kind of change; `schema` describes each")],
    hypothesis: Hypothesis,
    changes: Changes = {},  # noqa: B006
    records: KindRecords = {},  # noqa: B006
    predicts: Annotated[float | None, Field(description="expected change of the metric")] = None,
    study: StudyName = None,
) -> Proposed:
    """Propose one bounded change with a hypothesis. Duplicates and seed-only changes are refused."""
    proposal: dict[str, Any] = {"kind": kind, "hypothesis": hypothesis, "changes": changes, "records": records}
    if predicts is not None:
        proposal["predicts"] = predicts
    data = await in_thread(_propose, proposal, study)
    return answer(Proposed, _with_next(data))


def _propose(proposal: dict[str, Any], study: str | None) -> dict[str, Any]:
    from rlx.loop.study import propose

    return propose.propose(find_study(study), proposal)


@tool
async def withdraw(candidate: CandidateId, why: str = "", study: StudyName = None) -> Proposed:
    """Withdraw a candidate that was not tried."""
    words = ["--withdraw", candidate, "--why", why or "withdrawn over MCP", *option("--study", study)]
    data = await in_thread(document, "propose", *words)
    return answer(Proposed, {**_with_next(data), "kind": "withdrawn", "builds_on": ""})


@tool
async def check(candidate: CandidateId, study: StudyName = None) -> Checked:
    """Check a candidate's records, keys and real diff; returns the plan hash that `launch` needs."""
    data = await in_thread(document, "check", "candidate", *option("--study", study), "--", candidate)
    return answer(Checked, _with_next(data))


@tool
async def launch(
    candidate: CandidateId,
    plan: Annotated[str | None, Field(description="the plan hash from `check`")] = None,
    phase: Phase = "trial",
    dry_run: bool = False,
    study: StudyName = None,
) -> Launched:
    """Start a checked candidate and return at once; if it is already running, return that run."""
    options = ["--phase", phase, *option("--plan", plan), *option("--study", study)]
    if dry_run:
        options.append("--dry-run")
    return answer(Launched, await in_thread(document, "launch", *options, "--", candidate))


@tool
async def verdict(candidate: CandidateId, ctx: Context, study: StudyName = None) -> StudyVerdict:
    """Judge a candidate on its trained seeds; measures seeds that have no score yet, and decides nothing."""
    return await _judge("verdict", candidate, study, ctx)


@tool
async def decide(candidate: CandidateId, ctx: Context, study: StudyName = None) -> StudyVerdict:
    """Apply the contract's decision rule and write the decision to the ledger. The rule decides, not the caller."""
    return await _judge("decide", candidate, study, ctx)


async def _judge(verb: str, candidate: str, study: str | None, ctx: Context) -> StudyVerdict:
    """Measure in a background process, which may take longer than a call; the same call finds it again."""
    data = await _in_background([verb, *option("--study", study), "--", candidate], f"measuring {candidate[:40]}", ctx)
    if data is None:
        return StudyVerdict(candidate=candidate, is_running=True, exit_code=1, next=f"rlx {verb} {candidate}")
    return answer(StudyVerdict, {**_with_next(data), "guardrails": guardrail_texts(data)})


async def _in_background(words: list[str], progress: str, ctx: Context) -> dict[str, Any] | None:
    """Run a command in a background process and return its answer; None if it goes on, and the same call finds it."""
    from rlx.launch import background_command

    command = await in_thread(background_command.start, words, root=project.root())
    began = time.monotonic()
    while await in_thread(lambda: command.is_running) and (spent := time.monotonic() - began) < MOST_SECONDS - 5:
        await ctx.report_progress(spent, None, progress)
        await anyio.sleep(0.3)
    data = await in_thread(command.result)
    if data is None and command.is_running:
        return None
    await in_thread(command.forget)
    if data is None:
        data = {"error": f"rlx {' '.join(words)[:80]} ended without an answer", "hint": "rlx doctor"}
    if "error" in data:
        raise printed_error(data)
    return data


@tool
async def report(study: StudyName = None, cursor: Cursor = None) -> Report:
    """Write the study's report and return its outcome; quote its numbers with their levels."""
    data = await in_thread(document, "study", "report", "--", *filter(None, [study]))
    return _study_page(Report, "candidates", data, cursor)
