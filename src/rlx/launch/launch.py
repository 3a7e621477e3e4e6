"""Start, stop and resume runs: every training starts here, whether a person or a loop asked for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from rlx import files, plugins
from rlx.errors import ConfigError, JobFailed, Refused, RlxError, UsageError
from rlx.launch.executors.executor import TrainingOrder
from rlx.launch.processes import reexec
from rlx.launch.processes.reexec import lasting_environment
from rlx.launch.resources import neutral_environment, pause_environment
from rlx.runs import process, project, store
from rlx.runs.job_folder import LOCAL
from rlx.runs.run import JOBS, SNAPSHOT, Run
from rlx.runs.status import COMPLETED, QUEUED, RUNNING, tally
from rlx.sandbox.process_tree import kill_group

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.launch.executors.remote_job import RemoteJob
    from rlx.launch.processes.forked_process import ForkedProcess
    from rlx.train.choose_backend import BackendChoice

START_SECONDS = 20.0
STOP_SECONDS = 45.0
KILL_SECONDS = 5.0
POLL_SECONDS = 0.01
ENGINE_SECONDS = 2.0
Notice: TypeAlias = Callable[[str], None]
SupervisorProcess: TypeAlias = "subprocess.Popen[bytes] | ForkedProcess"
# The supervisors that are children of this process. It has to collect their exit codes.
_started: list[SupervisorProcess] = []


def check(experiment: Experiment, *, root: Path) -> BackendChoice:
    """Make the environment once and choose the backend; refuse a config that cannot train.

    A command makes its own environment, so rlx does not make it.
    """
    from rlx.config import devices
    from rlx.config.cross_check import cross_check
    from rlx.diagnose.early_stop import stop_problems
    from rlx.envs.make import inspect
    from rlx.evaluate.scenarios import evaluation_env_problems, scenario_problems
    from rlx.train.choose_backend import BackendChoice, as_configured, choose, makes_env

    problems = [*cross_check(experiment, devices=devices.present()), *stop_problems(experiment.stop)]
    choice = as_configured(experiment)
    if makes_env(experiment):
        facts = inspect(experiment.env, root=root)
        choice = choose(experiment, facts)
        problems += [*choice.problems, *evaluation_env_problems(experiment, facts, root=root)]
        problems += scenario_problems(experiment, root=root)
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        raise ConfigError("\n  also ".join(error.message for error in errors), hint=errors[0].hint)
    return BackendChoice(choice.experiment, choice.reason, tuple(problems))


def launch(
    experiment: Experiment,
    *,
    root: Path,
    lineage: Mapping[str, Any] | None = None,
    supervisor: SupervisorProcess | None = None,
) -> Run:
    """Create a run for a checked experiment and start it: by the chosen executor, or a prepared supervisor."""
    run = create(experiment, root=root, lineage=lineage)
    try:
        start(run, [seed.number for seed in run.seeds], supervisor=supervisor)
    except RlxError as error:
        if executor_for(run) == LOCAL:
            raise
        raise _without_unsent(run, error) from None
    return Run(run.path)


def _without_unsent(run: Run, error: RlxError) -> RlxError:
    """Remove a new run that its executor was never asked to train; a run that may be on its way is named."""
    from rlx.launch.executors.remote_job import discard_unsent

    if discard_unsent(run):
        store.delete(run)
        return error
    return type(error)(f"{run.name}: {error.message}", hint=f"try again: rlx resume {run.name}")


def create(experiment: Experiment, *, root: Path, lineage: Mapping[str, Any] | None = None) -> Run:
    """Create the folder of a run: config snapshot, identity, seeds. The experiment names its backend."""
    from rlx.config.load import config_hash, dump, group_hash
    from rlx.train.choose_backend import AUTO

    if experiment.backend == AUTO:
        raise ValueError("`check` chooses the backend; create the run from the experiment it returns")
    if "job" not in (lineage or {}):
        project.refuse_plain_training(root)
    identity = {
        "env": experiment.env.id,
        "algorithm": experiment.algo.name,
        "backend": experiment.backend,
        "total_timesteps": experiment.algo.total_timesteps if experiment.algo.says_length else 0,
        "config_hash": config_hash(experiment),
        "group_hash": group_hash(experiment),
        "argv": sys.argv,
        "lineage": dict(lineage or {}),
    }
    if _trains_together(experiment, root):
        identity["together"] = True
    project.mark_own(root)
    return store.create(
        root, name=experiment.run_name, snapshot=dump(experiment), metadata=identity, seeds=experiment.training_seeds()
    )


def _trains_together(experiment: Experiment, root: Path) -> bool:
    """Say whether one process trains several seeds, with environments and weights as arrays."""
    from rlx.train.trainer import GroupTrainer, trainer_for

    if not isinstance(trainer_for(experiment), GroupTrainer):
        return False
    from rlx.envs.vector import is_batched

    return is_batched(experiment.env, root=root)


def add_seeds(
    run: Run, count_or_seeds: int | Sequence[int], *, is_anyway: bool = False, notice: Notice | None = None
) -> Run:
    """Train more seeds of a run; a count continues after the highest seed.

    Refused if code or versions have changed, unless `is_anyway`: seeds of different code are not replicates.
    """
    from rlx.compare.code_version import CurrentCode

    _refuse_active(run, notice)
    _refuse_foreign(run)
    changes = [] if is_anyway else CurrentCode(run.path.parent.parent).changes(run)
    if changes:
        raise Refused(
            f"{run.name} cannot get further seeds: {', '.join(changes)} changed since",
            hint=f"train a new run: rlx train runs/{run.name}/{SNAPSHOT} (--anyway mixes them: not comparable)",
        )
    if isinstance(count_or_seeds, int):
        first = max((seed.number for seed in run.seeds), default=-1) + 1
        count_or_seeds = range(first, first + count_or_seeds)
    seeds = list(count_or_seeds)
    run = store.add_seeds(run, seeds)
    start(run, seeds)
    return Run(run.path)


def resume(
    run: Run, seeds: Collection[int] | None = None, *, notice: Notice | None = None, pause_step: int | None = None
) -> Run:
    """Continue the seeds that have not completed (default: all), each from its newest valid checkpoint.

    `notice` gets a line of text if this takes a while. A seed that lacks its report gets one. At `pause_step`, the
    seeds are evaluated and save `latest`; another resume continues them.
    """
    _refuse_active(run, notice)
    _refuse_foreign(run)
    if not run.seeds:
        raise UsageError(f"{run.name} has no seeds", hint=f"rlx train --more {run.name} --seeds 1")
    unfinished = [seed.number for seed in run.seeds if not run.is_finished(seed)]
    if seeds is not None:
        unfinished = [number for number in unfinished if number in seeds]
    if not unfinished:
        raise UsageError(
            f"{run.name} is complete: {tally([seed.status.state for seed in run.seeds])}",
            hint=f"go on in a new run: rlx resume {run.name} --fork -s algo.total_timesteps={2 * run.planned_steps}",
        )
    start(run, unfinished, pause_step=pause_step)
    return Run(run.path)


def _refuse_foreign(run: Run) -> None:
    """Refuse to train a run that names code from elsewhere; with `--trust`, its project is one's own from now on."""
    from rlx.evaluate import stored_code

    root = run.path.parent.parent
    stored_code.stored_experiment(run, root=root)
    if stored_code.is_trusting() and run.path.parent == project.runs_folder(root):
        project.mark_own(root)


