"""A box holds the process that enters it: as root and unprivileged, for good, and never silently not at all."""

from __future__ import annotations

import os
import resource
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.sandbox import landlock, namespaces, spec
from rlx.sandbox.spec import SandboxSpec, enter, make_private_home, require_enforcement, system_reads

NOBODY = 65534
REFUSALS = ("PermissionError", "OSError")  # by Landlock, or as on a disk that is only read
OPEN = tuple(Path(path) for path in ("/usr", "/etc", "/proc"))  # which every account can reach


def inside(action: Callable[[], object], kept: SandboxSpec, *, uid: int | None = None) -> str:
    """Return what an action in a forked child, which has entered a box, ends with."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if uid is not None:
                os.setresuid(uid, uid, uid)
            enter(kept)
            said = f"{action()}"
        except BaseException as error:
            said = type(error).__name__
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        told = stream.read()
    os.waitpid(child, 0)
    return told


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    own, hidden = tmp_path / "own", tmp_path / "hidden"
    for folder in (own, hidden):
        folder.mkdir()
        folder.chmod(0o777)
        (folder / "file").write_text("content")
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.getuid() and not above.stat().st_mode & 0o001:
            above.chmod(0o755)  # pytest keeps its folders to itself, also those of its workers
    return own, hidden


@pytest.mark.parametrize("uid", [None, pytest.param(NOBODY, marks=pytest.mark.skipif(os.getuid() != 0, reason="root"))])
def test_reads_and_writes_only_what_is_listed(places: tuple[Path, Path], uid: int | None) -> None:
    own, hidden = places
    kept = SandboxSpec(reads=OPEN, writes=(own,))
    assert inside(lambda: (own / "new").write_text("x"), kept, uid=uid) == "1"
    assert inside((own / "file").read_text, kept, uid=uid) == "content"
    assert inside((hidden / "file").read_text, kept, uid=uid) == "PermissionError"
    assert inside(lambda: (hidden / "new").write_text("x"), kept, uid=uid) in REFUSALS
    assert inside(lambda: os.rename(own / "file", hidden / "moved"), kept, uid=uid) in REFUSALS


def test_what_is_only_read_cannot_be_written(places: tuple[Path, Path]) -> None:
    own, _ = places
    kept = SandboxSpec(reads=(*system_reads(), own))
    assert inside((own / "file").read_text, kept) == "content"
    assert inside(lambda: (own / "file").write_text("x"), kept) in REFUSALS
    assert inside((own / "file").unlink, kept) in REFUSALS


@pytest.mark.parametrize("uid", [None, pytest.param(NOBODY, marks=pytest.mark.skipif(os.getuid() != 0, reason="root"))])
def test_what_others_could_read_of_a_file_stays(places: tuple[Path, Path], uid: int | None) -> None:
    own, hidden = places
    for path in (own / "file", hidden / "file"):
        os.chown(path, os.getuid() if uid is None else uid, -1)
    kept, theirs = SandboxSpec(reads=OPEN, writes=(own,)), hidden / "file"
    before = theirs.stat()
    actions: list[Callable[[], object]] = [
        lambda: os.utime(theirs, (1, 1)),
        lambda: theirs.chmod(0o666),
        lambda: os.chown(theirs, os.getuid(), os.getgid()),
        lambda: os.setxattr(theirs, "user.word", b"x"),
        lambda: os.truncate(theirs, 0),
    ]
    if inside(namespaces.is_possible, kept, uid=uid) == "True":
        assert [inside(action, kept, uid=uid) for action in actions] == ["OSError"] * 5
        assert theirs.stat() == before
    assert inside(lambda: os.utime(own / "file", (1, 1)), kept, uid=uid) == "None"


def test_a_folder_that_may_be_written_is_the_working_folder_still(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places[0])
    assert inside(lambda: Path("here").write_text("x"), SandboxSpec(reads=OPEN, writes=(places[0],))) == "1"
    assert (places[0] / "here").is_file()


def test_set_user_id_programs_cannot_be_made(places: tuple[Path, Path]) -> None:
    own, _ = places
    kept = SandboxSpec(reads=system_reads(), writes=(own,), network=True)
    flags = os.O_CREAT | os.O_WRONLY
    assert inside(lambda: (own / "file").chmod(0o4755), kept) == "PermissionError"
    assert inside(lambda: (own / "file").chmod(0o2755), kept) == "PermissionError"
    assert inside(lambda: os.open(own / "new", flags, 0o4755), kept) == "PermissionError"
    assert inside(lambda: (own / "file").chmod(0o755), kept) == "None"
    assert inside(lambda: os.open(own / "new", flags, 0o755) > 0, kept) == "True"


def test_limits_are_set_for_oneself_alone() -> None:
    kept, us = SandboxSpec(reads=system_reads()), os.getpid()
    known = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert inside(lambda: resource.prlimit(us, resource.RLIMIT_NOFILE, known), kept) == "PermissionError"
    assert inside(lambda: resource.prlimit(us, resource.RLIMIT_NOFILE), kept) == str(known)
    assert inside(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)), kept) == "None"
    assert inside(lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64)), kept) == "(4096, 4096)"


def test_sockets_exist_only_where_the_box_has_them() -> None:
    assert inside(socket.socket, SandboxSpec(reads=system_reads())) == "PermissionError"
    assert inside(lambda: socket.socket(socket.AF_UNIX), SandboxSpec(reads=system_reads())) == "PermissionError"
    assert "family=1" in inside(
        lambda: socket.socket(socket.AF_UNIX), SandboxSpec(reads=system_reads(), unix_sockets=True)
    )
    assert inside(socket.socket, SandboxSpec(reads=system_reads(), unix_sockets=True)) == "PermissionError"
    assert "family=2" in inside(socket.socket, SandboxSpec(reads=system_reads(), network=True))
    assert "family=1" in inside(socket.socketpair, SandboxSpec(reads=system_reads()))


def test_limits_hold(places: tuple[Path, Path]) -> None:
    own, _ = places
    kept = SandboxSpec(reads=system_reads(), writes=(own,), file_bytes=1000, memory_bytes=2**30, cpu_seconds=7)
    assert inside(lambda: (own / "large").write_bytes(bytes(2000)), kept) == "OSError"
    assert inside(lambda: len(bytearray(2**31)), kept) == "MemoryError"
    assert inside(lambda: resource.getrlimit(resource.RLIMIT_CPU), kept) == "(7, 7)"
    assert inside(lambda: resource.getrlimit(resource.RLIMIT_CORE), kept) == "(0, 0)"


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second account")
def test_processes_are_limited_unprivileged() -> None:
    def forks() -> int:
        children = 0
        while os.fork():
            children += 1
        os._exit(0)

    assert inside(forks, SandboxSpec(reads=OPEN, processes=5), uid=NOBODY) == "BlockingIOError"


@pytest.mark.skipif(os.getuid() != 0, reason="nothing to give up")
def test_root_gives_up_what_does_not_concern_files() -> None:
    def kept() -> str:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(line.split()[1] for line in lines if line.startswith("CapEff"))

    assert int(inside(kept, SandboxSpec(reads=system_reads())), 16) == 0b11011


def test_refuses_a_process_with_threads() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with pytest.raises(Refused, match=r"this process has \d+ threads"):
            enter(SandboxSpec(reads=system_reads()))
    finally:
        stop.set()
        thread.join()


def test_without_landlock_refuses_unless_told_and_then_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(Refused, match="no Landlock"):
        require_enforcement(SandboxSpec())
    found = require_enforcement(SandboxSpec(file_bytes=10), may_go_unenforced=True)
    assert not found.is_enforced
    assert found.document()["mechanism"] == "none"
    assert "network" in found.not_covered
    assert "10 bytes per file" in found.enforced


def test_an_older_kernel_promises_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    found = require_enforcement(SandboxSpec())
    assert found.abi == 3
    assert "no TCP" not in found.enforced
    assert "signals to processes of the same account" in found.not_covered


def test_says_what_a_box_shows(tmp_path: Path) -> None:
    (tmp_path / "seen" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "seen")
    kept = SandboxSpec(reads=(tmp_path / "seen",))
    assert kept.can_read(tmp_path / "seen" / "deep")
    assert kept.can_read(tmp_path / "link" / "deep")
    assert not kept.can_read(tmp_path)


def test_a_path_that_is_not_there_is_an_error_and_not_a_smaller_box(tmp_path: Path) -> None:
    assert inside(lambda: 1, SandboxSpec(reads=system_reads(), writes=(tmp_path / "absent",))) == "Refused"


def test_home_and_temporary_folder_are_private(tmp_path: Path) -> None:
    variables = make_private_home(tmp_path)
    assert Path(variables["HOME"]).is_dir()
    assert Path(variables["TMPDIR"]).is_relative_to(tmp_path)


def test_system_reads_are_there_and_not_everything() -> None:
    found = system_reads()
    assert all(path.exists() for path in found)
    assert Path("/") not in found
    assert Path("/tmp") not in found
    assert any(Path(spec.__file__).is_relative_to(path) for path in found)
