"""Jobs on a real Ray cluster: killed workers, removed nodes, killed drivers, two clusters on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.errors import UsageError
from rlx.launch.executors.executor import Job
from rlx.launch.executors.ray import RayExecutor
from rlx.launch.executors.scheduler import SchedulerUnreachable
from rlx.study.task.task import Launcher
from rlx.testing import ExecutorContract
from tests.conftest import Project, wait_until
from tests.faults.lab import Lab
from tests.launch.executors import ray_cluster, sweeps
from tests.launch.executors.ray_cluster import RayCluster

needs_ray = pytest.mark.skipif(ray_cluster.IS_ABSENT, reason=ray_cluster.REASON)
# A job that saves its work when it is interrupted, and ends when it is started again.
PAUSES = """
import os, signal, sys, time
open('starts', 'a').write('x')
if os.path.exists('saved'):
    sys.exit(0)
def pause(*_):
    open('saved', 'w').close()
    sys.exit(75)
signal.signal(signal.SIGUSR1, pause)
print('ready on', os.environ.get('WHERE'), flush=True)
open('ready', 'w').close()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[RayCluster]:
    with ray_cluster.running(cpus=2, gpus=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(own_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> RayCluster:
    for name in ray_cluster.VARIABLES:
        monkeypatch.setenv(name, own_cluster.environment[name])
    return own_cluster


def executor_at(cluster: RayCluster, place: Path) -> RayExecutor:
    executor = RayExecutor(place / "jobs", address=cluster.address, poll_seconds=0.5)

    def answers() -> bool:
        try:
            executor.ask()
        except SchedulerUnreachable:
            return False
        return True

    wait_until(answers, seconds=90)
    return executor


def pausing_job(folder: Path) -> Job:
    return Job("j001", (sys.executable, "-c", PAUSES), folder, env={"WHERE": "a node"}, resumes=True)


@needs_ray
@pytest.mark.slow
class TestRayContract(ExecutorContract):
    executor = "ray"
    patience_seconds = 120.0

    @pytest.fixture(autouse=True)
    def _own(self, cluster: RayCluster) -> None:
        self.address = cluster.address

    def settings(self, tmp_path: Path) -> Mapping[str, Any]:
        return {"address": self.address, "poll_seconds": 5.0}


@needs_ray
@pytest.mark.slow
class TestRay:
    def test_a_killed_worker_s_job_goes_on_from_what_it_saved(self, cluster: RayCluster, tmp_path: Path) -> None:
        executor = executor_at(cluster, tmp_path)
        executor.submit(pausing_job(tmp_path))
        wait_until((tmp_path / "ready").exists)
        runner = files.read_json(tmp_path / "jobs" / "j001" / "process.json")["pid"]
        worker = int(Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(worker, 9)
        wait_until(lambda: executor.poll("j001").is_over)
        assert executor.poll("j001").state == "completed"
        assert (tmp_path / "starts").read_text() == "xx"
        assert "ready on a node" in executor.logs("j001")

    def test_a_killed_driver_leaves_its_job_and_the_next_finds_it(self, cluster: RayCluster, tmp_path: Path) -> None:
        code = (
            "import os, signal, sys; from pathlib import Path\n"
            "from rlx.launch.executors.executor import Job; from rlx.launch.executors.ray import RayExecutor\n"
            f"made = RayExecutor(Path({str(tmp_path / 'jobs')!r}), address={cluster.address!r})\n"
            "wait = ('sh', '-c', 'echo x >> starts; while [ ! -e go ]; do sleep 0.1; done')\n"
            f"made.submit(Job('j001', wait, Path({str(tmp_path)!r}))); os.kill(os.getpid(), signal.SIGKILL)"
        )
        subprocess.run([sys.executable, "-c", code], check=False)
        executor = RayExecutor(tmp_path / "jobs", address=cluster.address, poll_seconds=0.5)
        assert executor.recover() == ("j001",)
        executor.submit(Job("j001", ("false",), tmp_path))
        wait_until((tmp_path / "starts").exists)
        (tmp_path / "go").touch()
        wait_until(lambda: executor.poll("j001").is_over)
        assert executor.poll("j001").state == "completed"
        assert (tmp_path / "starts").read_text() == "x\n"

    def test_jobs_wait_for_room_and_can_be_cancelled(self, cluster: RayCluster, tmp_path: Path) -> None:
        executor = executor_at(cluster, tmp_path)
        jobs = [Job(f"j{number}", ("sleep", "600"), tmp_path, cores=2) for number in range(2)]
        executor.submit_all(jobs)
        wait_until(lambda: sorted(executor.poll(job.id).state for job in jobs) == ["queued", "running"])
        waiting = next(job.id for job in jobs if executor.poll(job.id).state == "queued")
        assert executor.poll(waiting).says == "waiting for cores, GPUs or memory"
        executor.cancel_all([job.id for job in jobs])
        wait_until(lambda: all(executor.poll(job.id).state == "cancelled" for job in jobs))

    def test_a_removed_node_s_job_goes_on_at_another(self, cluster: RayCluster, tmp_path: Path) -> None:
        executor = executor_at(cluster, tmp_path)
        first = cluster.add_node(cpus=4)
        try:
            code = "echo x >> starts; [ $(wc -l < starts) = 2 ] || sleep 600"
            executor.submit(Job("j001", ("sh", "-c", code), tmp_path, cores=4, resumes=True))
            wait_until((tmp_path / "starts").exists, seconds=90)
        finally:
            ray_cluster.stop(first)
        second = cluster.add_node(cpus=4)
        try:
            wait_until(lambda: executor.poll("j001").state == "completed", seconds=150)
        finally:
            ray_cluster.stop(second)
        assert (tmp_path / "starts").read_text() == "x\nx\n"

    def test_ray_gives_every_job_its_own_gpus(self, cluster: RayCluster, tmp_path: Path) -> None:
        executor = executor_at(cluster, tmp_path)
        code = 'echo "$CUDA_VISIBLE_DEVICES" > "gpus-$WHICH"; while [ ! -e go ]; do sleep 0.1; done'
        jobs = [Job(f"j{one}", ("sh", "-c", code), tmp_path, env={"WHICH": one}, gpus=1.0) for one in ("a", "b")]
        executor.submit_all(jobs)
        wait_until(lambda: len(list(tmp_path.glob("gpus-*"))) == 2, seconds=90)
        wait_until(lambda: all(path.read_text() for path in tmp_path.glob("gpus-*")))
        assert {path.read_text().strip() for path in tmp_path.glob("gpus-*")} == {"0", "1"}
        (tmp_path / "go").touch()
        wait_until(lambda: all(executor.poll(job.id).is_over for job in jobs))

    def test_two_clusters_on_one_machine_do_not_meet(self, cluster: RayCluster, tmp_path: Path) -> None:
        executor = RayExecutor(tmp_path / "one", address=cluster.address)
        before = executor.ask().keys()
        with ray_cluster.running(cpus=1) as other:
            elsewhere = executor_at(other, tmp_path / "two")
            elsewhere.submit(Job("j001", ("sleep", "600"), tmp_path))
            assert len(elsewhere.ask()) == 1
            assert executor.ask().keys() == before

    def test_a_run_on_ray_has_the_weights_of_a_run_on_this_machine(self, cluster: RayCluster, project: Project) -> None:
        with (project.root / "rlx.toml").open("a") as stream:
            stream.write(f'\n[executor]\naddress = "{cluster.address}"\npoll_seconds = 1\n')
        for executor in ("local", "ray"):
            project.rlx("train", project.config(), "--seeds", "2", "--executor", executor)
        first, second = sorted((project.root / "runs").iterdir())
        for seed in (0, 1):
            weights = [run / f"seed_{seed}/checkpoints/latest/policy.safetensors" for run in (first, second)]
            assert weights[0].read_bytes() == weights[1].read_bytes()

    @pytest.mark.timeout(2400)  # RLX_SWEEP_TRIALS=40 takes a while
    def test_a_sweep_on_ray_has_the_scores_of_a_sweep_on_this_machine(
        self, cluster: RayCluster, project: Project
    ) -> None:
        sweeps.use(project, settings=f'address = "{cluster.address}"\npoll_seconds = 10')
        project.rlx(*sweeps.words_of(project, "here"), timeout=2400)
        project.rlx(*sweeps.words_of(project, "there"), "--executor", "ray", timeout=2400)
        assert sweeps.results(project, "there") == sweeps.results(project, "here")
        assert sweeps.attempts(project, "there") == sweeps.attempts(project, "here")

    def test_ray_carries_a_study_from_its_baseline_to_its_decision(
        self, cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        lab = Lab.found(tmp_path / "state", Launcher(executor="ray"))
        typed = lab.goes_on()
        assert [words.split()[0] for words in typed] == ["propose", "check", "launch", "wait", "decide"]
        assert [job.outcome for job in lab.study.state().jobs.values()] == ["completed", "completed"]
        assert len(list((lab.root / ".rlx" / "jobs").glob("*/exit.json"))) == 7


@pytest.mark.parametrize(("asked", "sent"), [(0.0, 0.0), (0.5, 0.5), (1.5, 2), (2.0, 2)])
def test_ray_is_asked_for_a_part_of_one_gpu_or_for_whole_ones(tmp_path: Path, asked: float, sent: float) -> None:
    resources = RayExecutor(tmp_path)._resources(Job("j001", ("true",), tmp_path, gpus=asked))
    assert resources["num_gpus"] == sent


def test_without_ray_one_line_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="Ray is not installed here"):
        RayExecutor(tmp_path / "jobs").submit(Job("j001", ("true",), tmp_path))


@needs_ray
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchedulerUnreachable, match=r"no Ray cluster at `127\.0\.0\.1:9`"):
        RayExecutor(tmp_path / "jobs", address="127.0.0.1:9").submit(Job("j001", ("true",), tmp_path))