def _refuse_active(run: Run, notice: Notice | None) -> None:
    if run.is_imported:
        raise UsageError(f"{run.name} was imported: rlx reads it and never trains it", hint=f"rlx info {run.name}")
    if run.is_script:
        next_seed = max((seed.number for seed in run.seeds), default=-1) + 1
        raise UsageError(
            f"{run.name} is trained by a script of your own",
            hint=f"run the script again; `rlx.start(config, seed={next_seed})` adds a seed",
        )
    if store.is_training(run, notice=notice):
        raise Refused(f"{run.name} is training already", hint=f"rlx watch {run.name}")
    if _active_remote_job(run) is not None:
        raise Refused(f"{run.name} is in its executor's queue already", hint=f"rlx wait {run.name}")
    if run.study:
        raise Refused(f"{run.name} is a job of the study {run.study}: only that trains its seeds", hint="rlx next")


@contextlib.contextmanager
def prepared_supervisor() -> Iterator[SupervisorProcess]:
    """Prepare a supervisor that has done its imports; if it gets no run, it ends with the block.

    A fresh process forks it, so that both share the imports. Any other process starts a new interpreter, which does
    its imports while the run is checked.
    """
    from rlx.launch.processes import spawn

    if reexec.is_fresh() and spawn.can_fork({}):
        supervisor: SupervisorProcess = _fork_supervisor()
    else:
        supervisor = _spawn_supervisor([], lasting_environment({}), stdin=subprocess.PIPE)
    assert supervisor.stdin is not None
    try:
        yield supervisor
    finally:
        if not supervisor.stdin.closed:
            supervisor.stdin.close()
            supervisor.kill()  # it has no run yet
            supervisor.wait()


