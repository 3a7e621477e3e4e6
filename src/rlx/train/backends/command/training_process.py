"""Runs a training program: starts it, reads its metrics, stops it on request, and checks the files that it wrote."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.config.schema import Command
from rlx.errors import JobFailed
from rlx.runs import loaded_modules, metrics
from rlx.runs.checkpoints import foreign_checkpoint
from rlx.runs.readers.tail_metrics import STDOUT, MetricsTail
from rlx.runs.run import Run
from rlx.sandbox.popen import PIPE, SandboxedCommand, SandboxedProcess, kill, start
from rlx.train.backends.command.argv import arguments, fill
from rlx.train.backends.command.find_checkpoint import NewCheckpoint
from rlx.train.backends.command.output_log import Output
from rlx.train.backends.command.working_folder import link_project, written_names

if TYPE_CHECKING:
    from rlx.train.session import Session

OUTPUT = "output"
ENDED_WITHOUT = "ended_without"
"""The event of a program that ended well before it wrote its metrics or its checkpoint."""
POLL_SECONDS = 0.05
FOLLOW_SECONDS = 1.0
GRACE_SECONDS = 20.0
MERGED = -2  # as `subprocess.STDOUT`, which only the sandbox may import
LONGEST_SHOWN = 300
MEMORY_WORDS = ("MemoryError", "out of memory", "Cannot allocate memory", "bad_alloc")


class CommandJob:
    """The program of one seed."""

    def __init__(self, session: Session) -> None:
        command = session.experiment.command
        assert command is not None  # the config was checked
        self._session = session
        self._command: Command = command
        self._out = session.live.folder / OUTPUT
        self._places = {"seed": str(session.seed), "out": str(self._out), "steps": str(session.total)}
        self._followed = self._source()
        self._next_look = 0.0

    def run(self) -> None:
        """Run the program to its end; raise `JobFailed` if it fails, or writes no checkpoint or no metrics."""
        words = self._prepare()
        checkpoint = NewCheckpoint(self._command.checkpoint, self._places, self._session.root)
        if self._followed:
            self._followed.pass_over()
        started = time.monotonic()
        command = SandboxedCommand(words, None, self._environment(), self._working_folder())
        process = start(command, stdout=PIPE, stderr=MERGED)
        assert process.stdout is not None
        sys.stdout.flush()
        output = Output(process.stdout, log=1, keeps_lines=self._reads_output)
        try:
            reason = self._watch(process, output, started)
        finally:
            if process.poll() is None:
                kill(process)
            output.close(wait_seconds=GRACE_SECONDS)
        self._follow(output, is_last=True)
        self._conclude(process.returncode, reason, output, checkpoint)

    def _watch(self, process: SandboxedProcess, output: Output, started: float) -> str:
        """Read metrics until the program ends; return why rlx stopped it, or an empty string."""
        reason = ""
        deadline = float("inf")
        limit = self._command.minutes
        while process.poll() is None:
            now = time.monotonic()
            if not reason:
                reason = self._session.live.stop_reason or ""
                if not reason and limit is not None and now - started > limit * 60:
                    reason = f"timeout: longer than {limit:g} minutes"
                if reason:
                    process.send_signal(signal.SIGTERM)
                    deadline = now + GRACE_SECONDS
            if now > deadline:
                kill(process)
            if now >= self._next_look:
                self._follow(output)
                self._next_look = time.monotonic() + FOLLOW_SECONDS
            time.sleep(POLL_SECONDS)
        return reason

    def _conclude(self, code: int, reason: str, output: Output, checkpoint: NewCheckpoint) -> None:
        session = self._session
        saved = checkpoint.new()
        if reason and session.stop_requested:
            if saved:
                foreign_checkpoint.keep(session.folder, saved, step=session.step)
            session.end(is_complete=False)
            return
        if reason:
            raise JobFailed(reason, hint="give it longer: command.minutes")
        if code != 0:
            line = output.failure_line().replace(str(self._out), "{out}")  # the same text for every seed
            raise _failure(code, line, run=session.live.folder.parent.name)
        self._refuse_silence()
        if self._command.checkpoint and saved is None:
            session.live.event(ENDED_WITHOUT, what="checkpoint")
            problem = f"wrote no new {checkpoint.place}; {checkpoint.explain()}"
            raise JobFailed(
                f"stale or missing checkpoint: the command ended well, but {problem}",
                hint=self._setting("checkpoint", "WHERE", "a path or a pattern such as {out}/*/model_*.pt"),
            )
        if saved:
            kept = foreign_checkpoint.keep(session.folder, saved, step=session.step)
            session.live.event("saved", step=session.step, file=kept.path.name, sha256=kept.sha256)
        session.end(is_complete=True)

    def _refuse_silence(self) -> None:
        if self._followed and not self._followed.count:
            self._session.live.event(ENDED_WITHOUT, what="metrics")
            message = f"stale or missing metric: the command ended well, but {self._followed.explain()}"
            hint = self._setting("metrics.path", "WHERE", "the file that metrics are read from")
            step = self._followed.likely_step()
            if step:
                hint = self._setting("metrics.step", step, "the name of the step in that file")
            raise JobFailed(message, hint=hint)

    def _setting(self, key: str, value: str, meaning: str) -> str:
        """Return the hint that sets a key of the command: a command for the run's task, or a line of its config."""
        task = (Run(self._session.live.folder.parent).metadata.get("lineage") or {}).get("task")
        if not task:
            return f"command.{key}: {value} ({meaning})"
        explanation = f" ({meaning})" if value == "WHERE" else ""
        return f"rlx task refresh {task} -s adapter.{key}={value}{explanation}"

    def _prepare(self) -> list[str]:
        """Create the output folder, log how the program starts, and return its arguments."""
        session = self._session
        command = self._command
        kept = foreign_checkpoint.find(session.folder) if command.resume else None
        is_again = bool(metrics.last_row(session.live.folder / "metrics.jsonl")) or self._out.exists()
        if kept:
            session.step = kept.step
            session.live.log_resume(kept.step)
            missing = "everything that the program does not save itself"
            session.live.event("resumed", step=kept.step, label="warm", missing=missing, checkpoint=kept.path.name)
        elif is_again:
            self._set_aside()
            session.live.log_resume(0)
            session.live.event("resumed", step=0, label="anew", missing="the command cannot continue from a checkpoint")
        self._out.mkdir(parents=True, exist_ok=True)
        places = dict(self._places)
        words = [*command.prefix, *command.train]
        if kept:
            places["checkpoint"] = str(kept.path)
            words = [*command.prefix, *command.resume]
        return arguments(words, places, override=command.override, overrides=command.overrides)

    def _working_folder(self) -> Path:
        """Return the folder in which the program runs: the project, or a writable folder with links to its files."""
        command = self._command
        if not command.cwd:
            return self._session.root
        places = [command.checkpoint]
        if command.metrics is not None:
            places.append(command.metrics.path)
        folder = Path(self._place(command.cwd))
        return link_project(self._session.root, folder, written=written_names(command.cwd, places))

    def _set_aside(self) -> None:
        """Move the output of an earlier attempt out of the way."""
        number = 1
        while self._out.with_name(f"{OUTPUT}_{number}").exists():
            number += 1
        if self._out.exists():
            os.rename(self._out, self._out.with_name(f"{OUTPUT}_{number}"))

    def _environment(self) -> Mapping[str, str]:
        """Return rlx's own variables, with the project first in PYTHONPATH and rlx's interpreter first in PATH.

        Only the code that records which modules were loaded comes before the project.
        """
        own = dict(os.environ)
        root = self._session.root
        recorder = loaded_modules.recorded(self._session.live.folder)
        paths = [str((root / path).resolve()) for path in self._command.python_path]
        inherited = [path for path in own.get("PYTHONPATH", "").split(os.pathsep) if path]
        programs = [str(Path(sys.executable).parent), *own.get("PATH", os.defpath).split(os.pathsep)]
        return {
            **own_port(),
            **own,
            **recorder,
            "PYTHONPATH": os.pathsep.join([recorder["PYTHONPATH"], *paths, *inherited]),
            "PATH": os.pathsep.join(dict.fromkeys(programs)),
        }

    def _source(self) -> MetricsTail | None:
        source = self._command.metrics
        return MetricsTail(source, self._place(source.path)) if source else None

    @property
    def _reads_output(self) -> bool:
        source = self._command.metrics
        return source is not None and source.reader == STDOUT and not source.path

    def _place(self, template: str) -> str:
        return str(self._session.root / fill(template, self._places)) if template else ""

    def _follow(self, output: Output, *, is_last: bool = False) -> None:
        """Record the new metrics; if there are none, show that the program is alive."""
        printed = output.lines(is_last=is_last) if self._reads_output else []
        rows = self._followed.rows(is_last=is_last, printed=printed) if self._followed else []
        for row in rows:
            self._session.record(row.step, row.values)
        if not rows:
            self._session.progress(self._session.step)


def _failure(code: int, line: str, *, run: str) -> JobFailed:
    end = f"ended with exit code {code}"
    if code < 0:
        name = signal.Signals(-code).name
        end = f"was killed by {name}"
        if name == "SIGKILL":
            end += " (out of memory?)"
    if any(word in line for word in MEMORY_WORDS):
        end += " (out of memory)"
    return JobFailed(f"the training command {end}: {line[:LONGEST_SHOWN]}", hint=f"rlx logs {run}")


def own_port() -> dict[str, str]:
    """Return a free port as the variables that `torchrun` and torch.distributed read.

    Without it, programs of several seeds on one machine would all take the same one.
    """
    try:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = str(found.getsockname()[1])
    except OSError:  # a sandbox without a network
        return {}
    return {"MASTER_PORT": port, "PET_MASTER_PORT": port}
