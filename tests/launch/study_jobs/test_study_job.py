"""Jobs of a study are held to their limits, whatever they do, and every end is a row of the ledger."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.config.load import parse
from rlx.launch import launch
from rlx.launch.executors import remote_job
from rlx.launch.study_jobs.study_job import StudyJob, identity_of, remove_traps, size_of
from rlx.runs.run import Run
from rlx.runs.summary import summarize
from rlx.sandbox import process_tree
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.state import lawful
from rlx.study.task import task as tasks
from rlx.study.task.task import Adapter, Launcher, Task
from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow
LIMITS = {"seed_seconds": 60.0, "memory_bytes": None, "file_bytes": 2**30, "disk_bytes": 2**30, "processes": 200}
TRAIN = """
import json, os, pathlib, sys
out = pathlib.Path(sys.argv[2])
def tell(name): (out / name).write_text(str(os.getpid()))
{body}
with open(out / "log.jsonl", "a") as log: log.write(json.dumps({{"step": 10, "loss": 1}}) + "\\n")
(out / "policy").write_text("weights")
"""


@dataclass
class Door:
    """A study's ledger and worktree, just enough for a job to be launched in them."""

    project: Project

    @property
    def folder(self) -> Path:
        return self.project.root / ".rlx" / "tasks" / "t" / "studies" / "s"

    @property
    def tree(self) -> Path:
        return self.folder / "worktrees" / "baseline"

    def events(self, kind: str) -> list[Event]:
        return [event for event in lawful(self.folder / "ledger.jsonl").events() if event.kind == kind]

    def prepare(
        self,
        body: str = "",
        *,
        seeds: int = 1,
        executor: str = "local",
        config: dict[str, Any] | None = None,
        files: dict[str, str] | None = None,
        **limits: Any,
    ) -> Run:
        """Make the run of a job and its intent; `body` is what the training does first, unless there is a config."""
        self.tree.mkdir(parents=True)
        for name, content in (files or {"train.py": TRAIN.format(body=body)}).items():
            (self.tree / name).write_text(content)
        command = {
            "train": ["python", "train.py", "{seed}", "{out}"],
            "metrics": {"reader": "jsonl", "path": "{out}/log.jsonl"},
            "checkpoint": "{out}/policy",
        }
        config = config or {"run_name": "job", "backend": "command", "seeds": seeds, "algo": {"total_timesteps": 10},
                            "command": command}  # fmt: skip
        lineage = {
            "task": "t", "study": "s", "candidate": "baseline", "phase": "smoke", "job": "j001",
            "worktree": self.tree.relative_to(self.project.root).as_posix(), "commit": "0" * 40, "diff_sha256": "0",
            "limits": {**LIMITS, **limits}, "network": False, "sandbox": "required", "reads": [], "executor": executor,
        }  # fmt: skip
        experiment = parse(config)
        run = launch.create(experiment, root=self.project.root, lineage=lineage)
        ledger = lawful(self.folder / "ledger.jsonl")
        ledger.append("created", contract="c" * 64)
        ledger.append(
            "intent", key="j001", job="j001", candidate="baseline", phase="smoke",
            seeds=list(experiment.training_seeds()), plan=None,
            run=run.name, config=run.metadata["config_hash"], identity=identity_of(run),
            reserve={"seeds": 0, "seconds": 60.0 * seeds},
        )  # fmt: skip
        return run

    def train(self, body: str = "", *, seeds: int = 1, **limits: Any) -> tuple[Run, Event]:
        """Train a job to its end; return its run and how the ledger says it ended."""
        run = self.prepare(body, seeds=seeds, **limits)
        launch.start(run, range(seeds))
        wait_until(lambda: self.events("ended"), seconds=120)
        return Run(run.path), self.events("ended")[0]


@pytest.fixture
def door(project: Project) -> Door:
    return Door(project)


def lives(path: Path) -> bool:
    """Say whether the process that took the lock on a file still runs; its pid has a namespace of its own."""
    with path.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


HOLD = "import fcntl; held = open(out / '.survivor', 'w'); fcntl.flock(held, 2); os.rename(held.name, out / 'survivor')"


