"""The trial of a sandbox really attempts what must fail: outside a box all of it succeeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import rlx
from rlx.errors import Refused
from rlx.sandbox import landlock, namespaces, seccomp, self_test
from rlx.sandbox.self_test import run_self_test, verify_enforcement
from rlx.sandbox.spec import SandboxSpec, system_reads

SOURCE = Path(rlx.__file__).parent.parent
OPEN_PYTHON = "/usr/bin/python3"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    run_self_test.cache_clear()


def test_everything_forbidden_is_denied_and_reported() -> None:
    found = run_self_test()
    assert found.is_probed
    assert found.abi >= 6
    assert {f"{words}: denied" for words, _ in self_test.FORBIDDEN.values()} <= set(found.enforced)
    assert json.loads(json.dumps(found.document())) == found.document()


def test_outside_a_box_every_attempt_succeeds(tmp_path: Path) -> None:
    own, hidden = tmp_path / "own", tmp_path / "hidden"
    own.mkdir()
    hidden.mkdir()
    (hidden / "secret").write_text("secret")
    with self_test._listening(hidden) as (port, path, name):
        calls = json.dumps(seccomp.CALLS.get(os.uname().machine, {}))
        places = [str(own), str(hidden), str(port), path, name, str(os.getpid())]
        argv = [sys.executable, "-c", self_test.PROGRAM, *places, calls]
        seen = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout)
    os.kill(int((own / "left").read_text()), 9)
    assert self_test._remove_file(Path(namespaces.SHARED_MEMORY, name))
    assert self_test._remove_segment(name)
    failed = {key for key, succeeded in seen.items() if not succeeded}
    assert failed <= ({"device"} if os.getuid() else set())


def test_a_box_that_does_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        self_test,
        "_attempt",
        lambda *_: {
            **dict.fromkeys(self_test.FORBIDDEN, False),
            "udp": True,
            "own_file": True,
            "own_child": True,
            "own_memory": True,
            "program": False,
        },
    )
    with pytest.raises(Refused, match="does not hold: running a program failed, a UDP packet"):
        run_self_test()


def test_what_was_tried_out_is_told_of_a_box_as_far_as_it_holds_there() -> None:
    kept = SandboxSpec(reads=system_reads(), file_bytes=77)
    found = verify_enforcement(kept)
    assert found.is_probed
    assert {"77 bytes per file", "a UDP packet: denied", "a Unix socket reached by its path: denied"} <= set(
        found.enforced
    )
    with_unix = verify_enforcement(replace(kept, unix_sockets=True))
    assert "a Unix socket reached by its path: denied" not in with_unix.enforced
    assert "Unix sockets reached by their path" in with_unix.not_covered
    assert not verify_enforcement(replace(kept, network=True)).is_probed


def test_without_landlock_the_probe_refuses_or_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(Refused):
        run_self_test()
    assert not run_self_test(may_go_unenforced=True).is_enforced


def test_without_the_filter_the_probe_promises_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "CALLS", {})
    found = run_self_test()
    assert "UDP and raw sockets" in found.not_covered


@pytest.mark.skipif(os.getuid() != 0 or not Path(OPEN_PYTHON).exists(), reason="needs root and a system Python")
def test_holds_unprivileged_too() -> None:
    code = "import json; from rlx.sandbox.self_test import run_self_test; print(json.dumps(run_self_test().document()))"
    done = subprocess.run(
        [OPEN_PYTHON, "-c", code], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["probed"]
    is_own, is_open = "shared memory of its own", "shared memory (/dev/shm) of other sandboxes"
    assert (is_own in found["enforced"]) != (is_open in found["not_covered"])


def test_where_no_mount_is_to_be_had_shared_memory_is_everybodys_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(namespaces, "is_possible", lambda: False)
    found = run_self_test()
    assert "shared memory (/dev/shm) of other sandboxes" in found.not_covered
    assert "shared memory that others see: denied" not in found.enforced
