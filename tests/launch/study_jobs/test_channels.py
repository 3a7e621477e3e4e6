"""Channels between the seeds of a job: one program tries them all, and the docs list every one that gets through."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rlx.launch.study_jobs import study_job
from rlx.sandbox import namespaces
from tests.conftest import Project
from tests.launch.study_jobs.test_study_job import Door

pytestmark = pytest.mark.slow
SEALING = Path(__file__).parents[3] / "docs" / "concepts" / "sealing.md"
NOT_ENFORCED = {
    "locks on readable files", "events on readable files", "page cache of readable files", "load of the machine",
    "counters of the kernel", "queued signals of the account", "free disk space",
}  # fmt: skip
"""The channels that may get through; docs/concepts/sealing.md lists each in these words."""
PROGRAM = r"""
import contextlib, ctypes, errno, fcntl, select, signal, socket, struct, subprocess, sysconfig, time
libc = ctypes.CDLL(None, use_errno=True)
seed = int(sys.argv[1])
other, run = 1 - seed, out.parents[1]
tree, home, temporary = pathlib.Path.cwd(), pathlib.Path(os.environ["HOME"]), pathlib.Path(os.environ["TMPDIR"])
system, caches = pathlib.Path("/etc/passwd"), pathlib.Path(sysconfig.get_path("purelib"))
seeds = [run / f"seed_{other}", run / f"seed_{other}" / "output"]
shared = [run, run / "eval", run.parent, tree, home, temporary, pathlib.Path("/tmp"), pathlib.Path("/var/tmp"),
          pathlib.Path("/dev/shm"), caches, caches / "__pycache__", run.parents[1] / ".git" / "objects",
          run.parents[1] / ".rlx", pathlib.Path("/run"), pathlib.Path("/dev/mqueue"), tree / "__pycache__",
          pathlib.Path(os.__file__).parent / "__pycache__", pathlib.Path("/dev"), pathlib.Path("/sys/fs/cgroup")]
places = [out, out.parent, *shared]
number = 0x52330000
held = []
record = sorted(caches.glob("*.dist-info/RECORD"))[-1]
read_at, flags = record.stat().st_atime, {}
for descriptor in range(64):
    with contextlib.suppress(OSError): flags[descriptor] = fcntl.fcntl(descriptor, fcntl.F_GETFL)
def attempt(action):
    with contextlib.suppress(OSError, ValueError): return action()
def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    if result < 0: raise OSError(ctypes.get_errno(), name)
    return result
def lock(path):
    held.append(open(path))
    fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
def listen(address, family=socket.AF_UNIX):
    held.append(socket.socket(family)); held[-1].bind(address); held[-1].listen()
def send():
    for place in places:
        attempt(lambda: (place / f"leak_{seed}").write_text("weights"))
        attempt(lambda: os.symlink("weights", place / f"link_{seed}"))
        attempt(lambda: os.setxattr(place, "user.leak", b"weights"))
        attempt(lambda: os.utime(place, (7, 7)))
        attempt(lambda: os.mkfifo(place / f"pipe_{seed}"))
        attempt(lambda: listen(f"/proc/self/fd/{os.open(place, os.O_PATH)}/socket_{seed}"))
        attempt(lambda: os.link(tree / "train.py", place / f"hard_{seed}"))
    for path in (run / "metadata.json", run / "config_snapshot.yaml", system):
        attempt(lambda: os.setxattr(path, "user.leak", b"w"))
    if seed == 0:
        attempt(lambda: lock(system))
        held.append(open(tree / "train.py")); attempt(lambda: fcntl.lockf(held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN + 5})
        for _ in range(700): attempt(lambda: call("sigqueue", os.getpid(), signal.SIGRTMIN + 5, None))
        attempt(lambda: call("syscall", 251, 1, 0, BEST_DISK_PRIORITY))
        attempt(lambda: os.sched_setaffinity(os.getppid(), {0})); attempt(lambda: os.setpriority(os.PRIO_USER, 0, 11))
        attempt(lambda: held.append(os.openpty()))
    attempt(lambda: call("mq_open", b"/leak-%d" % seed, os.O_CREAT | os.O_RDWR, 0o600, None))
    attempt(lambda: listen(f"\0leak-{seed}")); attempt(lambda: listen(str(temporary / "socket")))
    attempt(lambda: listen(("127.0.0.1", 20233 + seed), socket.AF_INET))
    attempt(lambda: call("shmget", number + seed, 64, 0o1600))
    attempt(lambda: call("semget", number + seed, 1, 0o1600))
    attempt(lambda: call("msgget", number + seed, 0o1600))
    attempt(lambda: call("syscall", 248, b"user", b"leak-%d" % seed, b"x", 1, -4))
    attempt(lambda: os.kill(-1, signal.SIGWINCH))
    for pid in range(2, 400):
        if pid != os.getpid(): attempt(lambda: os.kill(pid, signal.SIGWINCH))
