"""A language model as a planner: ask, read, send rejected proposals back twice, and keep an audit of everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.loop.advisor.llm_endpoint import Endpoint, PlannerFailed
from rlx.loop.sweep import sweep_log
from rlx.search.minority_vote import Vote
from rlx.search.observation import Observation
from rlx.search.planners.llm_answer import AnswerAudit, PlannedConfig, question, read_answer, repair
from rlx.search.space import Space, Values

REPAIRS = 2
STRICT = "strict:"
"""A planner text that starts with this fails instead of falling back."""
Audited = Callable[[Mapping[str, Any]], None]


class LlmPlanner:
    """Asks an endpoint for configs. Without `is_strict`, a failure gives no proposals, and the rules take over."""

    def __init__(
        self, endpoint: Endpoint, *, is_strict: bool = False, audited: Audited, data: Mapping[str, Any]
    ) -> None:
        self._endpoint = endpoint
        self._is_strict = is_strict
        self._audited = audited
        self._data = data

    def propose(self, space: Space, base: Values, history: Sequence[Observation], count: int) -> list[PlannedConfig]:
        """Return up to `count` configs that are in the space and were not tried."""
        asked = question(space, base, history, count, data=self._data)
        accepted: list[PlannedConfig] = []
        rejected: list[dict[str, Any]] = []
        rounds = 0
        failure = ""
        for _ in range(1 + REPAIRS):
            rounds += 1
            tried = [*(seen.values for seen in history), *(planned.values for planned in accepted)]
            try:
                text = self._endpoint.ask(asked)
            except PlannerFailed as error:
                failure = error.message
                break
            audit = read_answer(text, space, base, tried, most=count - len(accepted))
            accepted += audit.accepted
            rejected += audit.rejected
            if len(accepted) >= count or not audit.rejected:
                break
            asked = repair(asked, AnswerAudit(rejected=audit.rejected))
        found = AnswerAudit(accepted, rejected)
        self._audited({**found.document(), "rounds": rounds, "failure": failure})
        if self._is_strict and not accepted:
            reason = failure or (rejected[0]["reason"] if rejected else "it proposed nothing")
            raise PlannerFailed(f"the language model gave no usable proposal: {reason}", hint="leave out --strict")
        return accepted


def sweep_vote(planner: str, *, root: Path, sweep: str) -> Vote:
    """Return the voter of a sweep; its audit stands in the sweep's log."""
    log = sweep_log.SweepLog(root / sweep_log.FOLDER / sweep)
    endpoint = Endpoint(planner.removeprefix(STRICT))

    def audited(row: Mapping[str, Any]) -> None:
        log.append("votes", **row)

    def vote(space: Space, history: Sequence[Observation], count: int) -> list[Values]:
        plan = log.state().plan
        base = plan.base_values() or space.at([0.5] * len(space.parameters))
        data = {"sweep": sweep, "environment": str((plan.data.get("env") or {}).get("id"))}
        asking = LlmPlanner(endpoint, is_strict=planner.startswith(STRICT), audited=audited, data=data)
        return [planned.values for planned in asking.propose(space, base, history, count)]

    return vote
