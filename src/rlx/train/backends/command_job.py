"""One run of a training program: started, followed, stopped when asked, and judged by what it left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlx import sandbox
from rlx.config.schema import Command
from rlx.errors import JobFailed
from rlx.runs import loaded, metrics, opaque
from rlx.runs.follow import STDOUT, Followed
from rlx.runs.run import Run
from rlx.train.backends.command_argv import arguments, fill
from rlx.train.backends.command_checkpoint import Left
from rlx.train.backends.command_output import Output

if TYPE_CHECKING:
    from rlx.train.session import Session

OUTPUT = "output"
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
        """Run the program to its end; raises `JobFailed` where it failed, left nothing or told nothing."""
        words = self._prepare()
        left = Left(self._command.checkpoint, self._places, self._session.root)
        if self._followed:
            self._followed.pass_over()
        started = time.monotonic()
        process = sandbox.start(
            words, None, env=self._environment(), cwd=self._session.root, stdout=sandbox.PIPE, stderr=MERGED
        )  # fmt: skip
        assert process.stdout is not None
        sys.stdout.flush()
        output = Output(process.stdout, log=1, keeps_lines=self._reads_output)
        try:
            reason = self._watch(process, output, started)
        finally:
            if process.poll() is None:
                sandbox.kill(process)
            output.close(wait_seconds=GRACE_SECONDS)
        self._follow(output, is_last=True)
        self._conclude(process.returncode, reason, output, left)

    def _watch(self, process: sandbox.Program, output: Output, started: float) -> str:
        """Follow the program until it ends; return why it was ended, or nothing."""
        reason, deadline = "", float("inf")
        limit = self._command.minutes
        while process.poll() is None:
            now = time.monotonic()
            if not reason:
                late = limit is not None and now - started > limit * 60
                reason = self._session.live.stop_reason or (f"timeout: longer than {limit:g} minutes" if late else "")
                if reason:
                    process.send_signal(signal.SIGTERM)
                    deadline = now + GRACE_SECONDS
            if now > deadline:
                sandbox.kill(process)
            if now >= self._next_look:
                self._follow(output)
                self._next_look = time.monotonic() + FOLLOW_SECONDS
            time.sleep(POLL_SECONDS)
        return reason

    def _conclude(self, code: int, reason: str, output: Output, left: Left) -> None:
        session = self._session
        saved = left.new()
        if reason and session.stop_requested:
            if saved:
                opaque.keep(session.folder, saved, step=session.step)
            session.end(is_complete=False)
            return
        if reason:
            raise JobFailed(reason, hint="give it longer: command.minutes")
        if code != 0:
            told = output.outcry().replace(str(self._out), "{out}")  # the same of every seed
            raise _failure(code, told, run=session.live.folder.parent.name)
        self._refuse_silence()
        if self._command.checkpoint and saved is None:
            raise JobFailed(
                f"stale or missing checkpoint: the command ended well, but left no new {left.place}; {left.explain()}",
                hint=self._says("checkpoint", "WHERE", "a path or a pattern such as {out}/*/model_*.pt"),
            )
        if saved:
            kept = opaque.keep(session.folder, saved, step=session.step)
            session.live.event("saved", step=session.step, file=kept.path.name, sha256=kept.sha256)
        session.end(is_complete=True)

    def _refuse_silence(self) -> None:
        if self._followed and not self._followed.count:
            says = f"stale or missing metric: the command ended well, but {self._followed.explain()}"
            step = self._followed.likely_step()
            key, value = ("metrics.step", step) if step else ("metrics.path", "WHERE")
            raise JobFailed(says, hint=self._says(key, value, "where figures are read; metrics.step is their step"))

    def _says(self, key: str, value: str, what: str) -> str:
        """Return how a key that says where things are is mended: in the run's task, or in its config."""
        task = (Run(self._session.live.folder.parent).metadata.get("lineage") or {}).get("task")
        if task:
            return f"rlx task refresh {task} -s adapter.{key}={value}" + (f" ({what})" if value == "WHERE" else "")
        return f"command.{key}: {value} ({what})"

    def _prepare(self) -> list[str]:
        """Make room for the program's files, say how it starts, and return its arguments."""
        session, command = self._session, self._command
        kept = opaque.find(session.folder) if command.resume else None
        is_again = bool(metrics.last_row(session.live.folder / "metrics.jsonl")) or self._out.exists()
        if kept:
            session.step = kept.step
            session.live.log_resume(kept.step)
            missing = "what the program does not save itself"
            session.live.event("resumed", step=kept.step, label="warm", missing=missing, checkpoint=kept.path.name)
        elif is_again:
            self._set_aside()
            session.live.log_resume(0)
            session.live.event("resumed", step=0, label="anew", missing="the command cannot go on from a checkpoint")
        self._out.mkdir(parents=True, exist_ok=True)
        places = {**self._places, **({"checkpoint": str(kept.path)} if kept else {})}
        words = (*command.prefix, *(command.resume if kept else command.train))
        return arguments(words, places, override=command.override, overrides=command.overrides)

    def _set_aside(self) -> None:
        """Keep what an earlier attempt wrote, away from this one."""
        number = 1
        while self._out.with_name(f"{OUTPUT}_{number}").exists():
            number += 1
        if self._out.exists():
            os.rename(self._out, self._out.with_name(f"{OUTPUT}_{number}"))

    def _environment(self) -> Mapping[str, str]:
        """Return our own variables, with the project first on the path of imports and our interpreter first on PATH.

        Before the project there is only what writes down which modules were loaded.
        """
        own = dict(os.environ)
        root = self._session.root
        told = loaded.recorded(self._session.live.folder)
        paths = [str((root / one).resolve()) for one in self._command.python_path]
        inherited = [path for path in own.get("PYTHONPATH", "").split(os.pathsep) if path]
        programs = [str(Path(sys.executable).parent), *own.get("PATH", os.defpath).split(os.pathsep)]
        return {
            **own,
            **told,
            "PYTHONPATH": os.pathsep.join([told["PYTHONPATH"], *paths, *inherited]),
            "PATH": os.pathsep.join(dict.fromkeys(programs)),
        }

    def _source(self) -> Followed | None:
        source = self._command.metrics
        return Followed(source, self._place(source.path)) if source else None

    @property
    def _reads_output(self) -> bool:
        source = self._command.metrics
        return source is not None and source.reader == STDOUT and not source.path

    def _place(self, template: str) -> str:
        return str(self._session.root / fill(template, self._places)) if template else ""

    def _follow(self, output: Output, *, is_last: bool = False) -> None:
        """Take over the figures that are new; without any, show that the program lives."""
        printed = output.lines(is_last=is_last) if self._reads_output else []
        rows = self._followed.rows(is_last=is_last, printed=printed) if self._followed else []
        for row in rows:
            self._session.record(row.step, row.values)
        if not rows:
            self._session.progress(self._session.step)


def _failure(code: int, told: str, *, run: str) -> JobFailed:
    if code < 0:
        name = signal.Signals(-code).name
        how = f"was killed by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}"
    else:
        how = f"ended with exit code {code}"
    memory = " (out of memory)" if any(word in told for word in MEMORY_WORDS) else ""
    return JobFailed(f"the training command {how}{memory}: {told[:LONGEST_SHOWN]}", hint=f"rlx logs {run}")
