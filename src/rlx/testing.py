"""Conformance suites that plug-in authors subclass: real runs, nothing mocked."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import gymnasium
import numpy as np

from rlx import files
from rlx.config.load import document
from rlx.config.schema import Experiment, Wrapper
from rlx.envs.make import inspect
from rlx.envs.vector import make_vector
from rlx.errors import JobFailed, NotFound
from rlx.evaluate.policy import refuse_changed_actions
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint

if TYPE_CHECKING:
    from rlx.evaluate.policy import Policy
    from rlx.launch.executors.executor import Executor, Job, JobStatus
    from rlx.runs.readers.reader import Reader
    from rlx.train.session import Session
    from rlx.train.trainer import Trainer


@dataclass
class RecordingSession:
    """A session without a run: keeps the rows, saves bundles, and requests a stop at a given poll."""

    experiment: Experiment
    folder: Path
    root: Path
    seed: int = 0
    checkpoint: Checkpoint | None = None
    stop_at_poll: int | None = None
    save_every_update: bool = False
    rows: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    greedy: Any = None
    is_complete: bool = False
    polls: int = 0

    def __post_init__(self) -> None:
        self.observations = sample_observations(self.experiment, self.root)

    @property
    def stop_requested(self) -> bool:
        self.polls += 1
        return self.stop_at_poll is not None and self.polls > self.stop_at_poll

    @property
    def saved(self) -> Checkpoint:
        """The newest checkpoint, read back from disk."""
        found = checkpoints.newest(self.folder)
        assert found is not None, "nothing was saved"
        return found

    def begin(self, policy: Policy, snapshot: Callable[[], Bundle]) -> None:
        """Keep the untrained policy."""
        policy.predict(self.observations)
        self._save(snapshot().policy_only(), name=checkpoints.UNTRAINED)

    def is_due(self, step: int) -> bool:
        return True

    def after_update(
        self, step: int, metrics: Callable[[], Mapping[str, float]], *, policy: Policy, snapshot: Callable[[], Bundle]
    ) -> bool:
        """Keep the row without its times. Save and end if the run is complete or a stop was requested."""
        self.rows.append((step, {key: value for key, value in metrics().items() if not key.startswith("time/")}))
        self.is_complete = step >= self.experiment.algo.total_timesteps
        goes_on = not self.is_complete and not self.stop_requested
        if self.save_every_update:
            self._save(snapshot(), name=f"step_{step}")
        if not goes_on:
            self._save(snapshot(), name="latest")
            policy.reset()
            self.greedy = policy.predict(self.observations)
        return goes_on

    def interrupt(self, snapshot: Callable[[], Bundle]) -> None:
        self._save(snapshot(), name="latest")

    def progress(self, step: int, episode_return: float | None = None) -> None:
        """Show nothing."""

    def _save(self, bundle: Bundle, *, name: str) -> None:
        checkpoints.write(self.folder, bundle, name=name, config=document(self.experiment))


class Poisoned(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives a reward that is not a number after some steps; for testing that training stops."""

    def __init__(self, env: gymnasium.Env[Any, Any], after: int) -> None:
        super().__init__(env)
        self.steps_left = after

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps_left -= 1
        return observation, math.nan if self.steps_left < 0 else reward, terminated, truncated, info


def sample_observations(experiment: Experiment, root: Path, count: int = 4) -> Any:
    """Return a batch of raw observations of the experiment's environment."""
    env = make_vector(experiment.env, root=root, num_envs=count)
    try:
        return env.reset(seed=7)[0]
    finally:
        env.close()


def digest(bundle: Bundle) -> str:
    """Return the sha256 of all weights and optimizer states."""
    total = hashlib.sha256()
    for part in (bundle.policy, bundle.optimizer):
        for name in sorted(part):
            total.update(f"{name} {part[name].dtype} {part[name].shape}".encode())
            total.update(np.asarray(part[name], order="C").tobytes())
    return total.hexdigest()


