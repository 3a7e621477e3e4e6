"""The short-lived process that talks to a Ray cluster: it reads one order from stdin and prints one answer.

It runs as `python -P -m rlx.launch.executors.ray_client`. Only this module imports Ray.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import ray
import ray.util

from rlx import files
from rlx.launch.executors.executor import PAUSED_EXIT
from rlx.launch.executors.job_runner import die_with
from rlx.launch.executors.ray import ANSWER, NO_CLUSTER_EXIT

NAMESPACE = "rlx"
CONTINUE_SECONDS = 1.0
CONNECT_SECONDS = 10.0


class JobActor:
    """Holds a job's resources on one node and keeps the job's runner alive until the job has ended.

    All work begins in the constructor: the cluster calls it again on another node if this one dies.
    """

    def __init__(self, folder: str) -> None:
        self._argv = [sys.executable, "-P", "-m", "rlx.launch.executors.job_runner", folder]
        self._is_over = False
        self._runner: subprocess.Popen[bytes] | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        """Run the job runner; one that Ray interrupted is started again. Then leave the cluster."""
        code = PAUSED_EXIT
        while code == PAUSED_EXIT and not self._is_over:
            self._runner = subprocess.Popen(self._argv, start_new_session=True, preexec_fn=die_with(os.getpid()))
            code = self._runner.wait()
            if code == PAUSED_EXIT:
                time.sleep(CONTINUE_SECONDS)
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)

    def end(self) -> None:
        """Ask the job runner to end the job."""
        self._is_over = True
        if self._runner is not None:
            with contextlib.suppress(ProcessLookupError):
                self._runner.send_signal(signal.SIGTERM)


def submit(order: dict[str, Any]) -> dict[str, Any]:
    """Create one detached actor for each job; one that exists is left alone."""
    kind: Any = ray.remote(JobActor)
    for actor in order["actors"]:
        options = {
            "name": actor["name"],
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "max_restarts": order["attempts"],
            "get_if_exists": True,
            **actor["resources"],
        }
        kind.options(**options).remote(actor["folder"])
    return {"actors": [actor["name"] for actor in order["actors"]]}


def list_actors(_order: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the actors that the cluster has, waiting or alive."""
    named = ray.util.list_named_actors(all_namespaces=True)
    return {"actors": [actor["name"] for actor in named if actor["namespace"] == NAMESPACE]}


def end(order: dict[str, Any]) -> dict[str, Any]:
    """Ask jobs to end; an actor that never started is removed."""
    ended = []
    for name in order["actors"]:
        with contextlib.suppress(ValueError, ray.exceptions.RayError):  # it is gone already
            actor = ray.get_actor(name, namespace=NAMESPACE)
            try:
                ray.get(actor.end.remote(), timeout=5.0)
            except ray.exceptions.GetTimeoutError:
                ray.kill(actor, no_restart=True)
            ended.append(name)
    return {"actors": ended}


ACTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"submit": submit, "list": list_actors, "end": end}


def refuse_dead_address(address: str) -> None:
    """Raise OSError if nothing listens at `host:port`; Ray itself would try for a minute."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


def main() -> int:
    """Do what stdin orders and print the answer in a line that begins with `ANSWER`: Ray prints lines of its own."""
    order = files.decode(sys.stdin.buffer.read())
    try:
        refuse_dead_address(order["address"])
        ray.init(address=order["address"], namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        print(" ".join(str(error).split())[:300], file=sys.stderr)
        return NO_CLUSTER_EXIT
    answer = ACTIONS[order["action"]](order)
    print(f"{ANSWER}{files.encode(answer).decode()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
