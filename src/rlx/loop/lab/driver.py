"""The driver of a lab: a fresh agent session per iteration, until a limit, a rule or a person ends it.

It owns clock, money, restarts and waits. The ledgers are its memory: options and ends of drives, and one row per
session. So `resume` continues a driver that was killed at any moment: it finishes the session or the attempt that was
left, and counts those that were finished before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rlx import files
from rlx.errors import NotFound, Refused, RlxError
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch import launch as plain
from rlx.loop.lab.attempt import Attempt, attempts, rung_attempts
from rlx.loop.lab.climb import climb, climb_refusals, is_cut_off
from rlx.loop.lab.drive_rules import (
    DriveOptions,
    DriveStop,
    is_time_to_climb,
    iterations_done,
    seconds_to_wait,
    stop_before_reset,
    stop_by_rule,
)
from rlx.loop.lab.lab_folder import APPROVE_HINT, Lab
from rlx.loop.lab.lesson import record_lesson
from rlx.loop.lab.session import agent_session
from rlx.loop.lab.session.agent_command import AgentCommand, agent_command
from rlx.loop.lab.session.agent_session import AgentSession
from rlx.loop.lab.session.session_record import (
    DRIVER_EVENT,
    NOTE,
    LabSession,
    driver_events,
    lab_sessions,
    spent_dollars,
)
from rlx.loop.lab.try_attempt import LabIdea, continue_attempt, refuse_attempt, try_attempt
from rlx.loop.study import baseline
from rlx.loop.study.agent.compact import scores
from rlx.loop.study.agent.try_candidate import try_claim
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.step_commands import next_steps, situation_of
from rlx.number_format import figure
from rlx.runs import process
from rlx.sandbox.spec import SandboxSpec, require_enforcement
from rlx.study.ledger.ledger import Event

STOP_FILE = "stop.json"
HOLDER_FILE = "driver.json"
FOR_A_PERSON = ("amend", "approve", "rehearse", "audit")
NO_CLAIM = ("until", "person", "failures")
"""The stops after which the head is not claimed: the time is up, or somebody has to look first."""
ATTEMPT_SECONDS = 24 * 3600.0
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class DriveEnd:
    """How a drive ended."""

    stop: DriveStop
    iterations: int
    sessions: int
    dollars: float | None


def start(lab: Lab, options: DriveOptions, *, say: Say, follow: Callable[..., object] = plain.wait) -> DriveEnd:
    """Drive a lab from now on. A drive that was cut off is finished first."""
    agent_command(options.agent, lab.config.agent, cwd=Path.cwd())  # raises before anything is written
    with held(lab):
        refuse_unapproved(lab)
        folder = str(Path.cwd())
        begun = lab.study.ledger.append(DRIVER_EVENT, what="began", options=options.document(), folder=folder)
        return Driver(lab, options, begun, say, follow).drive()


def resume(lab: Lab, *, say: Say, follow: Callable[..., object] = plain.wait) -> DriveEnd:
    """Go on with the last drive, with the rest of its own options."""
    with held(lab):
        begun = _last_begun(lab)
        if begun is None:
            raise NotFound(f"lab {lab.name} was never run", hint="rlx lab run --agent claude")
        refuse_unapproved(lab)
        options = begun_options(begun)
        agent_command(options.agent, lab.config.agent, cwd=Path(begun["folder"]))
        lab.study.ledger.append(DRIVER_EVENT, what="resumed")
        return Driver(lab, options, begun, say, follow).drive()


def last_options(lab: Lab) -> DriveOptions | None:
    """Return the options of the last drive; None if the lab was never run."""
    begun = _last_begun(lab)
    return begun_options(begun) if begun else None


def _last_begun(lab: Lab) -> Event | None:
    """Return the row with which the last drive began."""
    return next((event for event in reversed(driver_events(lab)) if event["what"] == "began"), None)


def begun_options(begun: Event) -> DriveOptions:
    """Return the options in the row with which a drive began."""
    return DriveOptions(**begun["options"])


@contextlib.contextmanager
def held(lab: Lab) -> Iterator[None]:
    """Hold the lab's lock, so that one driver runs. It ends with the process."""
    lab.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(lab.lock_path, wait=False))
        except BlockingIOError:
            raise Refused(f"another driver runs lab {lab.name}", hint="rlx lab status, or rlx lab stop") from None
        (lab.folder / STOP_FILE).unlink(missing_ok=True)
        files.write_json(lab.folder / HOLDER_FILE, {"schema": 1, **process.current().document()})
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                (lab.folder / HOLDER_FILE).unlink(missing_ok=True)