def test_a_job_that_does_its_work_is_completed_and_says_what_it_loaded(door: Door) -> None:
    run, ended = door.train("import pathlib; tell('x')")
    assert (ended["outcome"], ended["seeds"], ended["spent"]["seeds"]) == ("completed", {"0": "completed"}, 1)
    assert len(door.events("started")) == 1
    attempt = run.seeds[0].attempts[0]
    assert attempt["enforced"]["mechanism"] == "landlock"
    assert attempt["git"]["commit"] == "0" * 40
    assert list((run.seeds[0].folder / "loaded").iterdir())
    assert not (run.path / ".scratch").exists()


def test_sleeping_for_ever_is_a_timeout_and_a_child_in_another_session_dies_with_it(door: Door) -> None:
    body = (
        "import time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        {HOLD}; time.sleep(600)\n"
        "    os._exit(0)\n"
        "time.sleep(600)"
    )
    run, ended = door.train(body, seed_seconds=4.0)
    assert ended["outcome"] == "timeout"
    assert "longer than the contract's" in ended["says"]
    assert not lives(run.seeds[0].folder / "output" / "survivor")


def test_a_job_that_ends_leaves_no_process_behind(door: Door) -> None:
    body = (
        "import time\n"
        "if os.fork() == 0:\n"
        f"    os.setsid(); {HOLD}; time.sleep(600)\n"
        "while not (out / 'survivor').exists(): time.sleep(0.01)"
    )
    run, ended = door.train(body)
    assert ended["outcome"] == "completed"
    assert not lives(run.seeds[0].folder / "output" / "survivor")


def test_processes_that_fork_and_end_all_the_time_end_with_their_job(door: Door) -> None:
    body = (
        "import time\n"
        f"if os.fork() == 0:\n    os.setsid(); {HOLD}\n"
        "    while True:\n"
        "        if os.fork(): os._exit(0)\n"
        "while not (out / 'survivor').exists(): time.sleep(0.01)"
    )
    run, ended = door.train(body)
    assert ended["outcome"] == "completed"
    assert not lives(run.seeds[0].folder / "output" / "survivor")


def test_filling_the_disk_kills_the_job_and_says_so(door: Door) -> None:
    body = (
        "import time\n"
        "for n in range(100):\n"
        "    (out / f'f{n}').write_bytes(os.urandom(2**20)); time.sleep(0.05)\n"
        "time.sleep(600)"
    )
    run, ended = door.train(body, disk_bytes=20 * 2**20)
    assert ended["outcome"] == "killed"
    assert "takes more than" in ended["says"]
    run_size = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    assert run_size < 200 * 2**20


def test_one_file_cannot_outgrow_its_limit(door: Door) -> None:
    _, ended = door.train("(out / 'big').write_bytes(bytes(2**24))", file_bytes=2**20)
    assert ended["outcome"] == "failed"
    assert "File too large" in ended["says"] or "SIGXFSZ" in ended["says"]


def test_more_memory_than_allowed_is_out_of_memory(door: Door) -> None:
    _, ended = door.train("x = bytearray(8 * 2**30)", memory_bytes=2**30)
    assert ended["outcome"] == "oom"
    assert "MemoryError" in ended["says"]


def test_a_worker_of_the_baseline_that_is_killed_is_lost_so_that_its_seed_is_trained_again(door: Door) -> None:
    run = door.prepare("import time\ntime.sleep(60)")
    launch.start(run, [0])
    wait_until(lambda: Run(run.path).seed(0).events)
    os.kill(Run(run.path).seed(0).events[0]["process"]["pid"], signal.SIGKILL)
    wait_until(lambda: door.events("ended"))
    (ended,) = door.events("ended")
    assert ended["seeds"] == {"0": "lost"}
    assert "worker killed by SIGKILL" in ended["says"]


