"""The session of one training seed: logging, periodic evaluation, checkpoints and stop requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.config.diff import diff
from rlx.config.load import document
from rlx.config.schema import COMMAND
from rlx.errors import JobFailed, RlxError
from rlx.runs import store, untrusted_rows
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.live import LiveSeed
from rlx.runs.provenance import versions
from rlx.train.metric_sinks import Sinks

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.evaluate.policy import Policy
    from rlx.evaluate.protocol import Protocol
    from rlx.evaluate.rollout import Evaluation, Evaluator
    from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint

PROGRESS_SECONDS = 0.5
Judge = Callable[[int], str | None]
"""Returns why a stop rule ends the seed at a step, or None."""
EMPTY: Mapping[str, Any] = {}


class StoppedByRule(JobFailed):
    """A rule of the config's `stop` section ended the seed; `latest` is saved."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"stopped by rule: {reason}",
            hint="`latest` is saved; change or drop the rule in the config's `stop` section",
        )


class Session:
    """One attempt at training one seed. A trainer calls `after_update` at every boundary and obeys its answer."""

    def __init__(
        self,
        experiment: Experiment,
        live: LiveSeed,
        *,
        checkpoint: Checkpoint | None = None,
        judge: Judge | None = None,
        pause_step: int | None = None,
    ) -> None:
        self.experiment = experiment
        self.live = live
        self.root = live.root
        self.seed = live.number
        self.checkpoint = checkpoint
        self.total = experiment.algo.total_timesteps
        self.step = 0
        self._saved_step = -1
        self._best = float("-inf")
        if checkpoint:
            self.step = self._saved_step = checkpoint.step
            _restore_best(live.folder, checkpoint)
            self._best = _best_so_far(live.folder)
        self._config = document(experiment)
        self._clock = _Clock(self.step)
        self._judge = judge
        self._pause_step = pause_step
        self._evaluator: Evaluator | None = None
        self._sinks = Sinks(experiment.log, folder=live.folder, name=f"{live.folder.parent.name}/seed_{self.seed}")
        self._next_progress = 0.0
        self._was_completed: bool | None = None
        if checkpoint:
            self._announce_resume(checkpoint)
        elif experiment.backend != COMMAND:  # a command keeps checkpoints of its own, and says where it resumes
            live.forget_rows()

    @property
    def folder(self) -> Path:
        """The seed's checkpoint folder."""
        return self.live.folder / "checkpoints"

    @property
    def is_complete(self) -> bool:
        if self._was_completed is not None:
            return self._was_completed
        return self.step >= self.total

    @property
    def stop_requested(self) -> bool:
        return self.live.stop_requested

    def begin(self, policy: Policy, snapshot: Callable[[], Bundle]) -> None:
        """Save the untrained policy and its score; call it before the first update if there is no checkpoint."""
        from rlx.evaluate.parity import compare_replay
        from rlx.evaluate.rollout import Evaluator

        bundle = snapshot()
        checkpoints.write(self.folder, bundle.policy_only(), name=checkpoints.UNTRAINED, config=self._config)
        with Evaluator(self._report_protocol) as evaluator:
            compare_replay(bundle, evaluator.env, self._report_protocol)
            evaluator.refuse_misfit(policy)
            evaluation = evaluator.evaluate(policy, seed=self.seed)
        self._keep(evaluation, name=f"seed_{self.seed}_{checkpoints.UNTRAINED}")

    def is_due(self, step: int) -> bool:
        """Return whether `after_update` has anything to do at this step; cheap enough for every environment step."""
        settings = self.experiment
        cadences = [settings.log.every, settings.eval.every, settings.checkpoint.save_every]
        if self._judge:
            cadences.append(settings.stop.every)
        if self._pauses(self.step, step):
            return True
        return step >= self.total or self.stop_requested or any(_crosses(every, self.step, step) for every in cadences)

    def after_update(
        self, step: int, metrics: Callable[[], Mapping[str, float]], *, policy: Policy, snapshot: Callable[[], Bundle]
    ) -> bool:
        """Log, evaluate and save whatever is due after an update; return False if training has to end.

        `metrics` is called once for every row that is written.
        """
        self._refuse_moved()
        before = self.step
        self.step = step
        is_last = self.is_complete
        is_pause = not is_last and self._pauses(before, step)
        if is_last or _crosses(self.experiment.log.every, before, step):
            self._log(metrics())
        is_best = False
        if is_last or is_pause or _crosses(self.experiment.eval.every, before, step):
            is_best = self._evaluate(policy)
        if is_pause:
            self.live.request_stop(f"paused at step {step:,}")
        goes_on = not is_last and not self.stop_requested
        is_milestone = _crosses(self.experiment.checkpoint.save_every, before, step)
        reason = self._stop_reason(before) if goes_on else None
        if not goes_on or is_milestone or reason:
            self._save(snapshot(), is_best=is_best, is_milestone=is_milestone)
        elif is_best:
            checkpoints.write(self.folder, snapshot().without_replay(), name="best", config=self._config)
        if is_last:
            self.report(policy)
        self._stop_if(reason)
        return goes_on

    @property
    def lacks_report(self) -> bool:
        """Whether the seed was trained to its end by an attempt that died before its report."""
        events = untrusted_rows.read(self.live.folder / untrusted_rows.EVENTS).sound
        is_reported = any(event["event"] == "reported" and event.get("step") == self.step for event in events)
        is_own_program = self.experiment.backend == COMMAND  # only that program can open its checkpoints
        return self.checkpoint is not None and self.is_complete and not is_reported and not is_own_program

    def record(self, step: int, values: Mapping[str, float]) -> None:
        """Log a row that another program wrote; raise `StoppedByRule` if a rule ends the seed."""
        self._refuse_moved()
        before = self.step
        self.step = max(self.step, step)
        self.live.log(step, values)
        self._sinks.log(step, values)
        self.progress(self.step, values.get("rollout/return_mean"))
        self._stop_if(self._stop_reason(before))

    def _pauses(self, before: int, after: int) -> bool:
        """Return whether the step at which this attempt pauses lies between two steps."""
        return self._pause_step is not None and before < self._pause_step <= after

    def _stop_reason(self, before: int) -> str | None:
        """Return why a stop rule ends the seed, if the rules are due."""
        if self._judge is None or not _crosses(self.experiment.stop.every, before, self.step):
            return None
        return self._judge(self.step)

    def _stop_if(self, reason: str | None) -> None:
        if reason:
            self.live.event("stopped", step=self.step, reason=reason)
            raise StoppedByRule(reason)

    def end(self, *, is_complete: bool) -> None:
        """Set whether training is complete, if another program counts its steps."""
        self._was_completed = is_complete

    def interrupt(self, snapshot: Callable[[], Bundle]) -> None:
        """Save the state before a rollout that a stop request interrupted."""
        bundle = snapshot()
        self.step = bundle.step
        if bundle.step != self._saved_step:
            self._save(bundle, is_best=False, is_milestone=False)

    def progress(self, step: int, episode_return: float | None = None) -> None:
        """Report the step reached as a sign of life; cheap enough for every environment step."""
        now = time.monotonic()
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_SECONDS
            self.live.beat(step=step, episode_return=episode_return)

    def close(self) -> None:
        """Flush the sinks and close the evaluation environments."""
        self._sinks.close()
        if self._evaluator:
            self._evaluator.close()

    def _refuse_moved(self) -> None:
        """Raise if the project was moved, instead of writing a second run folder in its old place."""
        if not self.live.folder.is_dir():
            raise JobFailed("the run's folder is gone: the project was moved while it trained")

    def _log(self, metrics: Mapping[str, float]) -> None:
        row = {**metrics, **self._clock.read(self.step)}
        self.live.log(self.step, row)
        self._sinks.log(self.step, row)

    def _evaluate(self, policy: Policy) -> bool:
        """Run the selection evaluation and return whether this policy is the best so far."""
        from rlx.evaluate.protocol import Protocol
        from rlx.evaluate.rollout import Evaluator

        if self._evaluator is None:
            protocol = Protocol.of(self.experiment, purpose="selection", root=self.root)
            self._evaluator = Evaluator(protocol)
        evaluation = self._evaluator.evaluate(policy)
        is_best = evaluation.score > self._best
        self._best = max(self._best, evaluation.score)
        self._keep(evaluation, name=f"seed_{self.seed}_step_{self.step}")
        self.live.event("evaluated", step=self.step, mean=evaluation.score, is_best=is_best)
        self._sinks.log(self.step, {"eval/return_mean": evaluation.mean})
        return is_best

    def report(self, policy: Policy) -> None:
        """Measure the final policy on episodes that were not used for selection. A completed seed has this report."""
        from rlx.evaluate.reference_policies import reference_scores
        from rlx.evaluate.rollout import Evaluator

        with Evaluator(self._report_protocol) as evaluator:
            evaluation = evaluator.evaluate(policy, seed=self.seed)
            beside = reference_scores(evaluator, self.live.folder.parent, seed=self.seed)
        identity = checkpoints.read(self.folder / "latest", with_replay=False).identity
        named = {"checkpoint": "latest", "identity": identity}
        self._keep(evaluation, name=f"seed_{self.seed}_latest", beside={**beside, **named})
        self.live.event("reported", step=self.step, fingerprint=evaluation.fingerprint)

    @cached_property
    def _report_protocol(self) -> Protocol:
        from rlx.evaluate.protocol import Protocol

        return Protocol.of(self.experiment, purpose="report", root=self.root)

    def _keep(self, evaluation: Evaluation, *, name: str, beside: Mapping[str, Any] = EMPTY) -> None:
        document = {**evaluation.document(), **beside, "seed": self.seed, "step": self.step}
        store.save_evaluation(self.live.folder.parent, evaluation.fingerprint, name, document)

    def _save(self, bundle: Bundle, *, is_best: bool, is_milestone: bool) -> None:
        checkpoints.write(self.folder, bundle, name="latest", config=self._config)
        self._saved_step = bundle.step
        if is_best:
            checkpoints.link(self.folder, "latest", "best")
        if is_milestone and self.experiment.checkpoint.keep:
            checkpoints.link(self.folder, "latest", f"step_{bundle.step}")
            checkpoints.prune(self.folder, keep=self.experiment.checkpoint.keep)

    def _announce_resume(self, checkpoint: Checkpoint) -> None:
        label, missing = resume_label(checkpoint, attempts=_attempts(self.live.folder), config=self._config)
        self.live.log_resume(checkpoint.step)
        self.live.event("resumed", step=checkpoint.step, label=label, missing=missing, checkpoint=checkpoint.path.name)