def seen():
    found = set()
    def look(words, test):
        with contextlib.suppress(OSError, ValueError):
            if test(): found.add(words)
    for place in (*seeds, *shared):
        look(f"file in {place}", lambda: (place / f"leak_{other}").read_text())
        look(f"size in {place}", lambda: (place / f"leak_{other}").stat())
        look(f"link in {place}", lambda: os.readlink(place / f"link_{other}"))
        look(f"attribute of {place}", lambda: place not in own and os.getxattr(place, "user.leak"))
        look(f"times of {place}", lambda: place not in own and os.stat(place).st_mtime == 7)
        look(f"names in {place}", lambda: [name for name in os.listdir(place) if name.endswith(f"_{other}")])
        look(f"pipe in {place}", lambda: (place / f"pipe_{other}").lstat())
        look(f"socket in {place}", lambda: (place / f"socket_{other}").lstat())
    for path in (run / "metadata.json", run / "config_snapshot.yaml", system):
        look(f"attribute of {path}", lambda: os.getxattr(path, "user.leak"))
    look("links to a file of the tree", lambda: (tree / "train.py").stat().st_nlink > 1)
    look("events on readable files", has_event)
    pulse() if seed == 0 else receive(look)
    look("abstract socket", lambda: connects(f"\0leak-{other}"))
    look("TCP", lambda: connects(("127.0.0.1", 20233 + other), socket.AF_INET))
    look("System V memory", lambda: call("shmget", number + other, 0, 0) >= 0)
    look("System V semaphore", lambda: call("semget", number + other, 0, 0) >= 0)
    look("System V queue", lambda: call("msgget", number + other, 0) >= 0)
    look("POSIX queue", lambda: call("mq_open", b"/leak-%d" % other, os.O_RDWR) >= 0)
    look("keyring", lambda: call("syscall", 249, b"user", b"leak-%d" % other, None, -4) >= 0)
    look("processes", lambda: [name for name in os.listdir("/proc") if name.isdigit() and name not in mine()])
    look("command lines", lambda: [name for name in os.listdir("/proc") if name.isdigit() and
         f"seed_{other}" in open(f"/proc/{name}/cmdline").read()])
    look("signal", lambda: signals)
    look("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()) is None)
    look("host name", lambda: socket.sethostname(socket.gethostname()) is None)
    for path in ("vm/drop_caches", "kernel/core_pattern", "kernel/hostname", "fs/inotify/max_user_watches"):
        look(f"setting {path}", lambda: os.close(os.open(f"/proc/sys/{path}", os.O_WRONLY)) is None)
    look("own group of tasks", lambda: os.close(os.open("/proc/self/autogroup", os.O_WRONLY)) is None)
    look("names of sockets", lambda: f"leak-{other}" in open("/proc/net/unix").read())
    look("counters of the kernel", lambda: open("/proc/sys/fs/file-nr").read())
    look("performance counters of all", lambda: opens_counter())
    look("load of the machine", lambda: open("/proc/loadavg").read())
    look("free disk space", lambda: os.statvfs(out).f_bfree)
    look("git objects", lambda: os.listdir(run.parents[1] / ".git"))
    return found
def pulse():
    "Seed 0 sends bits that last only while it repeats them."
    record.read_bytes()
    for descriptor, before in flags.items():
        attempt(lambda: fcntl.fcntl(descriptor, fcntl.F_SETFL, before ^ os.O_NONBLOCK))
    with open(record) as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if int(time.monotonic() * 2) % 2: stream.read()
def receive(look):
    "Seed 1 looks for what seed 0 sends."
    look("locks on readable files", is_locked); look("locks on readable files", is_range_locked)
    look("time of the last read", lambda: record.stat().st_atime != read_at)
    look("shared descriptor", lambda: [1 for key, before in flags.items() if fcntl.fcntl(key, fcntl.F_GETFL) != before])
    look("queued signals of the account", lambda: int(status("SigQ").split("/")[0]) >= 700)
    look("disk priority", lambda: call("syscall", 252, 3, os.getuid()) == BEST_DISK_PRIORITY)
    look("priority", lambda: 11 in (os.getpriority(os.PRIO_USER, 0), os.getpriority(os.PRIO_PROCESS, 0)))
    look("affinity", lambda: len(os.sched_getaffinity(0)) < cores)
    for number in range(40): look("terminal", lambda: os.close(os.open(f"/dev/pts/{number}", os.O_RDWR)) is None)
    look("page cache of readable files", lambda: len({*cached, cached.append(is_cached())} - {None}) > 1)
def status(name):
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name))
def is_cached():
    with open(record, "rb") as stream:
        try: return os.preadv(stream.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except BlockingIOError: return False
def opens_counter():
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 0), 128)
    return call("syscall", 298, attributes, -1, 0, -1, 0) >= 0