def _fork_supervisor() -> ForkedProcess:
    from rlx.launch import supervisor
    from rlx.launch.processes import spawn
    from rlx.launch.processes.forked_process import fork

    spawn.preload()
    source, sink = os.pipe()
    child = fork(lambda: supervisor.wait_for_run(source))
    os.close(source)
    child.stdin = os.fdopen(sink, "wb")
    _started.append(child)
    return child


def start(
    run: Run,
    seeds: Iterable[int],
    *,
    supervisor: SupervisorProcess | None = None,
    pause_step: int | None = None,
) -> None:
    """Submit seeds to the chosen executor, or start the run's supervisor on this machine.

    The supervisor runs in its own session; this returns when it holds the run's lock. A study chooses its own executor.
    Workers read a `pause_step` from their environment, so a prepared supervisor cannot have one.
    """
    numbers = list(seeds)
    is_study_job = "job" in (run.metadata.get("lineage") or {})
    if not is_study_job:
        _note_plain_training(run, numbers)
    executor = executor_for(run)
    if executor != LOCAL:
        from rlx.launch.executors.remote_job import submit_plain_runs

        submit_plain_runs([TrainingOrder(run, tuple(numbers), pause_step)], executor)
        return
    (run.path / JOBS).unlink(missing_ok=True)  # from now on, this machine has the run
    argv = [str(run.path), *map(str, numbers)]
    if supervisor is None:
        environment = lasting_environment(run.config) | pause_environment(pause_step)
        if is_study_job:
            environment |= neutral_environment()
        (run.path / "logs").mkdir(exist_ok=True)
        with (run.path / "logs" / "supervisor.log").open("ab") as log:
            supervisor = _spawn_supervisor(argv, environment, log=log)
    else:
        assert supervisor.stdin is not None
        with contextlib.suppress(BrokenPipeError), supervisor.stdin as stream:  # the loop below notices a dead one
            stream.write(files.encode(argv) + b"\n")
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and supervisor.poll() is None:
        holder = Run(run.path).supervisor
        if holder and holder.pid == supervisor.pid:
            return
        time.sleep(POLL_SECONDS)
    code = supervisor.poll()
    if code == Refused.exit_code:
        raise Refused(f"{run.name} is being trained by another supervisor", hint=f"rlx watch {run.name}")
    if code != 0:  # with 0 it has already finished: the run was very short
        raise RlxError(f"the supervisor of {run.name} did not start (exit {code})", hint=f"rlx logs {run.name}")


def start_all(orders: Sequence[TrainingOrder]) -> None:
    """Start several runs of a project; another executor than this machine gets all of them in one submission."""
    executor = LOCAL
    if orders:
        executor = executor_for(orders[0].run)
    if executor == LOCAL:
        for order in orders:
            start(order.run, order.seeds, pause_step=order.pause_step)
        return
    from rlx.launch.executors.remote_job import submit_plain_runs

    for order in orders:
        _note_plain_training(order.run, order.seeds)
    submit_plain_runs(orders, executor)


def _note_plain_training(run: Run, seeds: Sequence[int]) -> None:
    """Refuse a plain run if the project wants studies only; else tell the project's approved studies about it."""
    root = run.path.parent.parent
    project.refuse_plain_training(root)
    if (root / ".rlx" / "tasks").is_dir():
        from rlx.launch.study_jobs import outside_runs

        outside_runs.record(run, seeds)


