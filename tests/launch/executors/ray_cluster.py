"""A Ray cluster of the machine's own, with its own ports and folders, for tests."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IS_ABSENT = importlib.util.find_spec("ray") is None
VARIABLES = ("HOME", "RAY_AUTH_MODE")
START_SECONDS = 90.0
REASON = "RAY IS NOT TESTED: it is not installed here (pip install 'rlx[ray]')"


@dataclass
class RayCluster:
    """A head node, and nodes that can be added and killed."""

    address: str
    folder: Path
    environment: dict[str, str]

    def add_node(self, *, cpus: int) -> subprocess.Popen[bytes]:
        """Start a node; it and its workers die if its process group is killed."""
        return _start(self.environment, f"--address={self.address}", f"--num-cpus={cpus}")


@contextlib.contextmanager
def running(*, cpus: int = 2, gpus: int = 0) -> Iterator[RayCluster]:
    """Start a cluster and stop it by its process group. Its GPUs are numbers that Ray gives out, without devices."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # Ray's sockets need a short path
    environment = {
        **os.environ, "HOME": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DISABLE_IMPORT_WARNING": "1",
    }  # fmt: skip
    port = _free_port()
    head = _start(
        environment, "--head", f"--port={port}", f"--num-cpus={cpus}", f"--num-gpus={gpus}",
        "--include-dashboard=false", f"--temp-dir={folder}", "--object-store-memory=80000000",
    )  # fmt: skip
    address = f"127.0.0.1:{port}"
    try:
        _wait_for(port)
        yield RayCluster(address, folder, environment)
    finally:
        stop(head)
        shutil.rmtree(folder, ignore_errors=True)


def stop(node: subprocess.Popen[bytes]) -> None:
    """Kill a node with all its processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(node.pid, 9)
    node.wait()


def _start(environment: dict[str, str], *options: str) -> subprocess.Popen[bytes]:
    ray = str(Path(sys.executable).parent / "ray")
    return subprocess.Popen(
        [ray, "start", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1", *options],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _wait_for(port: int) -> None:
    """Wait until the head node answers: a slow machine takes a while to start it."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the head node of Ray did not start"
            time.sleep(0.2)
        else:
            return


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