def is_range_locked():
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    with open(tree / "train.py") as stream: return struct.unpack_from("h", fcntl.fcntl(stream, 5, asked))[0] == 0
def is_locked():
    with open(system) as stream:
        try: fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError: return True
        return False
def has_event():
    open("/etc/hostname").close() if seed == 0 else None
    return seed == 1 and watch >= 0 and select.select([watch], [], [], 0)[0]
def connects(address, family=socket.AF_UNIX):
    with socket.socket(family) as client: client.settimeout(1); client.connect(address); return True
def mine():
    return {"1", str(os.getpid()), str(os.getppid())}
BEST_DISK_PRIORITY, cores, cached = 2 << 13, len(os.sched_getaffinity(0)), []
own, signals = {home, temporary, run / "eval", pathlib.Path("/dev/shm")}, []
watch = -1
if seed == 1:
    watch = libc.inotify_init()
    libc.inotify_add_watch(watch, b"/etc/hostname", 0x20)
signal.signal(signal.SIGWINCH, lambda *_: signals.append(1))
send()
found, until = set(), time.monotonic() + 5
while time.monotonic() < until:
    found |= seen()
    time.sleep(0.2)
(out / "found.json").write_text(json.dumps(sorted(found)))
"""


@pytest.fixture
def door(project: Project) -> Door:
    return Door(project)


@pytest.mark.skipif(not namespaces.is_possible(), reason="this account may have no namespaces")
def test_every_channel_between_seeds_is_closed_or_listed(door: Door) -> None:
    (door.project.root / ".git" / "objects").mkdir(parents=True, exist_ok=True)
    run, ended = door.train(PROGRAM, seeds=2)
    assert ended["seeds"] == {"0": "completed", "1": "completed"}, ended
    found = set()
    for seed in (0, 1):
        found |= set(json.loads((run.seed(seed).folder / "output" / "found.json").read_text()))
    assert "load of the machine" in found  # the program did look
    assert found <= NOT_ENFORCED, found - NOT_ENFORCED


def test_the_docs_list_every_channel_that_is_open() -> None:
    text = SEALING.read_text()
    for words in NOT_ENFORCED:
        assert words in text, words


def test_links_that_lead_outside_and_attributes_are_removed_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "seed_0"
    folder.mkdir()
    (folder / "kept").write_text("")
    (folder / "out").symlink_to("../bits-of-weights")
    (folder / "inside").symlink_to("kept")
    try:
        os.setxattr(folder / "kept", "user.bits", b"weights")
    except OSError:
        pytest.skip("this file system has no attributes")
    study_job.remove_traps(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["inside", "kept"]
    assert os.listxattr(folder / "kept") == []