def executor_for(run: Run) -> str:
    """Return the executor that trains further seeds of a run; a study's launch has chosen before it comes here.

    A run stays at the executor that this project sent it to, unless the command or the environment names another one.
    """
    if "job" in (run.metadata.get("lineage") or {}):
        return LOCAL
    if (run.path / JOBS).exists():  # few runs: no need for the imports below
        from rlx.launch.executors.executor_settings import named_by_user
        from rlx.launch.executors.remote_job import executor_sent_to

        return named_by_user() or executor_sent_to(run) or default_executor(run.path.parent.parent)
    return default_executor(run.path.parent.parent)


def default_executor(root: Path) -> str:
    """Return the executor for plain runs of a project: `--executor`, `RLX_EXECUTOR`, `rlx.toml`, or this machine."""
    marker = root / project.MARKER
    if not os.environ.get("RLX_EXECUTOR") and not (marker.is_file() and b"executor" in marker.read_bytes()):
        return LOCAL  # most projects: no need for the import below
    from rlx.launch.executors.executor_settings import chosen_name

    return chosen_name(root)


def has_queue(root: Path) -> bool:
    """Say whether plain runs of a project go to a scheduler, which queues what it has no room for."""
    name = default_executor(root)
    if name == LOCAL:
        return False
    kind = plugins.load(plugins.EXECUTORS, name, kind="executor")
    return bool(kind.splits_seeds)


def _spawn_supervisor(
    argv: list[str], environment: Mapping[str, str], *, stdin: int = subprocess.DEVNULL, log: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "rlx.launch.supervisor", *argv],  # -P: import nothing from the current folder
        stdin=stdin,
        stdout=log or subprocess.DEVNULL,
        stderr=log or subprocess.DEVNULL,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    _started[:] = [*(other for other in _started if other.poll() is None), child]
    return child


def stop(run: Run, *, grace_seconds: float = STOP_SECONDS) -> Run:
    """Ask the supervisor to end: seeds save `latest`. A run that does not end in time is killed with its group.

    A run that another executor trains, or will train, is cancelled there.
    """
    supervisor = run.supervisor
    remote_job = _active_remote_job(run)
    if remote_job is not None and (supervisor is None or process.is_alive(supervisor) is None):
        remote_job.cancel()
        return wait(run, timeout_seconds=grace_seconds)
    if supervisor is None or not process.is_alive(supervisor):
        _kill_groups(_living_workers(run))
        return _stopped(run)
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while process.is_alive(supervisor) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if process.is_alive(supervisor):
        _kill_groups([supervisor, *_living_workers(run)])
    return _stopped(run)


def stop_all(runs: Sequence[Run]) -> None:
    """Stop several runs. Each executor is asked once for all of them."""
    jobs = [job for run in runs if (job := _active_remote_job(run)) is not None]
    if jobs:
        from rlx.launch.executors.remote_job import cancel_all

        cancel_all(jobs)
    for run in runs:
        if is_active(Run(run.path)):
            stop(Run(run.path))


def _stopped(run: Run) -> Run:
    """Return a run that has ended; raise `Refused` if a process that cannot be reached from here trains it."""
    deadline = time.monotonic() + KILL_SECONDS
    while store.is_held(run) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    view = Run(run.path)
    if view.status != RUNNING and not store.is_held(view):
        return view
    trainers = [view.supervisor, *(seed.worker for seed in view.seeds)]
    hosts = [trainer.host for trainer in trainers if trainer and process.is_alive(trainer) is None]
    raise Refused(
        f"{run.name} is still training: rlx cannot reach its processes from here",
        hint=f"type this on {hosts[0] if hosts else 'the host that trains it'}: rlx stop {run.name}",
    )


def _living_workers(run: Run) -> list[process.Process]:
    """Return the processes of seeds that are alive on this machine."""
    started = [event for seed in run.seeds for event in seed.events if event.get("event") == "started"]
    workers = [process.from_document(event.get("process")) for event in started]
    return [worker for worker in workers if worker and process.is_alive(worker)]


def _kill_groups(leaders: list[process.Process]) -> None:
    for leader in leaders:
        kill_group(leader.pid)


