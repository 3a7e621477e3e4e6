"""Try a drafted training: two short seeds together, in the sandbox and with the repository's own interpreter.

The smoke test proves that the metric, its steps and the checkpoint are found, and that two seeds write into two
folders. A program that ends well without its metric is invalid.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rlx.adopt.draft import Draft
from rlx.adopt.scan import Scan
from rlx.runs.failure_line import failure_line
from rlx.runs.readers.tail_metrics import MetricsTail
from rlx.sandbox.popen import SandboxedCommand, SandboxedProcess, kill, start
from rlx.sandbox.spec import SandboxSpec, make_private_home, system_reads
from rlx.study.task.infer_task import interpreter_folders
from rlx.study.task.task import Task
from rlx.train.backends.command.argv import arguments, fill
from rlx.train.backends.command.find_checkpoint import NewCheckpoint
from rlx.train.backends.command.working_folder import link_project, written_names

SECONDS = 180.0
ITERATIONS = 3
STEPS = 5000
_LOOK_SECONDS = 0.1
_PASSED_ON = ("PATH", "LANG", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")


@dataclass
class _Trial:
    """One seed of a smoke test."""

    seed: int
    out: Path
    process: SandboxedProcess
    log: Path
    checkpoint: NewCheckpoint
    places: dict[str, str]


def smoke(scan: Scan, draft: Draft, task: Task, *, seconds: float = SECONDS) -> dict[str, Any]:
    """Run two short trainings together and report what was found of each."""
    steps = STEPS
    if draft.unit.startswith("iterations"):
        steps = ITERATIONS
    with TemporaryDirectory(prefix="rlx-smoke-") as folder:
        trials = [_started(scan.root, task, seed, Path(folder), steps) for seed in (0, 1)]
        deadline = time.monotonic() + seconds
        try:
            while any(trial.process.poll() is None for trial in trials) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
        finally:
            for trial in trials:
                if trial.process.poll() is None:
                    kill(trial.process)
        seeds = [_found(trial, task, is_late=time.monotonic() >= deadline) for trial in trials]
    problems = [f"seed {row['seed']}: {row['problem']}" for row in seeds if row["problem"]]
    return {"steps": steps, "unit": draft.unit, "seeds": seeds, "problems": problems, "is_valid": not problems}


def _started(root: Path, task: Task, seed: int, folder: Path, steps: int) -> _Trial:
    adapter = task.adapter
    out = folder / f"seed_{seed}"
    out.mkdir()
    places = {"seed": str(seed), "out": str(out), "steps": str(steps)}
    argv = arguments([*adapter.prefix, *adapter.train], places, override=adapter.override, overrides={})
    working = root
    if adapter.cwd:
        named = [adapter.checkpoint]
        if adapter.metrics is not None:
            named.append(adapter.metrics.path)
        working = link_project(root, Path(fill(adapter.cwd, places)), written=written_names(adapter.cwd, named))
    paths = [str((root / path).resolve()) for path in adapter.python_path]
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= make_private_home(out / ".home")
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", "SDL_NO_SIGNAL_HANDLERS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    reads = tuple(Path(path) for path in interpreter_folders(tuple(argv)))
    spec = SandboxSpec(
        reads=(*system_reads(), root, *reads), writes=(out,), shared_memory=True, local_sockets=adapter.local_sockets
    )
    checkpoint = NewCheckpoint(adapter.checkpoint, places, root)
    log = folder / f"seed_{seed}.log"
    with log.open("wb") as stream:
        command = SandboxedCommand(argv, spec, environment, working, may_go_unenforced=True)
        process = start(command, stdout=stream, stderr=stream)
    return _Trial(seed, out, process, log, checkpoint, places)


def _found(trial: _Trial, task: Task, *, is_late: bool) -> dict[str, Any]:
    code = trial.process.wait()
    printed = trial.log.read_text(encoding="utf-8", errors="replace")
    source = task.adapter.metrics
    rows = []
    explanation = "the task names no metrics"
    if source is not None:
        place = fill(source.path, trial.places)
        tail = MetricsTail(source, place)
        rows = tail.rows(is_last=True, printed=printed.splitlines())
        explanation = tail.explain()
    names = sorted({name for row in rows for name in row.values})
    saved = trial.checkpoint.new()
    wanted = list(source.names) if source is not None else []
    problem = ""
    if code != 0 and is_late:
        problem = "it did not end in time; give it a shorter length, or more seconds"
    elif code != 0:
        problem = f"the program ended with exit code {code}: {failure_line(printed)[:300]}"
    elif not rows:
        problem = f"the program ended well, but logged no metric: {explanation}"
    elif wanted and not set(wanted) <= set(names):
        missing = ", ".join(name for name in wanted if name not in names)
        problem = f"the program ended well, but never logged {missing}; it logged {', '.join(names[:8])}"
    elif task.adapter.checkpoint and saved is None:
        problem = f"the program ended well, but wrote no {task.adapter.checkpoint}; {trial.checkpoint.explain()}"
    return {
        "seed": trial.seed,
        "exit_code": code,
        "rows": len(rows),
        "last_step": rows[-1].step if rows else None,
        "metrics": names,
        "checkpoint": saved.name if saved else None,
        "problem": problem,
    }
