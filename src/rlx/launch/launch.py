"""Start, stop and resume runs: every training, a person's or a loop's, begins here."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from rlx import files
from rlx.errors import ConfigError, JobFailed, Refused, RlxError, UsageError
from rlx.launch import interpreter
from rlx.launch.interpreter import lasting_environment
from rlx.launch.resources import neutral_environment
from rlx.runs import process, project, store
from rlx.runs.run import SNAPSHOT, Run
from rlx.runs.status import COMPLETED, PREPARED, RUNNING, tally

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.launch.carried import Carried
    from rlx.launch.forked import Forked
    from rlx.train.choose import Choice

START_SECONDS = 20.0
STOP_SECONDS = 45.0
POLL_SECONDS = 0.01
ENGINE_SECONDS = 2.0
Supervisor: TypeAlias = "subprocess.Popen[bytes] | Forked"
_started: list[Supervisor] = []
"""Supervisors that are our children: whoever goes on living has to bury them."""


def check(experiment: Experiment, *, root: Path) -> Choice:
    """Make the environment once and choose the backend: refuse what cannot train, return what to launch and why.

    A command has an environment of its own, which is not made.
    """
    from rlx.config import devices
    from rlx.config.cross_check import cross_check
    from rlx.diagnose.stopping import stop_problems
    from rlx.envs.make import inspect
    from rlx.evaluate.scenarios import scenario_problems
    from rlx.train.choose import Choice, as_told, choose, makes_env

    problems = [*cross_check(experiment, devices=devices.present()), *stop_problems(experiment.stop)]
    choice = as_told(experiment)
    if makes_env(experiment):
        choice = choose(experiment, inspect(experiment.env, root=root))
        problems += [*choice.problems, *scenario_problems(experiment, root=root)]
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        raise ConfigError("\n  also ".join(error.message for error in errors), hint=errors[0].hint)
    return Choice(choice.experiment, choice.reason, tuple(problems))


def launch(
    experiment: Experiment,
    *,
    root: Path,
    lineage: Mapping[str, Any] | None = None,
    supervisor: Supervisor | None = None,
) -> Run:
    """Create a run for an experiment that was checked, and start its supervisor (or use one that is `prepared`)."""
    run = create(experiment, root=root, lineage=lineage)
    start(run, [seed.number for seed in run.seeds], supervisor=supervisor)
    return Run(run.path)


def create(experiment: Experiment, *, root: Path, lineage: Mapping[str, Any] | None = None) -> Run:
    """Create the run's folder for an experiment that names its backend: snapshot, identity, seeds."""
    from rlx.config.load import config_hash, dump, group_hash
    from rlx.train.choose import AUTO

    if experiment.backend == AUTO:
        raise ValueError("`check` chooses the backend; create the run from the experiment it returns")
    identity = {
        "env": experiment.env.id,
        "algorithm": experiment.algo.name,
        "backend": experiment.backend,
        "total_timesteps": experiment.algo.total_timesteps if experiment.algo.says_length else 0,
        "config_hash": config_hash(experiment),
        "group_hash": group_hash(experiment),
        "argv": sys.argv,
        "lineage": dict(lineage or {}),
        **({"together": True} if _is_together(experiment, root) else {}),
    }
    return store.create(
        root, name=experiment.run_name, snapshot=dump(experiment), metadata=identity, seeds=experiment.training_seeds()
    )


def _is_together(experiment: Experiment, root: Path) -> bool:
    """Say whether one process trains several seeds: worlds and weights are stepped as arrays."""
    from rlx.train.trainer import GroupTrainer, trainer_for

    if not isinstance(trainer_for(experiment), GroupTrainer):
        return False
    from rlx.envs.vector import is_batched

    return is_batched(experiment.env, root=root)


def more(run: Run, count_or_seeds: int | Sequence[int], *, is_anyway: bool = False) -> Run:
    """Train further seeds of a run: a count goes on after its highest seed.

    Refused where code or versions changed since, unless `is_anyway`: seeds of two codes are no replicates.
    """
    from rlx.compare.ground import Ground

    _refuse_running(run)
    changes = [] if is_anyway else Ground(run.path.parent.parent).changes(run)
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


