"""A tiny study at every point of its path, made once: copied for each fault, and walked on as `rlx next` says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.hosts.cli.main import call
from rlx.launch.processes.reexec import lasting_environment
from rlx.runs.project import folder_identity, mark_made_here, mark_own
from rlx.runs.run import Run
from rlx.study.ledger import ledger as ledgers
from rlx.study.study_folder import Study
from rlx.study.task import task as tasks
from rlx.study.task.task import Launcher

LINE = '''\
"""A walk on a line to a goal."""
import gymnasium
import numpy

from envs import pay


class Line(gymnasium.Env):
    max_episode_steps = 12
    observation_space = gymnasium.spaces.Box(-20, 20, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = float(self.np_random.uniform(-1, 1))
        return self._seen(), {}

    def step(self, action):
        self.at += 1.0 if action else -1.0
        there = self.at >= 6
        return self._seen(), pay.reward(self.at, there), there, False, {"is_success": there}

    def _seen(self):
        return numpy.array([self.at], numpy.float32)
'''
PAY = '''\
"""What a step on the line pays."""


def reward(at, there):
    return 1.0 if there else 0.0
'''
CONFIG = """\
env: {id: "envs/line.py:Line", num_envs: 2}
algo: {name: ppo, total_timesteps: 64, rollout_steps: 32, batch_size: 32, update_epochs: 1, learning_rate: 1.0e-4}
policy: {hidden_sizes: [8]}
eval: {every: 64, episodes: 1, metric: success_rate}
"""
PATCH = """\
--- a/envs/pay.py
+++ b/envs/pay.py
@@ -2,4 +2,4 @@


 def reward(at, there):
-    return 1.0 if there else 0.0
+    return 1.0 if there else at / 100
"""
PROPOSAL = (
    "propose", "--kind", "reward engineering", "--hypothesis", "a reward that guides",
    "--record", "reflection=the reward is sparse", "--patch", "guide.patch",
)  # fmt: skip
STARTS = ("baseline", "loop", "queue", "rehearse")
"""Commands on a study that, like a launch, leave a supervisor behind, which must not be this process's child."""


