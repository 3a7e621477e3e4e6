"""With local sockets a job has a loopback network of its own; nothing outside can be reached."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from rlx.sandbox import namespaces
from rlx.sandbox.popen import PIPE, SandboxedCommand, start
from rlx.sandbox.spec import SandboxSpec, system_reads

CODE = """import socket, sys
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 2)
print("inside")
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)
    print("reached")
except OSError:
    print("not outside")
"""


@pytest.mark.skipif(not namespaces.has_own_network(), reason="this account cannot have a network of its own")
def test_processes_connect_to_each_other_and_not_to_the_outside() -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        spec = SandboxSpec(reads=system_reads(), local_sockets=True)
        argv = [sys.executable, "-c", CODE, str(outside.getsockname()[1])]
        process = start(SandboxedCommand(argv, spec, {}, Path("/")), stdout=PIPE)
        printed, _ = process.communicate(timeout=60)
    assert printed.decode().split("\n")[:2] == ["inside", "not outside"]


def test_without_local_sockets_there_is_no_loopback() -> None:
    spec = SandboxSpec(reads=system_reads())
    process = start(SandboxedCommand([sys.executable, "-c", CODE, "1"], spec, {}, Path("/")), stdout=PIPE, stderr=PIPE)
    process.communicate(timeout=60)
    assert process.returncode == 1