def _crosses(every: int | None, before: int, after: int) -> bool:
    """Return whether a multiple of `every` lies between two steps."""
    return every is not None and after // every > before // every


NOT_TRAINING = ("run_name", "seed", "seeds", "device", "resources", "log", "stop", "checkpoint", "eval", "schema")


def resume_label(checkpoint: Checkpoint, *, attempts: list[dict[str, Any]], config: dict[str, Any]) -> tuple[str, str]:
    """Return the resume label and what keeps it from being `exact`: changed versions, config keys or code."""
    if checkpoint.resume != "exact":
        return checkpoint.resume, checkpoint.missing
    old = checkpoint.manifest.get("versions", {})
    new = versions()
    changed = [f"{name} {old[name]} → {new.get(name)}" for name in old if old[name] != new.get(name)]
    edits = [change.key for change in diff(checkpoint.config, config)]
    changed += [key for key in edits if key.split(".")[0] not in NOT_TRAINING]
    if len(attempts) > 1:
        changed += _code_changes(attempts[-2], attempts[-1])
    if changed:
        return "warm", "changed since: " + ", ".join(changed)
    return "exact", ""


def _code_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return whether the project's code changed, or that it may have changed if it could not be hashed."""
    hashes = [before.get("code_sha256"), after.get("code_sha256")]
    if None in hashes:
        return ["perhaps the project's code (it could not be hashed)"]
    return ["the project's code"] * (hashes[0] != hashes[1])


