"""Jobs on a real Slurm of one node: arrays, interruptions, lost answers, a controller that restarts."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rlx.errors import ConfigError, JobFailed, UsageError
from rlx.hosts.cli.progress import RunProgress
from rlx.hosts.ui.layout import Site
from rlx.hosts.ui.run_list import run_list
from rlx.launch import launch
from rlx.launch.executors.executor import Job, JobStatus
from rlx.launch.executors.executor_settings import ExecutorSettings
from rlx.launch.executors.slurm import SlurmExecutor, array_id, entries, script
from rlx.runs.index import LiveIndex
from rlx.runs.run import Run
from rlx.testing import ExecutorContract
from tests.conftest import Project, wait_until
from tests.launch.executors import cluster, sweeps

SETTINGS = """MaxArraySize=10
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""
QUICK = {"poll_seconds": 0.2}
IS_LONG = bool(os.environ.get("RLX_LONG_TESTS"))
"""A test that repeats something 20 times does so only if somebody asks for it."""
# A job that saves its work when it is asked to pause, and ends when it is started again.
PAUSES = """
import os, signal, sys, time
open('starts', 'a').write('x')
if os.path.exists('saved'):
    sys.exit(0)
def pause(*_):
    open('saved', 'w').close()
    sys.exit(75)
signal.signal(signal.SIGUSR1, pause)
signal.signal(signal.SIGTERM, pause)
open('ready', 'w').close()
time.sleep(600)
"""
needs_slurm = pytest.mark.skipif(bool(cluster.ABSENT), reason=cluster.REASON)


@pytest.fixture(scope="session")
def own_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with cluster.running(tmp_path_factory.mktemp("slurm"), settings=SETTINGS) as conf:
        yield conf