def resume(run: Run, seeds: Collection[int] | None = None) -> Run:
    """Continue seeds that have not completed (default all), in place, each from its newest valid checkpoint."""
    _refuse_running(run)
    wanted = [seed for seed in run.seeds if seeds is None or seed.number in seeds]
    unfinished = [seed.number for seed in wanted if seed.status.state != COMPLETED]
    if not run.seeds:
        raise UsageError(f"{run.name} has no seeds", hint=f"rlx train --more {run.name} --seeds 1")
    if not unfinished:
        raise UsageError(
            f"{run.name} is complete: {tally([seed.status.state for seed in run.seeds])}",
            hint=f"go on in a new run: rlx resume {run.name} --fork -s algo.total_timesteps={2 * run.planned_steps}",
        )
    start(run, unfinished)
    return Run(run.path)


def _refuse_running(run: Run) -> None:
    if run.is_script:
        raise UsageError(
            f"{run.name} is trained by a script of your own",
            hint=f'run the script again; `rlx.start(config, seed=1, run="{run.name}")` adds a seed',
        )
    if run.status == RUNNING:
        raise Refused(f"{run.name} is training already", hint=f"rlx watch {run.name}")
    if run.study:
        raise Refused(f"{run.name} is a job of the study {run.study}: only that trains its seeds", hint="rlx next")


@contextlib.contextmanager
def prepared() -> Iterator[Supervisor]:
    """Make ready a supervisor that has its imports behind it; without a run it ends with the block.

    It is forked from a process that has only just begun, and its imports are then ours too; else it is started, and
    imports while the run is being checked.
    """
    from rlx.launch import workers

    is_forked = interpreter.is_new() and workers.can_fork({})
    supervisor = _forked() if is_forked else _supervisor([], lasting_environment({}), stdin=subprocess.PIPE)
    assert supervisor.stdin is not None
    try:
        yield supervisor
    finally:
        if not supervisor.stdin.closed:
            supervisor.stdin.close()
            supervisor.kill()  # it holds nothing yet
            supervisor.wait()


def _forked() -> Forked:
    from rlx.launch import supervisor, workers
    from rlx.launch.forked import fork

    workers.warm()
    source, sink = os.pipe()
    child = fork(lambda: supervisor.wait_for_run(source))
    os.close(source)
    child.stdin = os.fdopen(sink, "wb")
    _started.append(child)
    return child


def start(run: Run, seeds: Iterable[int], *, supervisor: Supervisor | None = None) -> None:
    """Start the run's supervisor in a session of its own and return once it holds the lease."""
    argv = [str(run.path), *map(str, seeds)]
    if supervisor is None:
        (run.path / "logs").mkdir(exist_ok=True)
        with (run.path / "logs" / "supervisor.log").open("ab") as log:
            supervisor = _supervisor(argv, {**lasting_environment(run.config), **_neutral(run)}, log=log)
    else:
        _hand_over(supervisor, argv)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        holder = Run(run.path).supervisor
        if holder and holder.pid == supervisor.pid:
            return
        if supervisor.poll() is not None:
            break
        time.sleep(POLL_SECONDS)
    _explain_start(run, supervisor)


def _neutral(run: Run) -> dict[str, str]:
    return neutral_environment() if "job" in (run.metadata.get("lineage") or {}) else {}


def _supervisor(
    argv: list[str], environment: Mapping[str, str], *, stdin: int = subprocess.DEVNULL, log: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "rlx.launch.supervisor", *argv],  # -P: nothing is imported from where it stands
        stdin=stdin,
        stdout=log or subprocess.DEVNULL,
        stderr=log or subprocess.DEVNULL,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    _started[:] = [*(one for one in _started if one.poll() is None), started]
    return started


def _hand_over(supervisor: Supervisor, argv: list[str]) -> None:
    assert supervisor.stdin is not None
    with contextlib.suppress(BrokenPipeError), supervisor.stdin as stream:  # one that died is found out below
        stream.write(files.encode(argv) + b"\n")


