"""The loop of a study: take the next step until a person is needed or the study is over.

An agent is started for every idea. If it adds no row to the ledger but refusals, the loop waits longer each time. If
it has no idea after a few starts, the loop claims the head if it may; only then it calls a person.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rlx.errors import Refused
from rlx.launch import launch as plain
from rlx.launch.agent_process import run_agent
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.launch_candidate import LaunchOrder
from rlx.loop.study import baseline, decide, queue, write_report
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.step_commands import Step, next_steps, situation_of
from rlx.runs.run import Run
from rlx.study.contract import fixes
from rlx.study.moves import Move
from rlx.study.study_folder import Study

RESTARTS = 3
"""After so many starts of the agent without a new row, a person is called."""
BACKOFF_SECONDS = 5.0
AGENT_SECONDS = 3600.0
IDEAS = ("propose", "mend")
FOR_A_PERSON = ("amend", "approve", "rehearse", "audit")


@dataclass
class Drive:
    """A loop over one study; `follow` stays with a run until it ends, `report` writes the report."""

    study: Study
    say: Say
    agent: Sequence[str] = ()
    follow: Callable[[Run], object] = plain.wait
    report: Callable[[Study], object] = write_report.report
    backoff_seconds: float = BACKOFF_SECONDS
    done: list[str] = field(default_factory=list)
    idle: int = 0

    def go(self) -> dict[str, Any]:
        """Take the next step until none is left for this loop; return why it ended."""
        self.refuse_unattended()
        while True:
            queue.work(self.study, say=self.say, follow=self.follow)
            step = self.next_step()
            why = self._reason_to_end(step)
            if why:
                return {"study": self.study.name, "ended": why, "did": self.done, "command": str(step.command)}
            self.say(f"{step.command}  ({step.why})")
            self.done.append(str(step.command))
            if step.move.kind in IDEAS:
                self._ask_agent()
            else:
                self.idle = 0
                self._act(step.move)

    def next_step(self) -> Step:
        """Return the next step; if the agent has no idea left, the head's claim."""
        step, *others = next_steps(self.study, situation_of(self.study))
        if step.move.kind in IDEAS and self.idle >= RESTARTS:
            return next((other for other in others if other.move.phase == "confirmation"), step)
        return step

    def refuse_unattended(self) -> None:
        """Refuse to start an agent if the contract would refuse to launch its proposals."""
        automation = self.study.contract().automation
        if self.agent and not (automation and automation.unattended):
            hint = f"rlx study amend {self.study.name} -s automation.unattended=true, and have it approved"
            raise Refused("the contract does not let jobs start without a person", hint=hint)

    def _reason_to_end(self, step: Step) -> str:
        kind = step.move.kind
        if kind in FOR_A_PERSON:
            return f"a person is needed: {step.why}"
        if kind == "done":
            return step.why
        if kind in IDEAS and not self.agent:
            verb = "fix it" if kind == "mend" else kind
            return f"somebody must {verb}: {step.why}"
        return ""

    def _act(self, move: Move) -> None:
        actions: dict[str, Callable[[], object]] = {
            "wait": lambda: self.follow(Run(self.study.root / "runs" / move.run)),
            "baseline": lambda: baseline.fill(self.study, say=self.say, follow=self.follow),
            "check": lambda: self._check(move),
            "launch": lambda: self._launch(move),
            "verdict": lambda: decide.verdict(self.study, move.candidate, say=self.say),
            "decide": lambda: self._decide(move),
            "report": lambda: self.report(self.study),
        }
        actions[move.kind]()

    def _decide(self, move: Move) -> None:
        """Let the rule decide, and print the decision and its reason in one line."""
        answer = decide.decide(self.study, move.candidate, say=self.say)
        self.say(f"{move.candidate}: {answer['decision']} v {answer['against']} ({answer['words']})")

    def _check(self, move: Move) -> None:
        """Check a candidate. If it is refused, the next step says who fixes it."""
        try:
            launch_candidate.check(self.study, move.candidate)
        except Refused as error:
            self.say(error.message)

    def _launch(self, move: Move) -> None:
        order = LaunchOrder(move.candidate, move.phase, plan=move.plan, is_unattended=bool(self.agent))
        launch_candidate.launch(self.study, order)

    def _ask_agent(self) -> None:
        """Start the agent once. If it achieves nothing, wait longer each time, and call a person after a few starts."""
        if self.idle >= RESTARTS:
            self._escalate()
        before = self._progress()
        run_agent(self.agent, root=self.study.root, seconds=AGENT_SECONDS)
        if self._progress() > before:
            self.idle = 0
            return
        self.idle += 1
        self.say(f"the agent ended without a row in the ledger, refusals apart ({self.idle} of {RESTARTS})")
        if self.idle < RESTARTS:
            time.sleep(self.backoff_seconds * 2 ** (self.idle - 1))

    def _escalate(self) -> NoReturn:
        why = f"the agent was started {RESTARTS} times without a row in the ledger, refusals apart"
        self.study.ledger.append("escalated", why=why)
        go_on = fixes.approve(self.study.contract(), goes_on=True)
        raise Refused(why, hint=f"rlx study log; then, to go on: {go_on}")

    def _progress(self) -> int:
        """Return how many rows the ledger has, without refusals: to ask for the same again is not progress."""
        state = self.study.state()
        return state.rows - state.refusals