@pytest.fixture
def slurm(own_slurm: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLURM_CONF", str(own_slurm))
    return own_slurm


@needs_slurm
@pytest.mark.slow
class TestSlurmContract(ExecutorContract):
    executor = "slurm"
    patience_seconds = 120.0

    @pytest.fixture(autouse=True)
    def _cluster(self, slurm: Path) -> None:
        pass

    def settings(self, tmp_path: Path) -> Mapping[str, Any]:
        return QUICK


def pausing_job(folder: Path, id: str = "j001") -> Job:
    folder.mkdir(exist_ok=True)
    return Job(id, (sys.executable, "-c", PAUSES), folder, resumes=True)


def until(executor: SlurmExecutor, job: str, *states: str) -> None:
    wait_until(lambda: executor.poll(job).state in states, seconds=60)


def start_when_queued(executor: SlurmExecutor, task: str) -> None:
    """Start a requeued task soon; Slurm itself waits two minutes."""
    wait_until(lambda: "BeginTime" in executor.poll("j001").says, seconds=60)
    start_soon(task)


def start_soon(task: str) -> None:
    """Start a requeued task in two seconds; in the same second, Slurm could not start it."""
    subprocess.run(["scontrol", "update", f"JobId={task}", "StartTime=now+2"], check=True)


def squeue(*options: str) -> str:
    return subprocess.run(["squeue", "-h", "-r", *options], capture_output=True, text=True, check=True).stdout


@needs_slurm
@pytest.mark.slow
class TestInterruptions:
    def test_a_warned_job_saves_and_is_requeued_and_goes_on(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        executor.submit(pausing_job(tmp_path / "out"))
        wait_until((tmp_path / "out" / "ready").exists, seconds=60)
        task = squeue("-o", "%i").split()[0]
        subprocess.run(["scancel", "--batch", "--signal=USR1", task], check=True)
        start_when_queued(executor, task)
        until(executor, "j001", "completed", "failed", "lost")
        assert executor.poll("j001") == JobStatus("completed", 0)
        assert (tmp_path / "out" / "starts").read_text() == "xx"

    def test_a_job_that_an_operator_requeues_goes_on(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        executor.submit(pausing_job(tmp_path / "out"))
        wait_until((tmp_path / "out" / "ready").exists, seconds=60)
        task = squeue("-o", "%i").split()[0]
        subprocess.run(["scontrol", "requeue", task], check=True)
        start_when_queued(executor, task)
        until(executor, "j001", "completed", "failed", "lost")
        assert executor.poll("j001") == JobStatus("completed", 0)
        assert (tmp_path / "out" / "starts").read_text() == "xx"

    def test_a_job_whose_time_is_up_goes_on_in_another_attempt(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", minutes=1, signal_seconds=20, **QUICK)
        executor.submit(pausing_job(tmp_path / "out"))
        wait_until((tmp_path / "out" / "ready").exists, seconds=60)
        task = squeue("-o", "%i").split()[0]
        wait_until((tmp_path / "out" / "saved").exists, seconds=150)
        start_when_queued(executor, task)
        until(executor, "j001", "completed", "failed", "lost")
        assert executor.poll("j001") == JobStatus("completed", 0)
        assert (tmp_path / "out" / "starts").read_text() == "xx"

    def test_a_job_that_preemption_cancels_is_submitted_again(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        executor.submit(pausing_job(tmp_path / "out"))
        wait_until((tmp_path / "out" / "ready").exists, seconds=60)
        subprocess.run(["sbatch", "-p", "high", "-n1", f"-c{os.cpu_count()}", "-o", "/dev/null", "--wrap", "sleep 1"],
                       check=True, capture_output=True)  # fmt: skip
        until(executor, "j001", "completed", "failed", "lost", "cancelled")
        assert executor.poll("j001") == JobStatus("completed", 0)
        assert (tmp_path / "out" / "starts").read_text() == "xx"

    def test_a_job_that_a_person_cancels_stays_cancelled(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        executor.submit(pausing_job(tmp_path / "out"))
        wait_until((tmp_path / "out" / "ready").exists, seconds=60)
        subprocess.run(["scancel", "--full", *squeue("-o", "%i").split()], check=True)
        until(executor, "j001", "cancelled", "completed", "failed", "lost", "preempted")
        assert executor.poll("j001").state == "cancelled"
        assert (tmp_path / "out" / "saved").exists()

    def test_a_job_on_a_drained_node_waits_with_its_reason(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        node = subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test"], check=True)
        try:
            executor.submit(Job("j001", ("true",), tmp_path))
            wait_until(lambda: "DRAINED" in executor.poll("j001").says, seconds=60)
        finally:
            subprocess.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], check=True)
        until(executor, "j001", "completed", "lost")


@needs_slurm
@pytest.mark.slow
class TestSubmissions:
    def test_arrays_are_cut_to_the_site_s_size_and_every_job_runs_once(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", array_limit=4, **QUICK)
        jobs = [Job(f"j{number:03d}", ("sh", "-c", f"echo {number} >> all"), tmp_path) for number in range(25)]
        executor.submit_all(jobs)
        assert len(list((tmp_path / "jobs" / "arrays").iterdir())) == 3
        wait_until(lambda: all(executor.poll(job.id).state == "completed" for job in jobs), seconds=120)
        assert sorted(map(int, (tmp_path / "all").read_text().split())) == list(range(25))

    def test_slurm_gives_every_job_its_own_gpus(self, slurm: Path, tmp_path: Path) -> None:
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        code = 'echo "$CUDA_VISIBLE_DEVICES" > "gpus-$WHICH"; while [ ! -e go ]; do sleep 0.1; done'
        jobs = [Job(f"j{one}", ("sh", "-c", code), tmp_path, env={"WHICH": one}, gpus=0.5) for one in ("a", "b")]
        executor.submit_all(jobs)
        wait_until(lambda: len([path for path in tmp_path.glob("gpus-*") if path.read_text()]) == 2, seconds=60)
        assert {path.read_text().strip() for path in tmp_path.glob("gpus-*")} == {"0", "1"}
        (tmp_path / "go").touch()
        wait_until(lambda: all(executor.poll(job.id).state == "completed" for job in jobs), seconds=60)

    def test_a_submission_that_fails_with_an_error_yet_works_is_found(
        self, slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = shutil.which("sbatch")
        _program(tmp_path, "sbatch", f'{real} "$@" >/dev/null; echo "Socket timed out" >&2; exit 1', monkeypatch)
        executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
        executor.submit(Job("j001", ("sh", "-c", "echo x >> starts"), tmp_path))
        until(executor, "j001", "completed", "failed", "lost")
        executor.submit(Job("j001", ("sh", "-c", "echo x >> starts"), tmp_path))
        assert (tmp_path / "starts").read_text() == "x\n"

    def test_a_submitter_killed_at_any_moment_submits_nothing_twice(self, slurm: Path, tmp_path: Path) -> None:
        code = (
            "import sys; from pathlib import Path\n"
            "from rlx.launch.executors.executor import Job\n"
            "from rlx.launch.executors.slurm import SlurmExecutor\n"
            "print('ready', flush=True); place = Path(sys.argv[1])\n"
            "job = Job('j001', ('sh', '-c', f'echo x >> {place}/starts'), place)\n"
            "SlurmExecutor(place / 'jobs', poll_seconds=0.2).submit(job)"
        )
        moments = random.Random(25)
        places = [tmp_path / f"p{number}" for number in range(20)]
        for place in places:
            place.mkdir()
            child = subprocess.Popen([sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(moments.uniform(0.0, 0.2))
            child.kill()
            child.communicate()
        for place in places:
            executor = SlurmExecutor(place / "jobs", **QUICK)
            executor.submit(Job("j001", ("sh", "-c", f"echo x >> {place}/starts"), place))
        for place in places:
            executor = SlurmExecutor(place / "jobs", **QUICK)
            until(executor, "j001", "completed", "failed", "lost")
            assert (place / "starts").read_text() == "x\n"

    def test_a_refused_submission_is_quoted(self, slurm: Path, tmp_path: Path) -> None:
        with pytest.raises(JobFailed, match=r"Slurm refused the jobs: .*[Ii]nvalid partition"):
            SlurmExecutor(tmp_path / "jobs", partition="nowhere").submit(Job("j001", ("true",), tmp_path))


@needs_slurm
@pytest.mark.slow
def test_a_run_on_slurm_has_the_weights_of_a_run_on_this_machine(slurm: Path, project: Project) -> None:
    with (project.root / "rlx.toml").open("a") as stream:
        stream.write("\n[executor]\npoll_seconds = 0.5\n")
    config = project.config()
    for executor in ("local", "slurm"):
        project.rlx("train", config, "--seeds", "2", "--executor", executor)
    first, second = sorted((project.root / "runs").iterdir())
    for seed in (0, 1):
        weights = [run / f"seed_{seed}" / "checkpoints" / "latest" / "policy.safetensors" for run in (first, second)]
        assert weights[0].read_bytes() == weights[1].read_bytes()


@needs_slurm
@pytest.mark.slow
@pytest.mark.parametrize("interruption", ["warned", "preempted"])
def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(
    slurm: Path, project: Project, interruption: str
) -> None:
    sweeps.use(project, settings="poll_seconds = 0.5")
    config = project.config(algo={"total_timesteps": 60_000}, checkpoint={"save_every": 500})
    project.rlx("train", config, "--seeds", "1", "--executor", "slurm", "--detach")
    wait_until(lambda: project.run("tiny_001").seed(0).step > 1000, seconds=60)
    task = squeue("-o", "%i").split()[0]
    if interruption == "warned":
        subprocess.run(["scancel", "--batch", "--signal=USR1", task], check=True)
        wait_until(lambda: "BeginTime" in squeue("-o", "%r"), seconds=60)
        start_soon(task)
    else:
        subprocess.run(["sbatch", "-p", "high", "-n1", f"-c{os.cpu_count()}", "-o", "/dev/null", "--wrap", "sleep 1"],
                       check=True, capture_output=True)  # fmt: skip
    project.rlx("wait", "tiny_001", timeout=240)
    project.rlx("train", config, "--seeds", "1", "--executor", "local", timeout=240)
    seeds = [project.run(name).seed(0) for name in ("tiny_001", "tiny_002")]
    assert [seed.status.attempt for seed in seeds] == [2, 1]
    labels = [event["label"] for event in seeds[0].events if event["event"] == "resumed"]
    assert labels == ["exact"]
    weights = [(seed.folder / "checkpoints/latest/policy.safetensors").read_bytes() for seed in seeds]
    assert weights[0] == weights[1]


@needs_slurm
@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was_sent(slurm: Path, project: Project) -> None:
    sweeps.use(project, settings="poll_seconds = 0.5")
    project.rlx("train", project.config(algo={"total_timesteps": 100_000}), "--seeds", "1", "--executor", "slurm",
                "--detach")  # fmt: skip
    wait_until(lambda: project.run("tiny_001").seeds[0].step > 0, seconds=60)
    project.rlx("stop", "tiny_001")
    assert "on slurm" in project.rlx("resume", "tiny_001", "--detach").stderr
    assert len(list((project.root / ".rlx" / "jobs").glob("*/job.json"))) == 2
    project.rlx("stop", "tiny_001")


@needs_slurm
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_command_killed_at_any_moment_loses_and_repeats_no_seed(slurm: Path, project: Project) -> None:
    sweeps.use(project, settings="poll_seconds = 0.5")
    words = ("train", project.config(), "--seeds", "2", "--executor", "slurm", "--detach")
    began = time.monotonic()
    project.rlx(*words)
    whole = time.monotonic() - began
    moments = random.Random(25)
    for _ in range(20 if IS_LONG else 3):
        child = project.start(*words)
        time.sleep(moments.uniform(0.3, 1.1) * whole)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    print(f"{len(project.runs())} runs")
    for name in project.runs():
        if not launch.is_active(project.run(name)):
            project.rlx("resume", name, "--executor", "slurm", "--detach", code=None)  # 2: it has completed
        project.rlx("wait", name, timeout=600)
    attempts = [seed.status.attempt for name in project.runs() for seed in project.run(name).seeds]
    assert set(attempts) <= {1}
    jobs = list((project.root / ".rlx" / "jobs").glob("*/job.json"))
    assert len(jobs) == len(attempts)
    assert all(json.loads((job.parent / "exit.json").read_text())["code"] == 0 for job in jobs)


@needs_slurm
@pytest.mark.slow
class TestSweep:
    @pytest.mark.timeout(2400)  # RLX_SWEEP_TRIALS=40 takes a while
    def test_a_sweep_on_slurm_has_the_scores_of_a_sweep_on_this_machine(self, slurm: Path, project: Project) -> None:
        sweeps.use(project, settings="poll_seconds = 0.5")
        project.rlx(*sweeps.words_of(project, "here"), timeout=2400)
        project.rlx(*sweeps.words_of(project, "there"), "--executor", "slurm", timeout=2400)
        assert sweeps.results(project, "there") == sweeps.results(project, "here")
        assert sweeps.attempts(project, "there") == sweeps.attempts(project, "here")
        jobs = list((project.root / ".rlx" / "jobs").glob("*/job.json"))
        assert len(jobs) == len(sweeps.results(project, "there"))
        assert len(list((project.root / ".rlx" / "jobs" / "arrays").iterdir())) < len(jobs)

    def test_a_killed_sweep_finds_its_jobs_again(self, slurm: Path, project: Project) -> None:
        sweeps.use(project, settings="poll_seconds = 0.5")
        child = project.start(*sweeps.words_of(project, "k"), "--executor", "slurm")
        wait_until(lambda: list((project.root / ".rlx" / "jobs").glob("*/submitted.json")))
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        project.rlx("sweep", "resume", "k", timeout=2400)
        scores = sweeps.results(project, "k")
        assert None not in scores.values()
        assert len(list((project.root / ".rlx" / "jobs").glob("*/job.json"))) == len(scores)
        project.rlx(*sweeps.words_of(project, "straight"), timeout=2400)
        assert sweeps.attempts(project, "k") == sweeps.attempts(project, "straight")


@needs_slurm
@pytest.mark.slow
def test_a_restarted_controller_loses_nothing(slurm: Path, tmp_path: Path) -> None:
    executor = SlurmExecutor(tmp_path / "jobs", **QUICK)
    code = "import os, time\nopen('starts', 'a').write('x')\nwhile not os.path.exists('go'): time.sleep(0.05)"
    executor.submit(Job("j001", (sys.executable, "-c", code), tmp_path))
    wait_until((tmp_path / "starts").exists, seconds=60)
    pid = int((slurm.parent / "ctld.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    executor.queue(is_new=True)
    assert executor.poll("j001").state == "running"
    path = f"{os.environ['PATH']}:/usr/sbin"
    subprocess.run(["slurmctld", "-f", str(slurm)], env={**os.environ, "PATH": path}, check=True)
    (tmp_path / "go").touch()
    until(executor, "j001", "completed", "failed", "lost")
    assert (tmp_path / "starts").read_text() == "x"


def _program(folder: Path, name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a shell script before all other programs of its name."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(f"#!/bin/sh\n{body}\n")
    (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


def test_one_question_per_interval_is_enough_for_5000_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tmp_path / "names"
    _program(tmp_path, "scontrol", "echo 'MaxArraySize = 10000'", monkeypatch)
    _program(tmp_path, "sbatch", "echo 7", monkeypatch)
    _program(tmp_path, "squeue", f"echo asked >> {tmp_path}/asked; cat {names}", monkeypatch)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    executor = SlurmExecutor(tmp_path / "jobs")
    jobs = [Job(f"j{number:04d}", ("true",), tmp_path) for number in range(5000)]
    executor.submit_all(jobs)
    (array,) = (tmp_path / "jobs" / "arrays").iterdir()
    names.write_text("".join(f"{array.name}|{number}|7|PENDING|Priority|N/A\n" for number in range(5000)))
    for _ in range(2):
        other = SlurmExecutor(tmp_path / "jobs")  # as another process would
        statuses = [other.poll(job.id) for job in jobs]
        assert {(status.state, status.says) for status in statuses} == {("queued", "PENDING (Priority)")}
    assert (tmp_path / "asked").read_text().count("asked") == 1


def test_without_slurm_one_line_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="executor slurm: no program `scontrol` here"):
        SlurmExecutor(tmp_path / "jobs").submit(Job("j001", ("true",), tmp_path))


class TestNewRuns:
    """What a `rlx train` that Slurm does not take leaves behind."""

    @pytest.fixture(autouse=True)
    def _programs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _program(tmp_path, "scontrol", "echo 'MaxArraySize = 100'", monkeypatch)
        _program(tmp_path, "squeue", f"[ ! -e {tmp_path}/line ] || cat {tmp_path}/line", monkeypatch)

    def test_a_refused_run_leaves_nothing(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _program(tmp_path, "sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1", monkeypatch)
        done = project.rlx("train", project.config(), "--executor", "slurm", code=5)
        assert "Slurm refused the jobs: sbatch: error: invalid partition" in done.stderr
        assert project.runs() == []
        assert not list((project.root / ".rlx" / "jobs").glob("*/job.json"))

    def test_a_run_whose_order_may_arrive_stays_and_is_found_by_its_name(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = f'echo x >> {tmp_path}/asked; echo "Socket timed out on send/recv operation" >&2; exit 1'
        _program(tmp_path, "sbatch", body, monkeypatch)
        done = project.rlx("train", project.config(), "--executor", "slurm", code=5)
        assert "hint: try again: rlx resume tiny_001" in done.stderr
        (array,) = (project.root / ".rlx" / "jobs" / "arrays").iterdir()
        (tmp_path / "line").write_text(f"{array.name}|0|7|PENDING|Priority|N/A\n")
        project.rlx("resume", "tiny_001", "--detach")
        assert (tmp_path / "asked").read_text() == "x\n"
        assert "PENDING (Priority)" in project.rlx("ls").stdout

    def test_queued_runs_are_listed_until_slurm_does_not_have_them(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (project.root / "rlx.toml").write_text("[executor]\npoll_seconds = 0.001\n")
        line = "0|7|PENDING|Resources|2030-01-01T10:00:00"
        body = f'for word; do :; done; echo "$(basename "$(dirname "$word")")|{line}" > {tmp_path}/line; echo 7'
        _program(tmp_path, "sbatch", body, monkeypatch)
        project.rlx("train", project.config(), "--executor", "slurm", "--detach")
        (array,) = (project.root / ".rlx" / "jobs" / "arrays").iterdir()
        listed = json.loads(project.rlx("ls", "--status", "queued", "--json").stdout)
        assert [row["status"] for row in listed["runs"]] == ["queued"]
        assert "PENDING (Resources), expected start 2030-01-01T10:00:00" in listed["runs"][0]["reason"]
        assert json.loads(project.rlx("ls", "--status", "prepared", "--json").stdout)["total"] == 0
        index = LiveIndex(project.root)
        page = run_list(Site("a project"), index, {})
        index.close()
        watched = [line.text for line in RunProgress(project.root / "runs" / "tiny_001").read()]
        for seen in (page, *watched[-1:]):
            assert "PENDING (Resources), expected start 2030-01-01T10:00:00" in seen
        copy = shutil.copytree(project.root / "runs", tmp_path / "elsewhere" / "runs") / "tiny_001"
        assert launch.executor_for(project.run("tiny_001")) == "slurm"
        assert launch.executor_for(Run(copy)) == "local"
        (tmp_path / "line").write_text(f"{array.name}|0|7|CANCELLED|None|N/A\n")
        for _ in range(2):  # first Slurm says it, then the folder does
            assert json.loads(project.rlx("ls", "--status", "queued", "--json").stdout)["total"] == 0
        assert json.loads(project.rlx("ls", "--status", "prepared", "--json").stdout)["total"] == 1


@pytest.mark.parametrize(
    ("asked", "expected"), [({}, []), ({"memory_gb": 2.5}, ["--mem=2560M"]), ({"gpus": 0.5}, ["--gres=gpu:1"])]
)
def test_memory_and_gpus_are_requested_only_if_asked_for(asked: dict[str, Any], expected: Sequence[str]) -> None:
    written = script("rlx-1", Path("/arrays/rlx-1"), Job("j001", ("true",), Path("/out")), ExecutorSettings(**asked))
    found = [line.removeprefix("#SBATCH ") for line in written.splitlines() if "--mem" in line or "--gres" in line]
    assert found == expected
    assert "--signal=B:USR1@90" in written


def test_settings_stand_in_the_script() -> None:
    settings = ExecutorSettings(
        partition="gpu", account="lab", minutes=30, requeue=False, setup=("module load cuda",),
        container=("apptainer", "exec", "a b.sif"),
    )  # fmt: skip
    written = script("rlx-1", Path("/arrays/rlx-1"), Job("j001", ("true",), Path("/out"), cores=3), settings)
    for part in ("--partition=gpu", "--account=lab", "--time=30", "--no-requeue", "--cpus-per-task=3",
                 "\nmodule load cuda\n", "\nexec apptainer exec 'a b.sif' "):  # fmt: skip
        assert part in written


def test_an_unknown_setting_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[executor\] has no key `partion`"):
        _ = SlurmExecutor(tmp_path, partion="gpu").settings


def test_squeue_s_lines_become_entries() -> None:
    printed = (
        "rlx-a|0|7|PENDING|Resources|2026-11-18T10:00:00\n"
        "rlx-a|1|9|RUNNING|None|2026-11-18T09:00:00\n"
        "rlx-a|1|7|TIMEOUT|TimeLimit|N/A\n"
        "other|0|8|RUNNING|None|N/A\n"
    )
    found = entries(printed)
    assert found.keys() == {"rlx-a/0", "rlx-a/1"}
    assert found["rlx-a/0"].says == "PENDING (Resources), expected start 2026-11-18T10:00:00"
    assert (found["rlx-a/1"].id, found["rlx-a/1"].phase) == ("9_1", "running")


@pytest.mark.parametrize(
    ("printed", "id"), [("12\n", "12"), ("12;cluster\n", "12"), ("sbatch: warning\n12\n", "12"), ("", "")]
)
def test_the_id_is_found_in_what_sbatch_printed(printed: str, id: str) -> None:
    assert array_id(printed) == id