def _attempts(folder: Path) -> list[dict[str, Any]]:
    return untrusted_rows.read(folder / untrusted_rows.ATTEMPTS).sound


def _restore_best(folder: Path, checkpoint: Checkpoint) -> None:
    """Make a checkpoint `best` if its evaluation chose it, but the attempt was killed before it was linked."""
    chosen = [row for row in _evaluated(folder) if row.get("is_best")]
    if chosen and chosen[-1].get("step") == checkpoint.step != _best_step(folder):
        checkpoints.link(folder / "checkpoints", checkpoint.path.name, "best")


def _best_step(folder: Path) -> int | None:
    """Return the step of the stored `best` checkpoint."""
    try:
        return checkpoints.read(folder / "checkpoints" / "best", with_replay=False).step
    except RlxError:  # there is none, or it is damaged: the next evaluation writes a new one
        return None


def _best_so_far(folder: Path) -> float:
    """Return the score of the stored `best` checkpoint: the evaluation at its step."""
    from rlx.files import number

    step = _best_step(folder)
    scores = [number(row["mean"]) for row in _evaluated(folder) if row.get("step") == step]
    return max(scores, default=float("-inf"))


def _evaluated(folder: Path) -> list[dict[str, Any]]:
    rows = untrusted_rows.read(folder / untrusted_rows.EVENTS).sound
    return [row for row in rows if row.get("event") == "evaluated"]


class _Clock:
    """Steps per second since the last row, CPU seconds and memory of this process."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._time = time.monotonic()

    def read(self, step: int) -> dict[str, float]:
        now = time.monotonic()
        rate = (step - self._step) / max(now - self._time, 1e-9)
        self._step = step
        self._time = now
        return {
            "time/steps_per_second": round(rate, 1),
            "time/cpu_seconds": round(time.process_time(), 3),
            "time/memory_mb": _resident_mb(),
        }


def _resident_mb() -> float:
    try:
        with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123  hot path: no Path object
            pages = int(stream.read().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
    except OSError:
        import resource

        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