def is_running(lab: Lab) -> bool:
    """Say whether a driver holds the lab."""
    return files.is_locked(lab.lock_path)


def holder(lab: Lab) -> process.Process | None:
    """Return the process that drives the lab, as it registered itself."""
    try:
        return process.from_document(files.read_json(lab.folder / HOLDER_FILE))
    except (OSError, ValueError):
        return None


def ask_to_stop(lab: Lab, *, by: str) -> None:
    """Ask the driver to end after its present iteration."""
    files.write_json(lab.folder / STOP_FILE, {"schema": 1, "by": by, "time": time.time()})


def interrupt(lab: Lab) -> None:
    """Interrupt the driver's process, as Ctrl-C does, if it runs on this machine."""
    known = holder(lab)
    if known is None or not process.is_alive(known):
        raise NotFound(f"the driver of lab {lab.name} does not run on this machine", hint="rlx lab stop")
    os.kill(known.pid, signal.SIGTERM)


def refuse_unapproved(lab: Lab) -> None:
    """Refuse to drive a lab whose study waits for a person, or whose sessions this kernel could not limit."""
    refuse_foreign_program("the agent of the lab", root=lab.root, item=lab.study.folder, hint=APPROVE_HINT)
    study = lab.study
    if study.state().approval is None and lab.rung == lab.config.ladder[0]:
        says = f"lab {lab.name} is not approved: a person has to read program.md, lab.yaml and evaluator/ first"
        raise Refused(says, hint="rlx lab approve")
    step = next_steps(study, situation_of(study))[0]
    if step.move.kind in FOR_A_PERSON:
        raise Refused(f"a person is needed first: {step.why}", hint="rlx lab approve")
    require_enforcement(SandboxSpec(), may_go_unenforced=agent_session.may_go_unenforced(lab))


