"""Tools that judge and explain: compare, settle, diagnose, reflect."""

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from rlx.errors import EvidenceInvalid, JobFailed, NotFound, Refused, RlxError, UsageError
from rlx.hosts.cli.document import document, option, run_name
from rlx.hosts.cli.format import guardrail_text
from rlx.hosts.cli.reflect import MARKS
from rlx.hosts.mcp.answer import Answer, AnswerPage, Commands, Foreign, answer, foreign, page
from rlx.hosts.mcp.call import in_thread, tool
from rlx.hosts.mcp.run_tools import READS, Cursor, RunName, refuse_in_study
from rlx.runs import project

KEEPS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
Verdict = Literal["better", "worse", "inconclusive", "invalid"]
Figure = int | float | str | None
"""A number; NaN and the infinities are words."""


class JudgedRun(BaseModel):
    """One candidate against the baseline; quote `line` without changes."""

    run: str
    verdict: Verdict
    line: str
    reason: str
    settle: str | None = None
    guardrails: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    commands: Commands = Field(default_factory=list)


class Comparison(AnswerPage):
    baseline: str
    candidates: list[JudgedRun]


class SettleAnswer(Answer):
    """The state of a `settle`. While `is_running`, call again; the verdict is then that of a look now."""

    baseline: str
    candidate: str
    is_running: bool
    verdict: Verdict | None = None
    line: str | None = None
    stopped: str | None = Field(None, description="why it ended: decided, futile, spent, deadline, invalid, stuck")
    seeds: dict[str, int] = Field(default_factory=dict)
    log: Foreign | None = None


class Found(BaseModel):
    """One finding: the claim, its severity, and what to try."""

    rule: str
    severity: str
    claim: str
    tries: list[str] = Field(default_factory=list)


class DiagnosisPage(AnswerPage):
    run: str
    health: str
    what: str
    findings: list[Found]
    could_not_look: int = Field(0, description="rules whose metrics were not logged: this does not mean healthy")
    missing: list[str] = Field(default_factory=list)


class Term(BaseModel):
    """One reward term over training."""

    name: str
    share: Figure
    mean: Figure = None
    correlation_with_task: Figure = None
    marks: list[str] = Field(default_factory=list)


class Reflection(AnswerPage):
    run: str
    hacking_risk: str
    task_metric: str | None
    terms: list[Term]
    findings: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    file: str | None = None


def add(server: MCPServer) -> None:
    """Register the tools that judge and explain."""
    for function in (compare, settle, reflect):
        server.tool(annotations=KEEPS)(function)
    server.tool(annotations=READS)(diagnose)


@tool
async def compare(
    baseline: RunName,
    candidates: Annotated[list[str], Field(description="runs to judge against it")],
    min_effect: float = 0.0,
    guards: Annotated[list[str], Field(description="METRIC[:MARGIN[:lower]] each")] = [],  # noqa: B006
    cursor: Cursor = None,
) -> Comparison:
    """Decide whether B is better than A, by training seed. A look is recorded, so asking again changes nothing."""
    options = ["--min-effect", repr(min_effect), *(word for guard in guards for word in ("--guard", guard))]
    data = await in_thread(document, "compare", *options, "--", run_name(baseline), *map(run_name, candidates))
    rows = [{**row, "guardrails": guardrail_texts(row)} for row in data["candidates"]]
    following = next((command for row in rows for command in row["commands"]), None)
    return page(Comparison, "candidates", rows, cursor, {**data, "next": following})


def guardrail_texts(data: dict[str, Any]) -> dict[str, str]:
    """Return the guardrails of a verdict as texts."""
    return {name: guardrail_text(guardrail) for name, guardrail in data["guardrails"].items()}


@tool
async def settle(
    baseline: Annotated[str, Field(description="a run, a YAML config or catalog:NAME")],
    candidate: Annotated[str, Field(description="the same")],
    max_seeds: int = 24,
    deadline: Annotated[str, Field(description="stop after this long: 90m, 2h")] = "2h",
    again: Annotated[bool, Field(description="continue after it ended without an answer")] = False,
) -> SettleAnswer:
    """Train and compare until it is decided whether B is better than A; runs in the background, returns at once."""
    await in_thread(refuse_in_study, "settle")
    if baseline.startswith("-") or candidate.startswith("-"):
        raise UsageError("a run or a config does not begin with a dash", hint="rlx ls")
    words = ["settle", "--max-seeds", str(max_seeds), "--deadline", deadline, baseline, candidate]
    data = await in_thread(_settled, words, again)
    return answer(SettleAnswer, {**data, "baseline": baseline, "candidate": candidate})


def _settled(words: list[str], again: bool) -> dict[str, Any]:
    from rlx.launch import background_command

    command = background_command.start(words, root=project.root(), again=again)
    result = command.result()
    if result is None:
        if not command.is_running:
            raise JobFailed("settle ended without an answer", hint="call settle with again=true")
        log = ""
        if command.log.is_file():
            log = command.log.read_text(encoding="utf-8", errors="replace")
        return {"is_running": True, "exit_code": 1, "log": foreign(log, chars=600)}
    if "error" in result:
        command.forget()  # once the cause is fixed, the same call tries again
        raise printed_error(result)
    code = {"invalid": 6, "stuck": 5, "crashing": 5}.get(result["stopped"], 0)
    following = f"rlx compare {result['baseline']} {result['run']}"
    return {**result, "is_running": False, "exit_code": code, "next": following}


def printed_error(data: dict[str, Any]) -> RlxError:
    """Return the error that a command printed as JSON."""
    if data.get("kind") == "Refused":
        return Refused(str(data["error"]), hint=data.get("hint"), reasons=data.get("reasons") or ())
    kinds = {kind.__name__: kind for kind in (UsageError, NotFound, EvidenceInvalid, JobFailed)}
    return kinds.get(str(data.get("kind")), RlxError)(str(data["error"]), hint=data.get("hint"))


@tool
async def diagnose(run: RunName, cursor: Cursor = None) -> DiagnosisPage:
    """List the failures of a run, their causes and what to try: findings with evidence, the likely cause first."""
    data = await in_thread(document, "diagnose", "--", run_name(run))
    rows = [{**finding, "tries": finding["try"]} for finding in data["findings"]]
    return page(DiagnosisPage, "findings", rows, cursor, {**data, "could_not_look": len(data["blind"])})


@tool
async def reflect(
    run: RunName,
    against: Annotated[str | None, Field(description="also show what changed since this run")] = None,
    cursor: Cursor = None,
) -> Reflection:
    """Show what each reward term did over training, and whether one is exploited while the task suffers."""
    options = option("--against", against and run_name(against))
    data = await in_thread(document, "reflect", *options, "--", run_name(run))
    rows = []
    for term in sorted(data["terms"], key=lambda term: -float(term["share"])):
        marks = [mark for key, mark in MARKS.items() if term[key]]
        rows.append({**term, "correlation_with_task": term["correlation"], "marks": marks})
    top = {
        **data,
        "task_metric": (data["task"] or {}).get("metric"),
        "findings": [f"{finding['rule']}: {finding['claim']}" for finding in data["findings"]],
    }
    return page(Reflection, "terms", rows, cursor, top)