def _explain_start(run: Run, supervisor: Supervisor) -> None:
    code = supervisor.poll()
    if code == 0:  # so short that it ended before we looked
        return
    if code == Refused.exit_code:
        raise Refused(f"{run.name} is being trained by another supervisor", hint=f"rlx watch {run.name}")
    raise RlxError(f"the supervisor of {run.name} did not start (exit {code})", hint=f"rlx logs {run.name}")


def stop(run: Run, *, grace_seconds: float = STOP_SECONDS) -> Run:
    """Ask the supervisor to end: seeds save `latest`; what does not end in time is killed with its whole group.

    One that another engine carries, or will begin, is cancelled there.
    """
    supervisor = run.supervisor
    engine = _carried(run)
    if engine is not None and (supervisor is None or process.is_alive(supervisor) is None):
        engine.cancel()
        return Run(run.path)
    if supervisor is None or not process.is_alive(supervisor):
        _kill_groups(_living_workers(run))
        return Run(run.path)
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while process.is_alive(supervisor) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if process.is_alive(supervisor):
        _kill_groups([supervisor, *_living_workers(run)])
    return Run(run.path)


def _living_workers(run: Run) -> list[process.Process]:
    """Return the seeds' processes that are alive on this machine."""
    started = [event for seed in run.seeds for event in seed.events if event.get("event") == "started"]
    workers = [process.from_document(event.get("process")) for event in started]
    return [worker for worker in workers if worker and process.is_alive(worker)]


def _kill_groups(leaders: list[process.Process]) -> None:
    for leader in leaders:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGKILL)


def wait(run: Run, *, timeout_seconds: float | None = None) -> Run:
    """Wait until a run is no longer running, or the time is up."""
    deadline = time.monotonic() + timeout_seconds if timeout_seconds is not None else float("inf")
    while goes_on(view := Run(run.path)) and time.monotonic() < deadline:
        pause = 0.2 if view.status == RUNNING else ENGINE_SECONDS
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
    return view


def until_begun(run: Run, *, timeout_seconds: float | None = None) -> Run:
    """Wait while an engine has a run in its queue, or the time is up."""
    deadline = time.monotonic() + timeout_seconds if timeout_seconds is not None else float("inf")
    while (view := Run(run.path)).status == PREPARED and _carried(view) is not None and time.monotonic() < deadline:
        time.sleep(min(ENGINE_SECONDS, max(0.0, deadline - time.monotonic())))
    return view


def goes_on(run: Run) -> bool:
    """Say whether a run trains, or waits for an engine to begin it."""
    return run.status == RUNNING or (run.status == PREPARED and _carried(run) is not None)


def _is_carried(run: Run) -> bool:
    """Say whether an engine other than this machine carries a run; light, because every run is asked."""
    lineage = run.metadata.get("lineage") or {}
    return str(lineage.get("executor", "local")) != "local"


def _carried(run: Run) -> Carried | None:
    """Return a run's job at its engine, where that is not over."""
    from rlx.launch.carried import carried

    found = carried(run) if _is_carried(run) else None
    return found if found is not None and found.is_under_way else None


def failure(run: Run) -> JobFailed | None:
    """Return the error a run ended with: the first seed's that did not complete."""
    for seed in run.seeds:
        if seed.status.state not in (COMPLETED, RUNNING):
            last = seed.events[-1] if seed.events else {}
            reason = seed.status.reason or seed.status.state
            hint = last.get("hint") or f"rlx info {run.name} --traceback"
            return JobFailed(f"{run.name}: seed {seed.number} {seed.status.state}: {reason}", hint=hint)
    return None


def run(config: Experiment | Mapping[str, Any] | str | Path, *, seeds: int | Sequence[int] | None = None) -> Run:
    """Train a config (a file, a mapping or an `Experiment`) and return the finished run.

    Raises `JobFailed` where a seed failed; Ctrl-C stops the run, which can be resumed.
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

    if isinstance(config, Experiment):
        experiment = config
    elif isinstance(config, (str, Path)):
        experiment = load(Path(config))
    else:
        experiment = parse(dict(config))
    if seeds is None:
        return experiment
    return experiment.model_copy(update={"seeds": seeds if isinstance(seeds, int) else tuple(seeds)})