class TrainerContract(ABC):
    """What every training backend must hold. Subclass it, name the trainer, and return a tiny experiment.

    The experiment should take a second or two, with a handful of updates; `stops` are shares of the whole run at
    which training is interrupted, one after the other, each counted from the previous one.
    """

    trainer: ClassVar[Callable[[], Trainer]]
    stops: ClassVar[tuple[float, ...]] = (0.0, 0.02, 0.11, 0.23, 0.31)

    @abstractmethod
    def experiment(self) -> Experiment:
        """Return a small, fully resolved experiment."""

    def root(self) -> Path:
        """Return the project's root, where `file.py:Class` names are looked up."""
        return Path.cwd()

    def rehearse(self, folder: Path, experiment: Experiment | None = None, **settings: Any) -> RecordingSession:
        """Train once and return the session."""
        session = RecordingSession(experiment or self.experiment(), folder, root=self.root(), **settings)
        type(self).trainer().train(cast("Session", session))
        return session

    def test_the_experiment_passes_its_own_check(self) -> None:
        experiment = self.experiment()
        found = type(self).trainer().check(experiment, inspect(experiment.env, root=self.root()))
        assert [problem for problem in found if problem.is_error] == []

    def test_trains_to_the_planned_step_and_logs_the_last_update(self, tmp_path: Path) -> None:
        session = self.rehearse(tmp_path)
        steps = [step for step, _ in session.rows]
        assert session.is_complete
        assert steps == sorted(set(steps))
        assert steps[-1] == session.saved.step >= session.experiment.algo.total_timesteps
        assert "train/learning_rate" in session.rows[-1][1]
        assert all(isinstance(value, float) for _, row in session.rows for value in row.values())

    def test_the_same_seed_gives_the_same_weights(self, tmp_path: Path) -> None:
        one, two = (self.rehearse(tmp_path / name) for name in ("one", "two"))
        assert digest(one.saved) == digest(two.saved)

    def test_another_seed_gives_other_weights(self, tmp_path: Path) -> None:
        one, two = (self.rehearse(tmp_path / str(seed), seed=seed) for seed in (0, 1))
        assert digest(one.saved) != digest(two.saved)

    def test_a_stop_request_is_honoured_and_leaves_a_checkpoint(self, tmp_path: Path) -> None:
        whole = self.rehearse(tmp_path / "whole")
        session = self.rehearse(tmp_path / "stopped", stop_at_poll=whole.polls // 2)
        assert not session.is_complete
        assert session.saved.step < session.experiment.algo.total_timesteps

    def test_stopped_and_resumed_again_and_again_it_ends_where_it_would_have(self, tmp_path: Path) -> None:
        whole = self.rehearse(tmp_path / "whole")
        checkpoint: Checkpoint | None = None
        for share in (*self.stops, None):
            stop = None if share is None else int(share * whole.polls)
            session = self.rehearse(tmp_path / "parts", checkpoint=checkpoint, stop_at_poll=stop)
            checkpoint = session.saved
        assert session.is_complete
        assert session.saved.step == whole.saved.step
        if whole.saved.resume == "exact":
            assert digest(session.saved) == digest(whole.saved)
        else:
            assert whole.saved.missing

    def test_resumed_from_any_boundary_it_ends_where_it_would_have(self, tmp_path: Path) -> None:
        whole = self.rehearse(tmp_path / "whole", save_every_update=True)
        names = [name for name in checkpoints.names(whole.folder) if name.startswith("step_")]
        for name in names[:: max(1, len(names) // 3)]:
            found = checkpoints.read(whole.folder / name)
            if found.step >= whole.experiment.algo.total_timesteps:
                continue
            resumed = self.rehearse(tmp_path / name, checkpoint=found)
            assert resumed.saved.step == whole.saved.step
            if found.resume == "exact":
                assert digest(resumed.saved) == digest(whole.saved), name

    def test_a_loaded_policy_acts_as_it_did_in_training_and_the_untrained_one_loads(self, tmp_path: Path) -> None:
        session = self.rehearse(tmp_path)
        policy = type(self).trainer().load(session.saved)
        refuse_changed_actions(policy, session.saved)
        np.testing.assert_array_equal(policy.predict(session.observations), session.greedy)

        untrained = checkpoints.read(session.folder / checkpoints.UNTRAINED)
        assert (untrained.step, untrained.optimizer, untrained.replay) == (0, {}, {})
        assert digest(untrained) != digest(session.saved)
        type(self).trainer().load(untrained).predict(session.observations)

    def test_a_reward_that_is_not_a_number_stops_the_seed(self, tmp_path: Path) -> None:
        import pytest

        experiment = self.experiment()
        poison = Wrapper(name=f"{__name__}:{Poisoned.__name__}", kwargs={"after": 20})
        env = experiment.env.model_copy(update={"wrappers": (*experiment.env.wrappers, poison)})
        with pytest.raises(JobFailed, match=r"reward.* is nan at step \d+"):
            self.rehearse(tmp_path, experiment.model_copy(update={"env": env}))


class ReaderContract(ABC):
    """What every log reader must hold. Subclass it, name the reader, and write a log as its program would.

    `write(path, start, count)` appends `count` rows from row `start` on: row n is at step 100 × n and has
    `loss` = n / 4 and `score` = n, but NaN in row 2 and infinity in row 3.
    """

    reader: ClassVar[Callable[..., Reader]]
    place: ClassVar[str]
    foreign: ClassVar[Mapping[str, str]] = {"notes.md": "# nothing", "weights.bin": "\x00"}
    """Files by name that the reader must not claim."""
    settings: ClassVar[Mapping[str, Any]] = {}
    tears: ClassVar[bool] = True
    """Whether a row can be torn by cutting off the file's last bytes."""

    @abstractmethod
    def write(self, path: Path, start: int, count: int) -> None:
        """Append rows to the log at `path`."""

    def file(self, path: Path) -> Path:
        """Return the file in which the last rows are."""
        return path

    def read(self, path: Path, reader: Reader | None = None, *, is_last: bool = False) -> dict[int, dict[str, float]]:
        """Return the figures by step."""
        found: dict[int, dict[str, float]] = {}
        for point in (reader or self.made()).read(path, is_last=is_last):
            found.setdefault(point.step, {}).update(point.values)
        return found

    def made(self) -> Reader:
        """Return a reader that has read nothing yet."""
        return type(self).reader(**self.settings)

    @staticmethod
    def expected(rows: Iterable[int]) -> dict[int, dict[str, float]]:
        """Return what rows hold."""
        scores = {2: math.nan, 3: math.inf}
        return {100 * row: {"loss": row / 4, "score": scores.get(row, float(row))} for row in rows}

    @staticmethod
    def same(found: Mapping[int, Mapping[str, float]], expected: Mapping[int, Mapping[str, float]]) -> bool:
        """Compare figures; NaN is NaN."""
        return repr({step: dict(sorted(row.items())) for step, row in found.items()}) == repr(
            {step: dict(sorted(row.items())) for step, row in expected.items()}
        )

    def test_claims_its_own_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / self.place
        assert not self.made().claims(path)
        self.write(path, 0, 3)
        assert self.made().claims(path)
        for name, content in self.foreign.items():
            (tmp_path / name).write_text(content)
            assert not self.made().claims(tmp_path / name), name

    def test_reads_every_figure_with_its_step_nan_and_infinity_included(self, tmp_path: Path) -> None:
        self.write(tmp_path / self.place, 0, 6)
        reader = self.made()
        assert self.same(self.read(tmp_path / self.place, reader), self.expected(range(6)))
        assert list(reader.names) == ["loss", "score"]
        assert reader.skipped == 0

    def test_a_second_read_returns_what_is_new(self, tmp_path: Path) -> None:
        reader, path = self.made(), tmp_path / self.place
        assert self.read(path, reader) == {}
        for start in (0, 2, 4):
            self.write(path, start, 2)
            assert self.same(self.read(path, reader), self.expected(range(start, start + 2)))
        assert self.read(path, reader) == {}

    def test_a_torn_end_waits_until_it_is_whole(self, tmp_path: Path) -> None:
        reader, path = self.made(), tmp_path / self.place
        self.write(path, 0, 5)
        whole = self.file(path).read_bytes()
        for cut in range(1, 9) if self.tears else ():
            self.file(path).write_bytes(whole[:-cut])
            assert set(self.read(path)) <= {0, 100, 200, 300, 400}
            assert self.same(
                {step: row for step, row in self.read(path).items() if step < 400}, self.expected(range(4))
            )
        self.file(path).write_bytes(whole[:-3])
        before = self.read(path, reader)
        self.file(path).write_bytes(whole)
        after = self.read(path, reader)
        assert self.same({step: before.get(step, {}) | after.get(step, {}) for step in (*before, *after)},
                         self.expected(range(5)))  # fmt: skip

    def test_what_is_no_log_gives_no_points_and_no_error(self, tmp_path: Path) -> None:
        path = self.file(tmp_path / self.place)
        path.parent.mkdir(parents=True, exist_ok=True)
        for content in (b"", b"\x00\xff" * 500, b"{", b"a,b\n\xff\n", b"step: \n"):
            path.write_bytes(content)
            assert self.read(tmp_path / self.place, is_last=True) == {}


class ExecutorContract:
    """What every executor must hold. Subclass it, and return an executor whose jobs have their folders at a place.

    Real processes everywhere. `settings` are the executor's templates, if it has any.
    """

    executor: ClassVar[str]
    survives: ClassVar[bool] = True
    """Whether a job continues if the process that submitted it is killed."""
    patience_seconds: ClassVar[float] = 60.0

    def settings(self, tmp_path: Path) -> Mapping[str, Sequence[str]]:
        """Return the templates `submit`, `poll` and `cancel`."""
        return {}

    def made(self, tmp_path: Path) -> Executor:
        """Return an executor that knows only the files on disk."""
        from rlx.launch.executors.executor import make_executor

        return make_executor(self.executor, tmp_path / "jobs", **self.settings(tmp_path))

    def job(self, tmp_path: Path, code: str, *, id: str = "j001") -> Job:
        """Return a job that runs Python code in `tmp_path`."""
        from rlx.launch.executors.executor import Job

        return Job(id, (sys.executable, "-c", code), tmp_path, env={"GREETING": "hello there"})

    def until(self, executor: Executor, id: str, *states: str) -> JobStatus:
        """Wait until a job has one of these states."""
        deadline = time.monotonic() + self.patience_seconds
        while (standing := executor.poll(id)).state not in states:
            assert time.monotonic() < deadline, f"{id} is {standing}, not {states}: {executor.logs(id)}"
            time.sleep(0.02)
        return standing

    def submit(self, tmp_path: Path, code: str) -> Executor:
        """Submit a job and return the executor. If that waits for its jobs, submit from a thread."""
        executor = self.made(tmp_path)
        if self.survives:
            executor.submit(self.job(tmp_path, code))
        else:
            threading.Thread(target=executor.submit, args=(self.job(tmp_path, code),), daemon=True).start()
            wait_for(tmp_path / "jobs" / "j001" / "process.json", seconds=self.patience_seconds)
        return executor

    def test_a_job_that_ends_well_is_completed_and_got_its_environment_and_folder(self, tmp_path: Path) -> None:
        code = "import os; print(os.environ['GREETING'], os.getcwd()); open('done', 'w').close()"
        executor = self.submit(tmp_path, code)
        assert self.until(executor, "j001", "completed", "failed").exit_code == 0
        assert (tmp_path / "done").exists()
        assert f"hello there {tmp_path}" in executor.logs("j001")

    def test_a_job_that_fails_keeps_the_end_of_its_log(self, tmp_path: Path) -> None:
        code = "print('x' * 100_000); raise ValueError('the arm fell off')"
        executor = self.submit(tmp_path, code)
        assert self.until(executor, "j001", "completed", "failed", "lost").state == "failed"
        assert executor.poll("j001").exit_code == 1
        assert executor.logs("j001").strip().endswith("ValueError: the arm fell off")
        assert len(executor.logs("j001")) < 50_000

    def test_a_program_that_is_not_there_fails(self, tmp_path: Path) -> None:
        from rlx.launch.executors.executor import Job

        executor = self.made(tmp_path)
        executor.submit(Job("j001", ("/no/such/program",), tmp_path))
        assert self.until(executor, "j001", "completed", "failed", "lost").state == "failed"

    def test_a_cancelled_job_is_asked_to_end_and_says_so(self, tmp_path: Path) -> None:
        code = (
            "import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: (open('asked', 'w').close(), sys.exit(3)))\n"
            "open('ready', 'w').close(); time.sleep(600)"
        )
        if not self.survives:
            return  # its jobs end with the process that submitted them
        executor = self.submit(tmp_path, code)
        wait_for(tmp_path / "ready", seconds=self.patience_seconds)
        executor.cancel("j001")
        assert self.until(executor, "j001", "cancelled", "completed", "failed").state == "cancelled"
        assert (tmp_path / "asked").exists()
        executor.cancel("j001")
        assert executor.poll("j001").state == "cancelled"

    def test_a_job_that_is_killed_has_failed_and_is_not_completed(self, tmp_path: Path) -> None:
        code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        executor = self.submit(tmp_path, code)
        deadline = time.monotonic() + self.patience_seconds
        while not executor.logs("j001").strip().isdigit():
            assert time.monotonic() < deadline, executor.logs("j001")
            time.sleep(0.02)
        os.kill(int(executor.logs("j001")), signal.SIGKILL)
        assert "SIGKILL" in self.until(executor, "j001", "failed", "lost", "completed").says

    def test_a_carrier_that_is_killed_leaves_a_lost_job_and_no_process(self, tmp_path: Path) -> None:
        if not self.survives:
            return  # it is this very process
        code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
        executor = self.submit(tmp_path, code)
        wait_for(tmp_path / "pid", seconds=self.patience_seconds)
        os.kill(files.read_json(tmp_path / "jobs" / "j001" / "process.json")["pid"], signal.SIGKILL)
        assert self.until(executor, "j001", "lost", "failed", "completed").state == "lost"
        deadline = time.monotonic() + self.patience_seconds
        while Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()

    def test_a_job_goes_on_without_its_controller_or_ends_with_it_and_a_new_one_finds_it(self, tmp_path: Path) -> None:
        import subprocess

        code = "import os, time\nopen('pid', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.02)"
        controller = (
            "import os, signal, sys; from pathlib import Path\n"
            "from rlx.launch.executors.executor import Job, make_executor\n"
            f"place, settings = Path({str(tmp_path / 'jobs')!r}), {dict(self.settings(tmp_path))!r}\n"
            f"made = make_executor({self.executor!r}, place, **settings)\n"
            f"made.submit(Job('j001', (sys.executable, '-c', {code!r}), Path({str(tmp_path)!r})))\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        child = subprocess.Popen([sys.executable, "-c", controller], start_new_session=True)
        wait_for(tmp_path / "pid", seconds=self.patience_seconds)
        if not self.survives:
            child.kill()
        child.wait()
        executor = self.made(tmp_path)
        assert executor.recover() == (("j001",) if self.survives else ())
        (tmp_path / "go").touch()
        expected = "completed" if self.survives else "lost"
        assert self.until(executor, "j001", "completed", "lost", "failed").state == expected
        assert executor.recover() == ()

    def test_a_job_submitted_twice_runs_once(self, tmp_path: Path) -> None:
        code = "import os, time; open('runs', 'a').write('once\\n'); time.sleep(0.3)"
        threads = [
            threading.Thread(target=self.made(tmp_path).submit, args=(self.job(tmp_path, code),)) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        executor = self.made(tmp_path)
        executor.submit(self.job(tmp_path, code))
        self.until(executor, "j001", "completed")
        executor.submit(self.job(tmp_path, code))
        assert (tmp_path / "runs").read_text() == "once\n"

    def test_an_unknown_job_is_not_found(self, tmp_path: Path) -> None:
        import pytest

        for call in (self.made(tmp_path).poll, self.made(tmp_path).cancel, self.made(tmp_path).logs):
            with pytest.raises(NotFound, match="no job"):
                call("../j002")


def wait_for(path: Path, *, seconds: float) -> None:
    """Wait until a file is there and has something in it, or is empty for good."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)