def test_a_job_sees_nothing_of_the_study_and_cannot_change_its_run_or_its_code(door: Door) -> None:
    body = (
        "found = {}\n"
        "root = pathlib.Path.cwd().parents[6]\n"
        "ledger = pathlib.Path.cwd().parents[1] / 'ledger.jsonl'\n"
        "attempts = {'read the ledger': lambda: ledger.read_text(), 'write the ledger': lambda: ledger.open('a'),\n"
        "  'write metadata': lambda: (out.parents[1] / 'metadata.json').write_text('{}'),\n"
        "  'write the config': lambda: (out.parents[1] / 'config_snapshot.yaml').open('a'),\n"
        "  'write another seed': lambda: (out.parents[1] / 'seed_1' / 'x').write_text(''),\n"
        "  'write its code': lambda: pathlib.Path('train.py').open('a'),\n"
        "  'make a module': lambda: open('numpy.py', 'w')}\n"
        "for name, attempt in attempts.items():\n"
        "    try: attempt(); found[name] = True\n"
        "    except OSError: found[name] = False\n"
        "(out / 'found.json').write_text(json.dumps(found))"
    )
    run, ended = door.train(body, seeds=2)
    assert ended["outcome"] == "completed", ended["says"]
    found = json.loads((run.seed(0).folder / "output" / "found.json").read_text())
    assert len(found) == 7
    assert not any(found.values()), found


LEAKS = """
import ctypes, time
system_v = ctypes.CDLL(None).shmget
run, seed = out.parents[1], sys.argv[1]
home, shared = pathlib.Path(os.environ["HOME"]), pathlib.Path("/dev/shm")
(run / "eval" / f"leak_{seed}").write_text("weights")
for place in (out, home, shared): (place / f"leak_{seed}").write_text("weights")
other, found = str(1 - int(seed)), []
system_v(0x52110000 + int(seed), 64, 0o1600)
for attempt in (lambda: os.utime(run / "metadata.json", (7, 7)), lambda: os.setxattr(run, "user.leak", b"weights")):
    try: attempt(); found.append("a mark on the run")
    except OSError: pass
theirs = [run / "eval" / f"leak_{other}", shared / f"leak_{other}", run / f"seed_{other}" / "output" / f"leak_{other}",
          run / ".scratch" / f"seed_{other}" / "home" / f"leak_{other}", home / f"leak_{other}"]
until = time.monotonic() + 6
while time.monotonic() < until:
    for place in theirs:
        try: found.append(str(place) + place.read_text())
        except OSError: pass
    if system_v(0x52110000 + int(other), 0, 0) >= 0: found.append("a segment")
    time.sleep(0.1)
(out / "found.json").write_text(json.dumps(found))
"""


def test_a_seed_learns_nothing_from_the_others(door: Door) -> None:
    run, ended = door.train(LEAKS, seeds=2)
    assert ended["outcome"] == "completed", ended["says"]
    assert [json.loads((run.seed(seed).folder / "output" / "found.json").read_text()) for seed in (0, 1)] == [[], []]
    assert not list(Path("/dev/shm").glob("leak_*"))


def test_secrets_in_our_environment_do_not_reach_a_job(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SSH_AUTH_SOCK",
        "AWS_SECRET_ACCESS_KEY",
        "PYTHONSTARTUP",
        "WANDB_API_KEY",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
    ):
        monkeypatch.setenv(name, "hunter2")
    run, ended = door.train("(out / 'env.json').write_text(json.dumps(dict(os.environ)))")
    assert ended["outcome"] == "completed"
    told = (run.seeds[0].folder / "output" / "env.json").read_text()
    assert "hunter2" not in told
    assert json.loads(told)["SDL_NO_SIGNAL_HANDLERS"] == "1"
    assert json.loads(told)["HOME"].startswith(str(run.path))


def started_with(pid: int) -> str:
    """Return the variables that the kernel has of a process and of all processes below it."""
    pids = [pid, *process_tree.descendants(pid)]
    return "".join(Path(f"/proc/{number}/environ").read_text(errors="replace") for number in pids)


