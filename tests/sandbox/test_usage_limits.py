"""What processes use together is seen from outside."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from rlx.sandbox.popen import SandboxedCommand, kill, start
from rlx.sandbox.spec import SandboxSpec, system_reads
from rlx.sandbox.usage_limits import UsageLimits, exceeded_limit, folder_bytes

CODE = """
import subprocess
block = bytearray(b"x") * 60_000_000
children = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
with open("file", "wb") as stream: stream.write(bytes(1_000_000))
print("up", flush=True)
children[0].wait()
"""


def test_the_cap_that_is_passed_is_named(tmp_path: Path) -> None:
    kept = SandboxSpec(reads=system_reads(), writes=(tmp_path,))
    argv = [sys.executable, "-I", "-c", CODE]
    process = start(SandboxedCommand(argv, kept, {"PATH": "/usr/bin:/bin"}, tmp_path), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        caps = UsageLimits(processes=20, memory_bytes=2**30, folder=tmp_path, folder_bytes=2**22)
        assert exceeded_limit(process.pid, caps) is None
        tighter = {
            "processes": {"processes": 3},
            "memory": {"memory_bytes": 50_000_000},
            "disk": {"folder_bytes": 900_000},
        }
        for name, changes in tighter.items():
            found = exceeded_limit(process.pid, replace(caps, **changes))  # type: ignore[arg-type]
            assert found is not None
            assert found.name == name
        assert folder_bytes(tmp_path) >= 1_000_000
    finally:
        kill(process)
        process.stdout.close()  # type: ignore[union-attr]