def wait(run: Run, *, timeout_seconds: float | None = None) -> Run:
    """Wait until a run has ended, or the time is up."""
    deadline = float("inf")
    if timeout_seconds is not None:
        deadline = time.monotonic() + timeout_seconds
    while is_active(view := Run(run.path)) and time.monotonic() < deadline:
        pause = 0.2 if view.status == RUNNING else ENGINE_SECONDS
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
    return view


def is_active(run: Run) -> bool:
    """Say whether a run trains, or waits for another executor to start or continue it."""
    return run.status == RUNNING or _active_remote_job(run) is not None


def queue_status(run: Run) -> str:
    """Return what the executor says about the seeds of a run that do not train yet; empty if it has none."""
    job = _active_remote_job(run)
    if job is None:
        return ""
    waiting = [status for status in job.statuses().values() if status.state in ("queued", "preempted")]
    if not waiting:
        return ""
    reason = next((status.says for status in waiting if status.says), waiting[0].state)
    return f"{len(waiting)} of {len(job.jobs)} queued: {reason}"


def explain_queued(root: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Say in the rows of a list why queued runs wait: one question for all of them.

    A run that its executor does not have any more gets the state of its folder.
    """
    for row in rows:
        if row["status"] == QUEUED:
            run = Run(project.runs_folder(root) / row["name"])
            row["reason"] = queue_status(run)
            if not row["reason"]:
                row["status"] = run.status


def job_problem(run: Run, seed: int) -> str:
    """Return how the job of a seed ended at its executor, if that was not a success; empty without such a job."""
    if not (run.path / JOBS).exists():
        return ""
    from rlx.launch.executors.remote_job import seed_problem

    return seed_problem(run, seed)


def _active_remote_job(run: Run) -> RemoteJob | None:
    """Return the job of a run at another executor, if there is one that is not over.

    A job that the scheduler ended for reasons of its own is submitted again.
    """
    lineage = run.metadata.get("lineage") or {}
    is_local = str(lineage.get("executor", LOCAL)) == LOCAL
    if is_local and not (run.path / JOBS).exists():  # most runs: no need for the import below
        return None
    from rlx.launch.executors.remote_job import remote_job_of

    job = remote_job_of(run)
    if job is None or not job.is_active:
        return None
    with contextlib.suppress(RlxError):  # a scheduler that refuses or does not answer: it is asked again later
        job.resubmit_preempted()
    return job


def failure(run: Run) -> JobFailed | None:
    """Return the error that a run ended with: the error of the first seed that did not complete."""
    for seed in run.seeds:
        if seed.status.state not in (COMPLETED, RUNNING):
            last = seed.events[-1] if seed.events else {}
            reason = seed.status.reason or seed.status.state
            hint = last.get("hint") or f"rlx info {run.name} --traceback"
            if not seed.step and not run.is_opaque and not last.get("hint"):
                hint = f"rlx check env {run.name} plays the environment and names defects; {hint}"
            return JobFailed(f"{run.name}: seed {seed.number} {seed.status.state}: {reason}", hint=hint)
    return None


def run(config: Experiment | Mapping[str, Any] | str | Path, *, seeds: int | Sequence[int] | None = None) -> Run:
    """Train a config (a file, a mapping or an `Experiment`) and return the finished run.

    Raises `JobFailed` if a seed failed. Ctrl-C stops the run, which can be resumed.
    """
    experiment = _experiment(config, seeds)
    root = project.root()
    started = launch(check(experiment, root=root).experiment, root=root)
    try:
        ended = wait(started)
    except KeyboardInterrupt:
        stop(started)
        raise
    error = failure(ended)
    if error:
        raise error
    return ended


def _experiment(config: Experiment | Mapping[str, Any] | str | Path, seeds: int | Sequence[int] | None) -> Experiment:
    from rlx.config.load import load, parse
    from rlx.config.schema import Experiment
    from rlx.evaluate.stored_code import refuse_stored_code

    if isinstance(config, Experiment):
        experiment = config
    elif isinstance(config, (str, Path)):
        refuse_stored_code(Path(config), root=project.root_of(Path(config)))
        experiment = load(Path(config))
    else:
        experiment = parse(dict(config))
    if seeds is None:
        return experiment
    return experiment.model_copy(update={"seeds": seeds if isinstance(seeds, int) else tuple(seeds)})