def test_no_process_of_a_job_was_started_with_variables_that_are_not_listed(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A forked worker keeps the search path for libraries, and the environment in /proc, of what it was forked from.
    for name in ("LD_LIBRARY_PATH", "SDL_DYNAMIC_API", "OMP_TOOL_LIBRARIES", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "/hunter2")
    run = door.prepare("tell('up')\nimport time\nwhile not (out / 'go').exists(): time.sleep(.05)")
    launch.start(run, [0])
    output = run.seeds[0].folder / "output"
    wait_until(lambda: (output / "up").exists(), seconds=60)
    supervisor = Run(run.path).supervisor
    assert supervisor is not None
    known = started_with(supervisor.pid)
    (output / "go").touch()
    assert known.count("RLX_ROOT") >= 1
    assert "hunter2" not in known
    wait_until(lambda: door.events("ended"), seconds=60)
    assert door.events("ended")[0]["outcome"] == "completed"


@pytest.mark.parametrize("change", ["config", "limits", "seed", "no intent"])
def test_a_worker_refuses_what_the_intent_does_not_name(door: Door, change: str) -> None:
    run = door.prepare()
    if change == "config":
        snapshot = run.path / "config_snapshot.yaml"
        snapshot.write_text(snapshot.read_text().replace("total_timesteps: 10", "total_timesteps: 99"))
    if change == "limits":
        metadata = json.loads((run.path / "metadata.json").read_text())
        metadata["lineage"]["limits"]["seed_seconds"] = 1e9
        files.write_json(run.path / "metadata.json", metadata)
    if change == "seed":
        (run.path / "seed_7").mkdir()
    if change == "no intent":
        (door.folder / "ledger.jsonl").unlink()
    launch.start(Run(run.path), [7 if change == "seed" else 0])
    launch.wait(run, timeout_seconds=60)
    seed = Run(run.path).seed(7 if change == "seed" else 0)
    assert seed.status.state == "failed"
    assert "no open job" in (run.path / "logs" / f"seed_{seed.number}.log").read_text()
    assert not (seed.folder / "output").exists()


def test_compiled_code_in_the_worktree_is_gone_before_anything_is_imported(door: Door) -> None:
    run = door.prepare()
    cache = door.tree / "__pycache__" / "helper.cpython-311.pyc"
    cache.parent.mkdir()
    cache.write_bytes(b"forged")
    launch.start(run, [0])
    wait_until(lambda: door.events("ended"))
    assert not cache.exists()


def test_a_stopped_job_is_cancelled(door: Door) -> None:
    run = door.prepare("import time\ntell('began'); time.sleep(600)")
    launch.start(run, [0])
    wait_until(lambda: (run.seeds[0].folder / "output" / "began").exists())
    launch.stop(Run(run.path))
    wait_until(lambda: door.events("ended"))
    assert door.events("ended")[0]["outcome"] == "cancelled"


def test_an_engine_of_ones_own_carries_a_job_and_its_end_is_in_the_ledger(door: Door) -> None:
    run = door.prepare(executor="custom")
    script = door.project.write("scheduler.sh", 'nohup "$@" >/dev/null 2>&1 &\necho job $!\n')
    launcher = Launcher(executor="custom", submit=("sh", str(script), "{command}"), poll=("kill", "-0", "{id}"))
    remote_job.submit_run(run, [0], launcher)
    remote_job.submit_run(run, [0], launcher)
    wait_until(lambda: door.events("ended"))
    assert door.events("ended")[0]["outcome"] == "completed"
    assert len(door.events("started")) == 1
    wait_until((door.project.root / ".rlx" / "jobs" / "t.s.j001" / "exit.json").exists)


def test_a_job_that_an_engine_has_queued_is_waited_for_and_can_be_cancelled(door: Door) -> None:
    run = door.prepare(executor="custom")
    launcher = Launcher(executor="custom", submit=("echo", "7"), poll=("echo", "PENDING"), cancel=("true",))
    task = Task(name="t", adapter=Adapter(kind="command", train=("x", "{seed}"), launcher=launcher))
    (door.project.root / ".rlx" / "tasks" / "t" / "task.yaml").write_text(tasks.dump(task))
    assert remote_job.remote_job_of(run) is None
    remote_job.submit_run(run, [0], launcher)
    engine = remote_job.remote_job_of(run)
    assert engine is not None
    assert engine.status().state == "queued"
    assert launch.wait(run, timeout_seconds=0.1).status == "prepared"
    launch.stop(run)
    assert (door.project.root / ".rlx" / "jobs" / "t.s.j001" / "cancelled").exists()


def test_a_run_without_its_study_is_named(door: Door) -> None:
    run = door.prepare()
    assert StudyJob.of(run) is not None
    metadata = json.loads((run.path / "metadata.json").read_text())
    del metadata["lineage"]["limits"]
    files.write_json(run.path / "metadata.json", metadata)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rlx.launch.supervisor", str(run.path), "0"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "names a study, but not 'limits'" in (run.path / "logs" / "supervisor.log").read_text()


@pytest.mark.parametrize(
    "body",
    [
        "for n in range(6000): (out / str(n)).mkdir()",
        "for n in range(6000): (out / str(n)).touch()",
    ],
    ids=["folders", "empty files"],
)
def test_many_files_fill_a_disk_as_large_ones_do(door: Door, body: str) -> None:
    run, ended = door.train(body, disk_bytes=8 * 2**20)
    assert ended["outcome"] == "killed"
    assert "8,388,608 bytes" in ended["says"]
    assert run.seeds[0].status.state == "failed"


def test_folders_in_folders_are_counted_and_cleared_of_traps_however_deep(tmp_path: Path) -> None:
    deep = "import os\nfor n in range(1500):\n    os.mkdir('d'); os.chdir('d')\nos.mkfifo('trap')"
    try:
        subprocess.run([sys.executable, "-c", deep], cwd=tmp_path, check=True)
        assert size_of(tmp_path) == 1501 * 4096
        remove_traps(tmp_path)
        assert size_of(tmp_path) == 1500 * 4096
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


AT_EXIT = """
import atexit
seed = out.parent
events, metrics = seed / "events.jsonl", seed / "metrics.jsonl"
def add(path, text): path.open("a").write(text)
def instead(path, make):
    path.unlink(missing_ok=True)
    make(path)
def spoil():
    {what}
atexit.register(spoil)
"""
DAMAGE = {
    "a row that is a number": "add(events, '5\\n')",
    "a row nested deeply": "add(events, '[' * 200000 + '\\n')",
    "a number without end": """add(events, '{"event": "completed", "time": 1, "step": ' + '9' * 5000 + '}\\n')""",
    "a start without a process": """add(events, '{"event": "started"}\\n')""",
    "an event that is a list": """add(events, '{"event": ["completed"], "time": 1}\\n')""",
    "a step that is a word": """add(events, '{"event": "completed", "time": 1, "step": "many"}\\n')""",
    "bytes that are no text": "events.open('ab').write(b'\\xff\\x00\\n')",
    "a line that is too long": "add(events, '\"' + 'x' * 20_000_000 + '\"\\n')",
    "a folder": "instead(events, lambda path: (path / 'inside').mkdir(parents=True))",
    "a pipe": "instead(events, os.mkfifo)",
    "a figure's row that is a number": "add(metrics, '5\\n')",
    "a figure at a step that is a word": """add(metrics, '{"step": "many", "time": 1}\\n')""",
    "a resume from nowhere": """add(metrics, '{"resume_from": null}\\n')""",
    "a folder for figures": "instead(metrics, Path.mkdir)",
    "an attempt that is a number": "add(seed / 'attempts.jsonl', '5\\n')",
    "a folder for attempts": "instead(seed / 'attempts.jsonl', Path.mkdir)",
}


@pytest.mark.parametrize("what", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_a_job_writes_into_its_seed_fails_the_seed_and_nothing_else(door: Door, what: str) -> None:
    run, ended = door.train("from pathlib import Path\n" + AT_EXIT.format(what=what))
    assert (ended["outcome"], ended["seeds"]) == ("failed", {"0": "failed"})
    assert ".jsonl" in ended["says"]
    (seed,) = run.seeds
    assert seed.status.state == "failed"
    assert ".jsonl" in seed.status.reason
    wait_until(lambda: not (run.path / "supervisor.json").exists())
    assert summarize(run.path)["status"] == "failed"
    door.project.rlx("info", run.name, timeout=60)
    assert f"seed 0: failed: {seed.status.reason}" in door.project.rlx("wait", run.name, code=5).stdout
