"""The process that trains one seed, or several together; it runs only under the supervisor of its run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rlx.errors import Refused, RlxError
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.runs.checkpoints.checkpoint import Checkpoint
    from rlx.runs.live import LiveSeed
    from rlx.train.session import Judge, Session

PARENT_CHECK_SECONDS = 1.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


class _EarlySignals:
    """Remembers a signal that arrives before the seeds can be stopped."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.reason = signal.Signals(number).name


def main(argv: list[str]) -> int:
    """Train the seeds `argv[1:]` of the run at `argv[0]` and record how each ended."""
    early = _EarlySignals()
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, early)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # a forked worker starts with them blocked
    run = Run(Path(argv[0]))
    seeds = [int(number) for number in argv[1:]]
    try:
        _die_with_supervisor(run, seeds)
        origin = _enter_study(run, seeds)
    except RlxError as error:
        print(f"error: {error.message}\n\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    if not origin.get("learner", {}).get("is_apart"):
        make_project_importable(run, is_in_study=bool(origin))
    return _train(run, seeds, early, origin)


def make_project_importable(run: Run, *, is_in_study: bool = False) -> None:
    """Let the modules of the project, which is the current folder, be imported from here on.

    In a project from elsewhere, a run that names no code needs none of them. They could only stand in for packages.
    """
    from rlx.evaluate.stored_code import code_references
    from rlx.runs import project

    if is_in_study or project.is_own(Path.cwd()) or code_references(run.config):
        sys.path.insert(0, str(Path.cwd()))


def _enter_study(run: Run, seeds: Sequence[int]) -> dict[str, Any]:
    """Enter the sandbox of a study's run before any of its code is imported, and return what was enforced.

    Refuses a run without an intent in the study's ledger.
    """
    if "job" not in (run.metadata.get("lineage") or {}):
        return {}
    from rlx.launch.study_jobs.study_job import StudyJob

    job = StudyJob.of(run)
    assert job is not None
    job.refuse_without_intent(run, seeds)
    apart = learner_apart(run)
    environments = None
    has_own_pids = False
    if run.is_opaque:
        has_own_pids = _move_into_pid_namespace()
    else:
        environments = job.start_environments(seeds)
    enforced = job.enter_sandbox(seeds, has_own_pids=has_own_pids).document()
    if environments is not None:  # only now: NumPy's libraries may start threads, and a sandbox takes a single one
        from rlx.envs.remote.env_process import EnvProcess
        from rlx.sandbox.popen import how_it_ended

        connection, process = environments
        environment = EnvProcess(connection, lambda: how_it_ended(process))
        environment.connect()
        environment.seed_generators(seeds[0])
    return {"git": dict(job.origin), "enforced": enforced, "learner": apart}


def _move_into_pid_namespace() -> bool:
    """Go on in a child that is the first process of a PID namespace, so that nothing that it starts survives it.

    The kernel kills a namespace with its first process, even programs that fork and end all the time. This process
    stays behind: it passes on signals and ends as the child does. Returns False if the account may have no such child.
    """
    from rlx.runs import process
    from rlx.sandbox import namespaces

    if not namespaces.can_show_own_processes() or not namespaces.separate_children():
        return False
    known = process.current()
    alive_in, alive_out = os.pipe()
    child = os.fork()
    if child:
        os.close(alive_in)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda caught, _frame: os.kill(child, caught))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            if -code not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)
    os.close(alive_out)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.set_blocking(alive_in, False)
    try:
        os.read(alive_in, 1)
        os._exit(1)  # the parent died before it could take this process along
    except BlockingIOError:
        os.close(alive_in)
    process.call_current(known)
    return True


def learner_apart(run: Run) -> dict[str, Any]:
    """Return whether a study's learner runs apart from all code of the project, and why not."""
    if run.is_opaque:
        return {"is_apart": False, "says": "the repository's own command trains: learning itself was not observed"}
    named = own_learner_code(run.config)
    if named:
        return {"is_apart": False, "says": f"the project's own {named} trains: learning itself was not observed"}
    return {"is_apart": True, "says": "environment, wrappers and reward ran in another process than the learner"}


def own_learner_code(config: Mapping[str, Any]) -> str:
    """Return which part of the learner is the project's own code: its algorithm or its policy; empty if none is."""
    policy = config.get("policy") or {}
    if ":" in str((config.get("algo") or {}).get("name")):
        return "algorithm"
    texts = (policy.get("type"), *(policy.get("kwargs") or {}).values())
    if any(isinstance(text, str) and ":" in text for text in texts):
        return "policy"
    return ""


