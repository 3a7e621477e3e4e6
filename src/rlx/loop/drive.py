"""The loop of a study: do what is next until a person, an agent or nothing is needed; an agent is restarted on `next`.

An agent that is started again and again without a new row in the ledger, refusals apart, is backed off from. Where it
has no other idea, the head is claimed if it may be; only then a person is called for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rlx.errors import Refused
from rlx.figures import signed
from rlx.launch import door
from rlx.launch import launch as plain
from rlx.launch.agent import run_agent
from rlx.launch.door import Order
from rlx.loop import judgement, pool, proceed, queue, telling
from rlx.loop.agenda import Step
from rlx.loop.scores import Say
from rlx.runs.run import Run
from rlx.study import remedy
from rlx.study.study import Study

RESTARTS = 3
"""So many starts of an agent without a new row, refusals apart, call for a person."""
BACKOFF_SECONDS = 5.0
AGENT_SECONDS = 3600.0
IDEAS = ("propose", "mend")
FOR_A_PERSON = ("amend", "approve", "rehearse", "audit")


@dataclass
class Drive:
    """A loop over one study; `follow` stays with a run until it ends, `report` writes what came of it."""

    study: Study
    say: Say
    agent: Sequence[str] = ()
    follow: Callable[[Run], object] = plain.wait
    report: Callable[[Study], object] = telling.report
    backoff_seconds: float = BACKOFF_SECONDS
    done: list[str] = field(default_factory=list)
    idle: int = 0

    def go(self) -> dict[str, Any]:
        """Do what is next until there is nothing more to do here; return why it ended."""
        self.refuse_unattended()
        while True:
            queue.work(self.study, say=self.say, follow=self.follow)
            step = self.next_step()
            why = self._reason_to_end(step)
            if why:
                return {"study": self.study.name, "ended": why, "did": self.done, "command": step.command}
            self.say(f"{step.command}  ({step.why})")
            self.done.append(step.command)
            if step.action in IDEAS:
                self._ask_agent()
            else:
                self.idle = 0
                self._act(step)

    def next_step(self) -> Step:
        """Return what is next: the head's claim, where an idea is asked for that the agent does not have."""
        plan = proceed.planned(self.study)
        claim = next((one for one in plan.also if one.phase == "confirmation"), None)
        has_ideas = self.idle < RESTARTS
        return plan.next if plan.next.action not in IDEAS or has_ideas or claim is None else claim

    def refuse_unattended(self) -> None:
        """Refuse an agent before it is started where nothing that it proposes could be launched."""
        automation = self.study.contract().automation
        if self.agent and not (automation and automation.unattended):
            hint = f"rlx study amend {self.study.name} -s automation.unattended=true, and have it approved"
            raise Refused("the contract does not let jobs start without a person", hint=hint)

    def _reason_to_end(self, step: Step) -> str:
        if step.action in FOR_A_PERSON:
            return f"a person is needed: {step.why}"
        if step.action == "done":
            return step.why
        if step.action in IDEAS and not self.agent:
            return f"somebody must {step.action}: {step.why}"
        return ""

    def _act(self, step: Step) -> None:
        act: dict[str, Callable[[Step], object]] = {
            "wait": lambda one: self.follow(Run(self.study.root / "runs" / one.run)),
            "baseline": lambda _: pool.fill(self.study, say=self.say, follow=self.follow),
            "check": self._check,
            "launch": self._launch,
            "verdict": lambda one: judgement.verdict(self.study, one.candidate, say=self.say),
            "decide": self._decide,
            "report": lambda _: self.report(self.study),
        }
        act[step.action](step)

    def _decide(self, step: Step) -> None:
        """Let the rule decide, and say what it decided and why, in a line."""
        told = judgement.decide(self.study, step.candidate, say=self.say)
        effect = f"{signed(told['effect'])} v {told['against']}; " if told["effect"] is not None else ""
        why = "; ".join(told["objections"]) or told["reason"]
        self.say(f"{step.candidate}: {told['decision']} ({effect}{why})")

    def _check(self, step: Step) -> None:
        """Check a candidate; one that is refused is somebody's to mend, which is what comes next."""
        try:
            door.check(self.study, step.candidate)
        except Refused as error:
            self.say(error.message)

    def _launch(self, step: Step) -> None:
        order = Order(step.candidate, step.phase, plan=step.plan or None, is_unattended=bool(self.agent))
        door.launch(self.study, order)

    def _ask_agent(self) -> None:
        """Start the agent once; where nothing of it passes, wait longer each time, and call a person after a few."""
        if self.idle >= RESTARTS:
            self._escalate()
        before = self._deeds()
        run_agent(self.agent, root=self.study.root, seconds=AGENT_SECONDS)
        if self._deeds() > before:
            self.idle = 0
            return
        self.idle += 1
        self.say(f"the agent ended without a row in the ledger, refusals apart ({self.idle} of {RESTARTS})")
        if self.idle < RESTARTS:
            time.sleep(self.backoff_seconds * 2 ** (self.idle - 1))

    def _escalate(self) -> NoReturn:
        why = f"the agent was started {RESTARTS} times without a row in the ledger, refusals apart"
        self.study.ledger.append("escalated", why=why)
        goes_on = remedy.approved(self.study.contract(), goes_on=True)
        raise Refused(why, hint=f"rlx study log; then, to go on: {goes_on}")

    def _deeds(self) -> int:
        """Return how many rows the ledger has that are no refusals: asking for the same again is no progress."""
        state = self.study.state()
        return state.rows - state.refusals
