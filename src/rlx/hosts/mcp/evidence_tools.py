"""Tools that judge and explain: compare, settle, diagnose, reflect."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from rlx.errors import EvidenceInvalid, JobFailed, NotFound, Refused, RlxError, UsageError
from rlx.hosts.cli.words import guarded
from rlx.hosts.mcp.answer import Answer, Commands, Foreign, Page, foreign, page, shortened
from rlx.hosts.mcp.call import document, in_thread, named, tool
from rlx.hosts.mcp.run_tools import READS, Cursor, RunName, refuse_in_study
from rlx.runs import project

KEEPS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
Verdict = Literal["better", "worse", "inconclusive", "invalid"]
Figure = int | float | str | None
"""A number; NaN and the infinities are words."""


class Judged(BaseModel):
    """One candidate against the baseline; quote `line` as it is."""

    run: str
    verdict: Verdict
    line: str
    reason: str
    settle: str | None = None
    guardrails: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    commands: Commands = Field(default_factory=list)


class Comparison(Page):
    baseline: str
    candidates: list[Judged]


class Settlement(Answer):
    """How a settling stands: while `is_running`, call again; the verdict then is what a look now would say."""

    baseline: str
    candidate: str
    is_running: bool
    verdict: Verdict | None = None
    line: str | None = None
    stopped: str | None = Field(None, description="why it ended: decided, futile, spent, deadline, invalid, stuck")
    seeds: dict[str, int] = Field(default_factory=dict)
    log: Foreign | None = None


class Found(BaseModel):
    """One finding: what, how bad, since when, what to try."""

    rule: str
    severity: str
    claim: str
    tries: list[str] = Field(default_factory=list)


class Diagnosis(Page):
    run: str
    health: str
    what: str
    findings: list[Found]
    could_not_look: int = Field(0, description="rules whose metrics were not logged: not the same as healthy")
    missing: list[str] = Field(default_factory=list)


class Term(BaseModel):
    """What one reward term did over training."""

    name: str
    share: Figure
    mean: Figure = None
    correlation_with_task: Figure = None
    marks: list[str] = Field(default_factory=list)


class Reflection(Page):
    run: str
    hacking_risk: str
    task_metric: str | None
    terms: list[Term]
    findings: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    file: str | None = None


def add(server: MCPServer) -> None:
    """Register the tools that judge and explain."""
    server.tool(annotations=KEEPS)(compare)
    server.tool(annotations=KEEPS)(settle)
    server.tool(annotations=READS)(diagnose)
    server.tool(annotations=KEEPS)(reflect)


@tool
async def compare(
    baseline: RunName,
    candidates: Annotated[list[str], Field(description="runs to judge against it")],
    min_effect: float = 0.0,
    guards: Annotated[list[str], Field(description="METRIC[:MARGIN[:lower]] each")] = [],  # noqa: B006
    cursor: Cursor = None,
) -> Comparison:
    """Is B better than A? Judge runs on their training seeds; a look is recorded, so asking again changes nothing."""
    asked = ["--min-effect", repr(min_effect), *(word for one in guards for word in ("--guard", one))]
    found = await in_thread(document, "compare", *asked, "--", named(baseline), *map(named, candidates))
    rows = [_judged(one) for one in found["candidates"]]
    following = next((command for row in rows for command in row["commands"]), None)
    return page(
        rows,
        cursor,
        lambda shown: Comparison(
            baseline=found["baseline"],
            candidates=[Judged(**row) for row in shown],
            exit_code=found["exit_code"],
            next=following,
        ),
    )


def _judged(one: dict[str, Any]) -> dict[str, Any]:
    guards = {name: guarded(guard) for name, guard in one["guardrails"].items()}
    kept = {key: one[key] for key in ("run", "verdict", "line", "reason", "settle", "notes", "commands")}
    return {**kept, "guardrails": guards}


@tool
async def settle(
    baseline: Annotated[str, Field(description="a run, a YAML config or catalog:NAME")],
    candidate: Annotated[str, Field(description="the same")],
    max_seeds: int = 24,
    deadline: Annotated[str, Field(description="stop after this long: 90m, 2h")] = "2h",
    again: Annotated[bool, Field(description="go on after it ended without an answer")] = False,
) -> Settlement:
    """Train and look until it is decided whether B is better than A; starts on its own and returns at once."""
    await in_thread(refuse_in_study, "settle")
    return await in_thread(_settled, baseline, candidate, max_seeds, deadline, again)


def _settled(baseline: str, candidate: str, max_seeds: int, deadline: str, again: bool) -> Settlement:
    from rlx.launch import errand

    if baseline.startswith("-") or candidate.startswith("-"):
        raise UsageError("a run or a config does not begin with a dash", hint="rlx ls")
    words = ["settle", "--max-seeds", str(max_seeds), "--deadline", deadline, baseline, candidate]
    told = errand.start(words, root=project.root(), again=again)
    result = told.result()
    both = {"baseline": baseline, "candidate": candidate}
    if result is None:
        log = told.log.read_text(encoding="utf-8", errors="replace") if told.log.is_file() else ""
        if not told.is_running:
            raise JobFailed("the settling ended without a word", hint="call settle with again=true")
        return shortened(Settlement(**both, is_running=True, exit_code=1, log=foreign(log, chars=600)))
    if "error" in result:
        told.forget()  # mended, the same call tries again
        raise told_error(result)
    kept = {key: result[key] for key in ("verdict", "line", "stopped", "seeds")}
    code = {"invalid": 6, "stuck": 5, "crashing": 5}.get(result["stopped"], 0)
    following = f"rlx compare {result['baseline']} {result['run']}"
    return shortened(Settlement(**both, is_running=False, **kept, exit_code=code, next=following))


def told_error(told: dict[str, Any]) -> RlxError:
    """Return the error that a command printed."""
    if told.get("kind") == "Refused":
        return Refused(str(told["error"]), hint=told.get("hint"), reasons=told.get("reasons") or ())
    kinds = {kind.__name__: kind for kind in (UsageError, NotFound, EvidenceInvalid, JobFailed)}
    return kinds.get(str(told.get("kind")), RlxError)(str(told["error"]), hint=told.get("hint"))


@tool
async def diagnose(run: RunName, cursor: Cursor = None) -> Diagnosis:
    """What is wrong with a run, why, and what to try: findings with evidence, the likely cause first."""
    found = await in_thread(document, "diagnose", "--", named(run))
    rows = [{"rule": one["rule"], "severity": one["severity"], "claim": one["claim"], "tries": one["try"]}
            for one in found["findings"]]  # fmt: skip
    return page(
        rows,
        cursor,
        lambda shown: Diagnosis(
            run=found["run"],
            health=found["health"],
            what=found["what"],
            findings=[Found(**row) for row in shown],
            could_not_look=len(found["blind"]),
            missing=found["missing"],
            next=found["next"],
        ),
    )


@tool
async def reflect(
    run: RunName,
    against: Annotated[str | None, Field(description="say what changed since this run")] = None,
    cursor: Cursor = None,
) -> Reflection:
    """What each reward term did over training, and whether one is farmed while the task suffers."""
    asked = ["--against", named(against)] if against else []
    found = await in_thread(document, "reflect", *asked, "--", named(run))
    rows = [_term(one) for one in sorted(found["terms"], key=lambda one: -float(one["share"]))]
    return page(
        rows,
        cursor,
        lambda shown: Reflection(
            run=found["run"],
            hacking_risk=found["hacking_risk"],
            task_metric=found["task"]["metric"] if found["task"] else None,
            terms=[Term(**row) for row in shown],
            findings=[f"{one['rule']}: {one['claim']}" for one in found["findings"]],
            notes=found["notes"],
            file=found["file"],
            next=found["next"],
        ),
    )


def _term(one: dict[str, Any]) -> dict[str, Any]:
    marks = [word for key, word in (("dominates", "dominates"), ("is_saturated", "saturated"), ("is_flat", "flat"))
             if one[key]]  # fmt: skip
    return {
        "name": one["name"],
        "share": one["share"],
        "mean": one["mean"],
        "correlation_with_task": one["correlation"],
        "marks": marks,
    }