def _die_with_supervisor(run: Run, seeds: Sequence[int]) -> None:
    """Refuse to run without the run's supervisor, and end when it ends."""
    supervisor = run.supervisor_of(seeds[0])
    if supervisor is None or supervisor.pid != os.getppid():
        raise Refused(f"no launch of {run.name} asked for this worker", hint=f"rlx resume {run.name}")
    if sys.platform == "linux":  # SIGKILL: a worker that holds the interpreter lock could not act on less
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(supervisor.pid,), daemon=True, name="orphan watch").start()
    if os.getppid() != supervisor.pid:
        raise Refused(f"the supervisor of {run.name} is gone", hint=f"rlx resume {run.name}")


def _watch_parent(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(PARENT_CHECK_SECONDS)
    os.killpg(os.getpid(), signal.SIGKILL)


def _train(run: Run, seeds: Sequence[int], early: _EarlySignals, study_origin: Mapping[str, Any]) -> int:
    from rlx.evaluate.code_files import code_identity
    from rlx.runs import loaded_modules
    from rlx.runs.live import LiveSeed
    from rlx.runs.provenance import provenance

    root = Path(os.environ["RLX_ROOT"])
    origin = {**provenance(root), **code_identity(run.config, root=root), **study_origin}
    lives = [LiveSeed(run.seed(number).folder, root=root, origin=origin) for number in seeds]

    def stop(number: int, _frame: FrameType | None) -> None:
        for live in lives:
            live.request_stop(signal.Signals(number).name)

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is early:
            signal.signal(number, stop)
    if early.reason:
        for live in lives:
            live.request_stop(early.reason)
            live.interrupted(run.seed(live.number).step)
        return 0
    code = max(_attempt(run, group) for group in _by_step(lives))
    if study_origin and not run.is_opaque:  # the processes of a command record their modules themselves
        for live in lives:
            loaded_modules.write(live.folder)
            loaded_modules.write_remote(live.folder)
    return code


def _by_step(lives: Sequence[LiveSeed]) -> list[list[tuple[LiveSeed, Checkpoint | None]]]:
    """Group seeds by the step they continue from: only seeds at the same step can be trained together."""
    from rlx.runs.checkpoints import checkpoint

    groups: dict[int, list[tuple[LiveSeed, Checkpoint | None]]] = {}
    for live in lives:
        newest = checkpoint.newest(live.folder / "checkpoints")
        groups.setdefault(newest.step if newest else 0, []).append((live, newest))
    return list(groups.values())


def _attempt(run: Run, seeds: Sequence[tuple[LiveSeed, Checkpoint | None]]) -> int:
    """Train seeds that start at the same step, and record how each ended; return the worst exit code."""
    sessions: dict[int, Session] = {}
    errors: Mapping[int, Exception]
    try:
        from rlx.config.load import parse
        from rlx.launch.resources import pause_step
        from rlx.train.session import Session
        from rlx.train.trainer import train

        experiment = parse(run.config, source=run.name)
        for live, checkpoint in seeds:
            judge = stop_judge(experiment, run, live.number)
            sessions[live.number] = Session(
                experiment, live, checkpoint=checkpoint, judge=judge, pause_step=pause_step()
            )
        errors = train(experiment, list(sessions.values()))
        for session in sessions.values():
            session.close()
    except Exception as error:  # noqa: BLE001  job supervision: any exception of the user's code is the seed's outcome
        errors = {live.number: error for live, _ in seeds}
    return max(_conclude(live, sessions.get(live.number), errors.get(live.number)) for live, _ in seeds)


def stop_judge(experiment: Experiment, run: Run, seed: int) -> Judge | None:
    """Return the function that a seed's session asks whether a `stop` rule ends it; None if no rule is on."""
    if not experiment.stop.is_on:
        return None

    def judge(_step: int) -> str | None:
        from rlx.diagnose.early_stop import reason_to_stop
        from rlx.diagnose.load_case import read_case
        from rlx.runs.summary import costs

        now = Run(run.path)
        return reason_to_stop(experiment.stop, read_case(now, only=seed), costs(now)[seed])

    return judge


def _conclude(live: LiveSeed, session: Session | None, error: Exception | None) -> int:
    if session is not None and error is None:
        record = live.completed if session.is_complete else live.interrupted
        record(session.step)
        return 0
    error = error or RuntimeError("the seed was never started")
    step = None if session is None else session.step
    live.failed(error, step=step)
    with contextlib.suppress(OSError):  # if the log is full, it stays as it is
        if isinstance(error, RlxError):
            print(f"error: {error.message}", file=sys.stderr)
        else:
            traceback.print_exception(error)
    return RlxError.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
