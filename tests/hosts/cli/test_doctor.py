from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlx import external_programs
from rlx.hosts.cli import doctor

Cli = Callable[..., Any]


def states(answer: Any) -> dict[str, str]:
    return {check["name"]: check["state"] for check in answer.data["checks"]}


def test_a_sound_machine_is_ready(cli: Cli, tmp_path: Path) -> None:
    answer = cli("doctor", "--json")

    found = states(answer)
    assert answer.code == 0
    assert answer.data["is_sound"] is True
    for name in ("python", "rlx", "core packages", "extra sb3", "cores", "disk", "writable", "drawing an environment"):
        assert found[name] == "ok", answer.data
    assert list(tmp_path.iterdir()) == []


def test_quick_draws_nothing(cli: Cli) -> None:
    assert "drawing an environment" not in states(cli("doctor", "--quick", "--json"))


def test_every_line_says_a_state_and_what_is_missing_says_what_to_do(cli: Cli) -> None:
    lines = cli("doctor", "--quick").out.splitlines()

    checks = lines[: lines.index("")]
    for line, following in zip(checks, [*checks[1:], ""], strict=True):
        state = line.split()[0]
        assert state in ("ok", "missing", "broken", "hint:")
        assert state in ("ok", "hint:") or "hint:" in following
    assert lines[-1].startswith("ready; project: ")


def test_a_missing_core_package_is_broken(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CORE", (*doctor.CORE, "no-such-package"))
    answer = cli("doctor", "--quick")

    assert answer.code == 1
    assert "hint: pip install no-such-package" in answer.out
    assert "not ready" in answer.out


def test_missing_extras_and_tools_are_only_missing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"sb3": ("torch", "no-such-package")})
    monkeypatch.setattr(external_programs, "git", lambda *_, **__: None)
    monkeypatch.setattr(external_programs, "ffmpeg_program", lambda: None)
    answer = cli("doctor", "--quick", "--json")

    assert answer.code == 0
    found = states(answer)
    assert (found["extra sb3"], found["git"], found["ffmpeg"]) == ("missing", "missing", "missing")


@pytest.mark.parametrize(("free", "state", "code"), [(1e12, "ok", 0), (1e9, "missing", 0), (1e6, "broken", 1)])
def test_a_full_disk_is_broken(cli: Cli, monkeypatch: pytest.MonkeyPatch, free: float, state: str, code: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    answer = cli("doctor", "--quick", "--json")

    assert (states(answer)["disk"], answer.code) == (state, code)


def test_a_folder_that_takes_no_files_is_broken(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryDirectory", refuse)
    answer = cli("doctor", "--quick", "--json")

    assert (states(answer)["writable"], answer.code) == ("broken", 1)


def test_a_gpu_that_torch_cannot_use_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(doctor, "_versions", lambda packages: dict.fromkeys(packages, "2.13.0+cpu"))

    (check,) = [one for one in cli("doctor", "--quick", "--json").data["checks"] if one["name"] == "GPU"]

    assert check["value"] == "2 seen, but torch is the CPU build"


def test_the_sandbox_is_tried_out_and_what_it_leaves_open_is_said(cli: Cli) -> None:
    checks = {check["name"]: check["value"] for check in cli("doctor", "--quick", "--json").data["checks"]}
    assert "restrictions tested" in checks["sandbox"]
    assert "same account" in checks["sandbox leaves open"]


def test_without_a_sandbox_plain_runs_are_still_ready(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlx.sandbox import landlock
    from rlx.sandbox.self_test import run_self_test

    run_self_test.cache_clear()
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    answer = cli("doctor", "--quick", "--json")
    assert answer.code == 0
    assert states(answer)["sandbox"] == "missing"


def test_a_network_disk_is_recognised(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    assert doctor.file_system(tmp_path / "runs", mounts) == "nfs4"
    assert doctor.file_system(Path("/"), mounts) == "ext4"
    assert doctor.file_system(Path("/"), tmp_path / "none") == ""


def test_a_disk_without_locks_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if isinstance(descriptor, int) and os.readlink(f"/proc/self/fd/{descriptor}").endswith("/probe"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        real(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", flock)
    answer = cli("doctor", "--quick", "--json")
    checks = {check["name"]: check["value"] for check in answer.data["checks"]}
    assert states(answer)["writable"] == "ok"
    assert "no locks" in checks["writable"]
