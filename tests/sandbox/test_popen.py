"""A program in a box: streams and exit codes as without, and nothing of it is left when it ends."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.sandbox import landlock
from rlx.sandbox.popen import SandboxedCommand, kill, start
from rlx.sandbox.process_tree import descendants
from rlx.sandbox.spec import SandboxSpec, make_private_home, system_reads
from tests.conftest import wait_until

ENV = {"PATH": "/usr/bin:/bin"}


def run(code: str, folder: Path, **box: object) -> tuple[int, str, str]:
    kept = SandboxSpec(reads=system_reads(), writes=(folder,), **box)  # type: ignore[arg-type]
    argv = [sys.executable, "-I", "-c", code]
    process = start(SandboxedCommand(argv, kept, ENV, folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    told, talk = process.communicate(timeout=60)
    return process.returncode, told.decode(), talk.decode()


def lives(pid: int) -> bool:
    """Say whether a process runs. One that has ended may wait as a zombie if this process adopts orphans."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def is_held(path: Path) -> bool:
    """Say whether a process still holds the lock on a file."""
    with path.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_streams_folder_environment_and_exit_code_are_the_programs_own(tmp_path: Path) -> None:
    code, told, talk = run(
        "import os, sys; print(os.getcwd(), len(os.environ)); print('x', file=sys.stderr); exit(7)", tmp_path
    )
    assert (code, talk) == (7, "x\n")
    assert told.split()[0] == str(tmp_path)
    assert int(told.split()[1]) <= 2  # PATH, and LC_CTYPE which Python sets itself