@dataclass
class Driver:
    """One drive of a lab, while its lock is held."""

    lab: Lab
    options: DriveOptions
    begun: Event
    """The row with which the drive began."""
    say: Say
    follow: Callable[..., object] = plain.wait

    def drive(self) -> DriveEnd:
        """Iterate until something ends it; then claim the head if its time has come."""
        try:
            stop = self._iterate()
            if stop.code not in NO_CLAIM:
                self._claim()
        except KeyboardInterrupt:
            self._record_interrupted()
            self._end(DriveStop("person", "a person stopped the driver"))
            raise
        except RlxError as error:
            self._end(DriveStop("error", error.message))
            raise
        return self._end(stop)

    def _iterate(self) -> DriveStop:
        self._finish_sessions()
        if is_cut_off(self.lab):  # before anything is asked of a person: a rung may lack no more than its approval
            climb(self.lab, say=self.say, seconds=ATTEMPT_SECONDS, follow=self.follow)
        while True:
            stop = self._reason_to_stop()
            if stop is not None:
                return stop
            if not self._wait():
                continue
            self._prepare()
            self._run_session()

    # Limits

    def sessions(self) -> list[LabSession]:
        """Return the sessions of this drive."""
        return [session for session in lab_sessions(self.lab) if session.record.drive == self.begun.id]

    def _reason_to_stop(self) -> DriveStop | None:
        request = self.lab.folder / STOP_FILE
        if request.exists():
            return DriveStop("person", f"{files.read_json(request).get('by', 'somebody')} asked for it (rlx lab stop)")
        sessions = self.sessions()
        now = time.time()
        stop = stop_by_rule(sessions, self.options, now=now) or stop_before_reset(sessions, self.options, now=now)
        return stop or self._stop_by_study()

    def _stop_by_study(self) -> DriveStop | None:
        study = self.lab.study
        at = situation_of(study)
        step, *others = next_steps(study, at)
        if step.move.kind in FOR_A_PERSON:
            return DriveStop("person", f"a person is needed: {step.why}")
        target = self.lab.config.metric.target
        score = scores(at)["head"]
        if target is not None and score is not None and at.state.head != "baseline" and score >= target:
            return DriveStop(
                "target", f"the head {at.state.head} scores {figure(score)}, the target is {figure(target)}"
            )
        if not {"propose", "baseline", "wait"} & {one.move.kind for one in (step, *others)}:
            return DriveStop("budget", step.why)
        return None

    def _wait(self) -> bool:
        """Wait a moment for a usage limit or after a failure. Return whether the next session may begin."""
        left = seconds_to_wait(self.sessions(), self.options, now=time.time())
        if left <= 0:
            return True
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() + left))
        self.say(f"waiting {left:.0f} s, until {until}")
        deadline = time.time() + left
        if self.options.until is not None:
            deadline = min(deadline, self.options.until)
        while time.time() < deadline and not (self.lab.folder / STOP_FILE).exists():
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.time())))
        return False

    # One iteration

    def _prepare(self) -> None:
        """Climb if this rung has no more to give, and train what every candidate is compared with."""
        tried = rung_attempts(self.lab.study, self.lab.rung)
        is_time = is_time_to_climb(tried, climb_after=self.lab.config.climb_after)
        if is_cut_off(self.lab) or (is_time and not climb_refusals(self.lab)):
            climb(self.lab, say=self.say, seconds=ATTEMPT_SECONDS, follow=self.follow)
        study = self.lab.study
        kinds = {step.move.kind for step in next_steps(study, situation_of(study))}
        if "baseline" in kinds:
            self.say("training the baseline's pool")
            baseline.fill(study, say=self.say, follow=self.follow)

    def _run_session(self) -> None:
        rules = self.lab.config.agent
        sessions = self.sessions()
        command = self._command(sessions)
        known = [session.record.number for session in lab_sessions(self.lab)]
        number = 1 + max([0, *known, *agent_session.session_numbers(self.lab)])
        done = iterations_done(sessions)
        of = "" if self.options.iterations is None else f" of {self.options.iterations}"
        seconds = rules.session_minutes * 60
        if self.options.until is not None:
            seconds = min(seconds, max(1.0, self.options.until - time.time()))
        self.say(f"iteration {done + 1}{of}: session {number}, at most {seconds / 60:.1f} min")
        session = agent_session.new_session(self.lab, number, command.argv, drive=self.begun.id)
        agent_session.run(session, command, rules, seconds=seconds)
        self._finish(session)

    def _command(self, sessions: list[LabSession]) -> AgentCommand:
        left = None
        if self.options.max_cost is not None:
            records = [session.record for session in sessions]
            spent = spent_dollars(records, cost_per_session=self.options.cost_per_session)
            left = self.options.max_cost - (spent or 0.0)
        return agent_command(
            self.options.agent, self.lab.config.agent, cwd=Path(self.begun["folder"]), dollars_left=left
        )

    # Ends

    def _finish_sessions(self) -> None:
        """Finish the sessions and attempts that a driver left, so that each has its row."""
        for session in self._without_row():
            self.say(f"session {session.number} was cut off: rlx finishes it")
            self._finish(session)
        for number in agent_session.session_numbers(self.lab):
            session = AgentSession(self.lab, number)
            if session.tree.exists():
                agent_session.clean(session)
        for attempt in attempts(self.lab):
            if attempt.status == "open" and attempt.candidate and attempt.rung == self.lab.rung:
                self._continue(attempt.candidate)

    def _without_row(self) -> list[AgentSession]:
        known = {session.record.number for session in lab_sessions(self.lab)}
        numbers = [number for number in agent_session.session_numbers(self.lab) if number not in known]
        return [AgentSession(self.lab, number) for number in numbers]

    def _record_interrupted(self) -> None:
        """Give the interrupted session its row. One that had ended is left for `resume`, which tries its change."""
        for session in self._without_row():
            if not session.ended:
                self._finish(session)

    def _finish(self, session: AgentSession) -> None:
        """Give a session its row: its end, or the attempt that its change is."""
        result = agent_session.result_of(session, now=time.time())
        agent_session.keep_patch(session)
        if not result.is_attempt:
            self.say(f"session {session.number}: {result.record.outcome}: {result.says}")
            note = {NOTE: result.record.document()}
            refuse_attempt(self.lab, [result.refusal()], description=f"session {session.number}", note=note)
        else:
            idea = agent_session.take_idea(session, result.record)
            self.say(f"session {session.number}: {idea.hypothesis}")
            self._record_lessons(session)
            self._try(session, idea)
        agent_session.clean(session)

    def _record_lessons(self, session: AgentSession) -> None:
        """Record what the agent learned from earlier attempts; a lesson that the evidence contradicts is refused."""
        known = {attempt.candidate: attempt.lesson for attempt in attempts(self.lab)}
        for candidate, text in agent_session.lessons_of(session):
            if known.get(candidate) == " ".join(text.split()):
                continue
            try:
                record_lesson(self.lab, candidate, text)
            except RlxError as error:
                self.say(f"lesson of {candidate}: {error.message}")

    def _try(self, session: AgentSession, idea: LabIdea) -> None:
        try:
            attempt = try_attempt(
                self.lab, session.tree, idea, say=self.say, seconds=ATTEMPT_SECONDS, follow=self.follow
            )
        except RlxError as error:
            self.say(f"session {session.number}: {error.message}")
            known = {one.record.number for one in lab_sessions(self.lab)}
            if session.number not in known:  # the study refused it before the lab could write a row
                reason = agent_session.refused_by_study(error)
                refuse_attempt(self.lab, [reason], description=idea.hypothesis, note=dict(idea.note))
            return
        self._tell(attempt)

    def _continue(self, candidate: str) -> None:
        self.say(f"{candidate} is not decided: rlx goes on with it")
        try:
            self._tell(continue_attempt(self.lab, candidate, say=self.say, seconds=ATTEMPT_SECONDS, follow=self.follow))
        except Refused as error:
            self.say(error.message)

    def _tell(self, attempt: Attempt) -> None:
        score = "" if attempt.score is None else f", score {figure(attempt.score)}"
        self.say(f"{attempt.candidate}: {attempt.status}{score}")

    def _claim(self) -> None:
        """Claim the head on fresh seeds, if the study allows it."""
        study = self.lab.study
        at = situation_of(study)
        if not at.may_claim or at.state.is_claim_decided(at.state.head):
            return
        self.say(f"claiming the head {at.state.head} on fresh seeds")
        try:
            answer = try_claim(study, seconds=ATTEMPT_SECONDS, say=self.say, follow=self.follow)
        except Refused as error:
            self.say(error.message)
            return
        self.say(f"{answer['candidate']}: {answer['decision']}: {answer['why']}")

    def _end(self, stop: DriveStop) -> DriveEnd:
        sessions = self.sessions()
        records = [session.record for session in sessions]
        dollars = spent_dollars(records, cost_per_session=self.options.cost_per_session)
        end = DriveEnd(stop, iterations_done(sessions), len(sessions), dollars)
        self.lab.study.ledger.append(
            DRIVER_EVENT, what="ended", code=stop.code, why=stop.why, iterations=end.iterations, dollars=dollars
        )
        return end


def options_from(lab: Lab, given: DriveOptions) -> DriveOptions:
    """Return what a drive is asked for: the given options, else those of lab.yaml."""
    from rlx.study.stop_rules import deadline

    stop = lab.config.stop
    until = given.until
    if until is None and stop.until is not None:
        until = deadline(stop.until, since=time.time())
    return replace(
        given,
        agent=given.agent or lab.config.agent.command,
        iterations=given.iterations if given.iterations is not None else stop.iterations,
        until=until,
        max_cost=given.max_cost if given.max_cost is not None else stop.max_cost,
        no_progress=stop.no_progress,
        cost_per_session=lab.config.agent.cost_per_session,
        backoff_seconds=lab.config.agent.backoff_seconds,
    )