@dataclass(frozen=True)
class Lab:
    """A project with a study in it, and whoever types commands there."""

    root: Path
    task: str = "line"
    name: str = "walk"

    @classmethod
    def found(cls, root: Path, launcher: Launcher | None = None) -> Lab:
        """Make a project with an approved study whose pool is trained, by this machine or what the launcher names."""
        lab = cls(root)
        lab.commits(CONFIG)
        lab.types(
            "study", "new", "walk", "--config", "configs/line.yaml", "--metric", "success_rate",
            "--edit", "envs/pay.py::reward", "--seeds", "200", "--hours", "4", "-s", "metric.seeds=2",
            "-s", "evaluation.episodes=2", "-s", "budget.per_seed_minutes=1", "-s", "automation.stop=[]",
        )  # fmt: skip
        if launcher is not None:
            task = lab.study.task()
            adapter = task.adapter.model_copy(update={"launcher": launcher})
            lab.study.task_path.write_text(tasks.dump(task.model_copy(update={"adapter": adapter})))
            lab.types("task", "refresh")  # somebody has looked at it
        lab.types("study", "approve", "--yes", "--by", "tester")
        lab.types("study", "baseline")
        return lab

    def commits(self, config: str) -> None:
        """Write the project with a training config, as the first commit of its repository."""
        for name, text in {
            "envs/__init__.py": "", "envs/line.py": LINE, "envs/pay.py": PAY, "configs/line.yaml": config,
            "rlx.toml": "", ".gitignore": "/runs/\n/.rlx/\n", "guide.patch": PATCH,
        }.items():  # fmt: skip
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        commit(self.root)

    @property
    def study(self) -> Study:
        return Study(self.root, self.task, self.name)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "RLX_ROOT"}
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}

    def argv(self, *words: str) -> list[str]:
        """Return a command as its own process has it."""
        return [sys.executable, "-m", "rlx", *words, "--json"]

    def types(self, *words: str, code: int | None = 0) -> dict[str, Any]:
        """Run a command to its end; `code` is the exit code it must have (None: any)."""
        found, told, errors = self._types([*words, "--json"])
        assert code in (None, found), told + errors
        assert "Traceback" not in errors, errors
        answer: dict[str, Any] = json.loads(told)
        return answer

    def prints(self, *words: str, code: int = 0) -> str:
        """Type a command as a person does; return all that it prints."""
        found, told, errors = self._types(words)
        assert found == code, told + errors
        return told + errors

    def _types(self, words: Sequence[str]) -> tuple[int, str, str]:
        is_starting = words[0] == "launch" or (words[0] == "study" and words[1] in STARTS)
        return self._started(words) if is_starting else self._called(words)

    def _started(self, words: Sequence[str]) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "rlx", *words], cwd=self.root, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, env=self.environment,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def _called(self, words: Sequence[str]) -> tuple[int, str, str]:
        """Run a command in this process: no second is spent on its imports."""
        told, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.root), contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors):
            found = call(list(words))
        return found, told.getvalue(), errors.getvalue()

    def next(self) -> list[str]:
        """Return the words that somebody who starts cold is told to type; one seed is enough here."""
        told = self.types("next", "--full")
        words = list(PROPOSAL) if told["action"] == "propose" else shlex.split(told["command"])[1:]
        return [*words, "--seeds", "1"] if words[0] == "launch" else words

    def goes_on(self, *, most: int = 12) -> list[str]:
        """Type what `rlx next` says until the candidate is decided; return the commands."""
        typed = []
        for _ in range(most):
            if self.study.state().decisions:
                return typed
            words = self.next()
            typed.append(" ".join(words[:3]))
            self.types(*words, code=0 if words[0] != "wait" else None)
        raise AssertionError(f"it goes on for ever: {typed}")

    def processes(self) -> list[str]:
        """Return the command lines of all processes that work in this project."""
        return list(_processes(str(self.root)))

    def runs(self) -> list[Run]:
        return [Run(path) for path in sorted((self.root / "runs").iterdir()) if not path.name.startswith(".")]

    def intends(self) -> None:
        """Launch as somebody who dies after the intent was written, and before the supervisor was started."""
        words = self.next()
        code = (
            "import os; from rlx.launch.study_jobs import launch_candidate; from rlx.hosts.cli.main import call;"
            f"launch_candidate._start = lambda *_: os._exit(7); call({words!r})"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=self.root, env=self.environment, capture_output=True)
        assert done.returncode == 7, done.stderr

    def supervisor(self) -> tuple[list[str], dict[str, str]]:
        """Return the command and the variables of the supervisor that the open job waits for."""
        (job,) = self.study.state().open_jobs
        run = Run(self.root / "runs" / str(job.run))
        argv = [sys.executable, "-P", "-m", "rlx.launch.supervisor", str(run.path)]
        return [*argv, *map(str, job.seeds)], {**self.environment, **lasting_environment(run.config)}

    def copied(self, to: Path) -> Path:
        return copy_project(self.root, to)


def copy_project(source: Path, to: Path) -> Path:
    """Copy a project, and give its studies the approval that a copy would have to ask for."""
    shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)
    for ledger in to.glob(".rlx/tasks/*/studies/*/ledger.jsonl"):
        rewrite_approvals(ledger, folder=folder_identity(to))
        mark_made_here(ledger.parent)
    for snapshot in to.glob("runs/*/config_snapshot.yaml"):
        mark_made_here(snapshot.parent)
    mark_own(to)
    return to


def rewrite_approvals(ledger: Path, *, folder: str | None) -> None:
    """Write a ledger anew whose approvals are for another folder, or name none."""
    hashes = {ledgers.GENESIS: ledgers.GENESIS}
    rows = []
    for line in ledger.read_bytes().splitlines():
        row = files.decode(line)
        body = files.decode(row["body"])
        if body["event"] == "approved":
            body["folder"] = folder
        if body["event"] == "anchored":
            body["head"] = hashes[body["head"]]
        text = files.encode(body).decode()
        prev = hashes[row["prev"]]
        hashes[row["hash"]] = files.sha256((prev + text).encode())
        rows.append(files.encode({"prev": prev, "body": text, "hash": hashes[row["hash"]]}) + b"\n")
    ledger.write_bytes(b"".join(rows))


def commit(root: Path) -> None:
    """Make a folder a repository whose first commit is what lies in it."""
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for argv in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "one"]):
        subprocess.run(["git", *argv], cwd=root, check=True, capture_output=True)


def _processes(root: str) -> Iterator[str]:
    own = os.getpid()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != own:
            with contextlib.suppress(OSError):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if root in line or str((folder / "cwd").readlink()).startswith(root):
                    yield line