def test_reads_its_standard_input(tmp_path: Path) -> None:
    process = start(
        SandboxedCommand(["/bin/cat"], SandboxSpec(reads=system_reads()), ENV, tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.communicate(b"said", timeout=60)[0] == b"said"


def test_the_packages_of_this_interpreter_can_be_imported(tmp_path: Path) -> None:
    assert run("import numpy, gymnasium, rlx, orjson; print(rlx.__version__)", tmp_path)[:2] == (0, "0.1.0\n")


def test_a_death_by_signal_is_told(tmp_path: Path) -> None:
    assert run("import os; os.abort()", tmp_path)[0] == -signal.SIGABRT
    assert run("import os; os.kill(os.getpid(), 9)", tmp_path)[0] == -signal.SIGKILL


def test_signals_are_passed_on(tmp_path: Path) -> None:
    heard = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(3)); print('up', flush=True)"
    code = f"{heard}\nwhile True: time.sleep(0.05)"  # not `pause`, which a signal just before it would not end
    kept = SandboxSpec(reads=system_reads())
    process = start(SandboxedCommand([sys.executable, "-I", "-c", code], kept, ENV, tmp_path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    assert process.wait(timeout=60) == 3
    process.stdout.close()


DAEMON = """
import fcntl, os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for stream in (0, 1, 2): os.close(stream)
        stream = open("alive.new", "w")
        fcntl.flock(stream, fcntl.LOCK_EX)
        os.rename("alive.new", "alive")
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists("alive"): time.sleep(0.001)
"""


def test_a_daemon_does_not_outlive_the_program(tmp_path: Path) -> None:
    assert run(DAEMON, tmp_path)[0] == 0
    assert not is_held(tmp_path / "alive")


def test_killing_kills_the_program_and_its_daemons(tmp_path: Path) -> None:
    kept = SandboxSpec(reads=system_reads(), writes=(tmp_path,))
    process = start(SandboxedCommand([sys.executable, "-I", "-c", DAEMON + "time.sleep(600)"], kept, ENV, tmp_path))
    wait_until((tmp_path / "alive").exists)
    assert is_held(tmp_path / "alive")
    kill(process)
    assert not is_held(tmp_path / "alive")


STORM = """
import fcntl, os, sys, time
stream = open("alive", "w")
fcntl.flock(stream, fcntl.LOCK_EX)  # all children inherit it
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork(): os._exit(0)  # nobody who lists processes ever sees it in time
        os._exit(0)
open("begun", "w")
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_processes_that_fork_and_end_all_the_time_do_not_survive(tmp_path: Path, is_killed: bool) -> None:
    kept = SandboxSpec(reads=system_reads(), writes=(tmp_path,))
    code = STORM + "time.sleep(600)" * is_killed
    process = start(SandboxedCommand([sys.executable, "-I", "-c", code], kept, ENV, tmp_path))
    wait_until((tmp_path / "begun").exists)
    if is_killed:
        kill(process)
    assert process.wait(timeout=30) == (-9 if is_killed else 0)
    assert not is_held(tmp_path / "alive")


def test_a_program_sees_only_its_own_processes(tmp_path: Path) -> None:
    code = "import os; print([name for name in os.listdir('/proc') if name.isdigit()], os.getpid())"
    assert run(code, tmp_path)[1].split() == ["['1',", "'2']", "2"]


def test_a_fork_bomb_is_killed(tmp_path: Path) -> None:
    bomb = (
        "import os, time\nfor _ in range(60):\n    os.fork() or time.sleep(600)\n    time.sleep(0.001)\ntime.sleep(600)"
    )
    process = start(
        SandboxedCommand([sys.executable, "-I", "-c", bomb], SandboxSpec(reads=system_reads()), ENV, tmp_path)
    )
    wait_until(lambda: len(descendants(process.pid)) > 20)
    kill(process)
    assert descendants(process.pid) == ()


def test_the_program_dies_with_whoever_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from rlx.sandbox.popen import SandboxedCommand, start\n"
        "from rlx.sandbox.spec import SandboxSpec, system_reads\n"
        "p = start(SandboxedCommand(['/bin/sleep', '600'], SandboxSpec(reads=system_reads()), {}, Path('/')))\n"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert starter.stdout is not None
    keeper = int(starter.stdout.readline())
    below = descendants(keeper)
    assert below
    starter.kill()
    starter.wait()
    starter.stdout.close()
    wait_until(lambda: not lives(keeper) and not any(map(lives, below)))


def test_the_program_cannot_signal_its_keeper(tmp_path: Path) -> None:
    assert "PermissionError" in run("import os; os.kill(os.getppid(), 9)", tmp_path)[2]


def test_refuses_what_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"absent cannot be started in its sandbox: .*No such file"):
        start(SandboxedCommand(["/bin/absent"], SandboxSpec(reads=system_reads()), ENV, tmp_path))
    with pytest.raises(Refused, match="Permission denied"):
        start(SandboxedCommand(["/bin/true"], SandboxSpec(reads=(tmp_path,)), ENV, tmp_path))


def test_without_landlock_nothing_starts_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(Refused, match="no Landlock"):
        start(SandboxedCommand(["/bin/true"], SandboxSpec(), ENV, tmp_path))
    assert (
        start(SandboxedCommand(["/bin/true"], SandboxSpec(), ENV, tmp_path, may_go_unenforced=True)).wait(timeout=60)
        == 0
    )


def test_hostile_variables_do_not_reach_the_keeper(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(9)")
    variables = {**ENV, "PYTHONPATH": str(tmp_path), "LD_PRELOAD": "/nowhere.so", "PYTHONSTARTUP": "x"}
    process = start(SandboxedCommand(["/bin/true"], SandboxSpec(reads=system_reads()), variables, tmp_path))
    assert process.wait(timeout=60) == 0


POOL = """
import multiprocessing, sys
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a Unix socket in it: 108 bytes are all that one may have."""
    with tempfile.TemporaryDirectory(prefix="rlx-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize(("method", "has_sockets"), [("fork", False), ("spawn", False), ("forkserver", True)])
def test_programs_can_start_workers_of_their_own(short: Path, method: str, has_sockets: bool) -> None:
    (short / "pool.py").write_text(POOL)
    kept = SandboxSpec(reads=system_reads(), writes=(short,), shared_memory=True, unix_sockets=has_sockets)
    process = start(SandboxedCommand(
        [sys.executable, "pool.py", method], kept, {**ENV, **make_private_home(short)}, short),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    told, talk = process.communicate(timeout=120)
    assert told == b"[1, 2]\n", talk.decode()
