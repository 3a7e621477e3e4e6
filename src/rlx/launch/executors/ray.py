"""Run jobs on a Ray cluster: one detached actor per job, with the cores, GPUs and memory that the job asks for.

rlx itself never imports Ray. A short-lived process (`ray_client`) connects to the cluster, so that a cluster that
dies takes no process of rlx with it. The cluster keeps a detached actor and starts it again if its worker or its node
dies. The job then continues from its own checkpoint.
Not covered: clusters whose nodes cannot see the project's folder, and the death of the head node.
"""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from rlx import files
from rlx.errors import UsageError
from rlx.launch.executors.executor import Job
from rlx.launch.executors.scheduler import QueueEntry, Scheduler, SchedulerUnreachable

CLIENT = "rlx.launch.executors.ray_client"
PREFIX = "rlx-"
CLIENT_SECONDS = 120.0
NO_CLUSTER_EXIT = 3
ANSWER = "rlx-answer: "  # begins the line with the client's answer; Ray prints lines of its own


class NoCluster(SchedulerUnreachable):
    """No cluster could be reached, so it was not asked to do anything."""


class RayExecutor(Scheduler):
    """Sends jobs to a Ray cluster as detached actors, whose names tell them apart."""

    name = "ray"

    def send(self, jobs: Sequence[Job]) -> None:
        """Create one actor per job; the cluster queues those that it has no room for."""
        actors = []
        for job in jobs:
            folder = self.folder(job.id).absolute()
            name = f"{PREFIX}{uuid.uuid4().hex[:16]}"
            self.note_sending(folder, name)
            actors.append({"name": name, "folder": str(folder), "resources": self._resources(job)})
        try:
            self._call("submit", {"actors": actors, "attempts": self.settings.attempts})
        except NoCluster:
            self.note_refused([self.folder(job.id) for job in jobs])
            raise
        for actor, job in zip(actors, jobs, strict=True):
            self.note_submitted(self.folder(job.id), str(actor["name"]))

    def ask(self) -> Mapping[str, QueueEntry]:
        """Return the actors that the cluster has; an actor that is gone has ended."""
        names = self._call("list", {})["actors"]
        return {name: QueueEntry(name, "waiting", "waiting for cores, GPUs or memory") for name in names}

    def end(self, ids: Sequence[str]) -> None:
        """Ask the job runners of jobs to end, then remove their actors."""
        self._call("end", {"actors": list(ids)})

    def _resources(self, job: Job) -> dict[str, Any]:
        gpus = job.gpus if self.settings.gpus is None else self.settings.gpus
        if gpus > 1:
            gpus = math.ceil(gpus)  # Ray shares one GPU, but never a part of a second one
        resources: dict[str, Any] = {"num_cpus": self.settings.cores or job.cores, "num_gpus": gpus}
        memory_gb = job.memory_gb or self.settings.memory_gb
        if memory_gb:
            resources["memory"] = int(memory_gb * 2**30)
        return resources

    def _call(self, action: str, order: Mapping[str, Any]) -> Any:
        """Let a short-lived process do something at the cluster, and return its answer."""
        if importlib.util.find_spec("ray") is None:
            raise UsageError("executor ray: Ray is not installed here", hint="pip install 'rlx[ray]'")
        document = {"action": action, "address": self.settings.address, **order}
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", CLIENT], input=files.encode(document), capture_output=True, check=False,
                timeout=CLIENT_SECONDS, env={**os.environ, "RAY_DEDUP_LOGS": "0"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SchedulerUnreachable(f"Ray gave no answer within {CLIENT_SECONDS:.0f} seconds") from None
        printed = done.stdout.decode("utf-8", "replace").splitlines()
        lines = [line for line in printed if line.startswith(ANSWER)]
        if done.returncode or not lines:
            errors = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
            if done.returncode != NO_CLUSTER_EXIT:
                raise SchedulerUnreachable(f"Ray gave no answer: {errors[-1][:300]}", hint="run the same command again")
            raise NoCluster(
                f"no Ray cluster at `{self.settings.address}`: {errors[-1][:300]}",
                hint="start one with `ray start --head`, or name it: [executor] address in rlx.toml",
            )
        return files.decode(lines[-1].removeprefix(ANSWER))
