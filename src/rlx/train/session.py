"""What a trainer talks to while it trains: logging, periodic evaluation, checkpoints and stop requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.config.diff import diff
from rlx.config.load import document
from rlx.errors import JobFailed, RlxError
from rlx.runs import checkpoint as checkpoints
from rlx.runs import store, written
from rlx.runs.live import LiveSeed
from rlx.runs.provenance import versions
from rlx.runs.status import STOPPED_BY_RULE
from rlx.train.sinks import Sinks

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.evaluate.policy import Policy
    from rlx.evaluate.protocol import Protocol
    from rlx.evaluate.rollout import Evaluation, Evaluator
    from rlx.runs.checkpoint import Bundle, Checkpoint

PROGRESS_SECONDS = 0.5
Judge = Callable[[int], str | None]
"""Asked at a step whether a rule ends the seed: why, or None."""
EMPTY: Mapping[str, Any] = {}


class StoppedByRule(JobFailed):
    """A rule of the config's `stop` section ended the seed; `latest` is saved."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            STOPPED_BY_RULE + reason,
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
    ) -> None:
        self.experiment = experiment
        self.live = live
        self.root = live.root
        self.seed = live.number
        self.checkpoint = checkpoint
        self.total = experiment.algo.total_timesteps
        self.step = checkpoint.step if checkpoint else 0
        self._saved_step = self.step if checkpoint else -1
        self._best = _best_so_far(live.folder) if checkpoint else float("-inf")
        self._config = document(experiment)
        self._clock = _Clock(self.step)
        self._judge = judge
        self._evaluator: Evaluator | None = None
        self._sinks = Sinks(experiment.log, folder=live.folder, name=f"{live.folder.parent.name}/seed_{self.seed}")
        self._next_progress = 0.0
        self._is_through: bool | None = None
        if checkpoint:
            self._announce_resume(checkpoint)

    @property
    def folder(self) -> Path:
        """The seed's checkpoint folder."""
        return self.live.folder / "checkpoints"

    @property
    def is_complete(self) -> bool:
        return self.step >= self.total if self._is_through is None else self._is_through

    @property
    def stop_requested(self) -> bool:
        return self.live.stop_requested

    def begin(self, policy: Policy, snapshot: Callable[[], Bundle]) -> None:
        """Keep the untrained policy and its score; call it before the first update where there is no checkpoint."""
        from rlx.evaluate.parity import retrace
        from rlx.evaluate.rollout import Evaluator

        bundle = snapshot()
        checkpoints.write(self.folder, bundle.policy_only(), name=checkpoints.UNTRAINED, config=self._config)
        with Evaluator(self._report_protocol) as evaluator:
            retrace(bundle, evaluator.env, self._report_protocol)
            evaluator.refuse_misfit(policy)
            evaluation = evaluator.evaluate(policy, seed=self.seed)
        self._keep(evaluation, name=f"seed_{self.seed}_{checkpoints.UNTRAINED}")

    def is_due(self, step: int) -> bool:
        """Say whether `after_update` has anything to do at this step; cheap enough for every environment step."""
        settings = self.experiment
        cadences = [settings.log.every, settings.eval.every, settings.checkpoint.save_every]
        cadences += [settings.stop.every] if self._judge else []
        return step >= self.total or self.stop_requested or any(_crosses(every, self.step, step) for every in cadences)

    def after_update(
        self, step: int, metrics: Callable[[], Mapping[str, float]], *, policy: Policy, snapshot: Callable[[], Bundle]
    ) -> bool:
        """Log, evaluate and save what is due at this boundary; False means: end now, everything is saved.

        `metrics` is called once for every row that is written, and only then.
        """
        self._refuse_moved()
        before, self.step = self.step, step
        is_last = self.is_complete
        if is_last or _crosses(self.experiment.log.every, before, step):
            self._log(metrics())
        is_best = False
        if is_last or _crosses(self.experiment.eval.every, before, step):
            is_best = self._evaluate(policy)
        goes_on = not is_last and not self.stop_requested
        is_milestone = _crosses(self.experiment.checkpoint.save_every, before, step)
        is_judged = goes_on and self._judge is not None and _crosses(self.experiment.stop.every, before, step)
        reason = self._judge(step) if self._judge and is_judged else None
        if not goes_on or is_milestone or reason:
            self._save(snapshot(), is_best=is_best, is_milestone=is_milestone)
        elif is_best:
            checkpoints.write(self.folder, snapshot().without_replay(), name="best", config=self._config)
        if is_last:
            self._report(policy)
        if reason:
            self.live.event("stopped", step=step, reason=reason)
            raise StoppedByRule(reason)
        return goes_on

    def record(self, step: int, values: Mapping[str, float]) -> None:
        """Log a row that another program wrote; raises `StoppedByRule` where a rule ends the seed."""
        self._refuse_moved()
        before, self.step = self.step, max(self.step, step)
        self.live.log(step, values)
        self._sinks.log(step, values)
        self.progress(self.step, values.get("rollout/return_mean"))
        if self._judge and _crosses(self.experiment.stop.every, before, self.step):
            reason = self._judge(self.step)
            if reason:
                self.live.event("stopped", step=self.step, reason=reason)
                raise StoppedByRule(reason)

    def end(self, *, is_complete: bool) -> None:
        """Say whether training is through where steps do not tell: another program counts them."""
        self._is_through = is_complete

    def interrupt(self, snapshot: Callable[[], Bundle]) -> None:
        """Save an earlier boundary at once: a stop was asked for in the middle of a rollout."""
        bundle = snapshot()
        self.step = bundle.step
        if bundle.step != self._saved_step:
            self._save(bundle, is_best=False, is_milestone=False)

    def progress(self, step: int, episode_return: float | None = None) -> None:
        """Leave a sign of life with the step reached; cheap enough for every environment step."""
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
        """End rather than write a second run folder where the project used to be."""
        if not self.live.folder.is_dir():
            raise JobFailed("the run's folder is gone: the project was moved while it trained")

    def _log(self, metrics: Mapping[str, float]) -> None:
        row = {**metrics, **self._clock.read(self.step)}
        self.live.log(self.step, row)
        self._sinks.log(self.step, row)

    def _evaluate(self, policy: Policy) -> bool:
        """Run the selection evaluation and say whether this policy is the best so far."""
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

    def _report(self, policy: Policy) -> None:
        """Measure the final policy on episodes that selected nothing."""
        from rlx.evaluate.rollout import Evaluator
        from rlx.evaluate.yardstick import yardsticks

        with Evaluator(self._report_protocol) as evaluator:
            evaluation = evaluator.evaluate(policy, seed=self.seed)
            beside = yardsticks(evaluator, self.live.folder.parent, seed=self.seed)
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
    """Say whether a multiple of `every` lies between two steps."""
    return every is not None and after // every > before // every


NOT_TRAINING = ("run_name", "seed", "seeds", "device", "resources", "log", "stop", "checkpoint", "eval", "schema")


def resume_label(checkpoint: Checkpoint, *, attempts: list[dict[str, Any]], config: dict[str, Any]) -> tuple[str, str]:
    """Return how faithful continuing here is and what stands against `exact`: changed versions, code or threads."""
    if checkpoint.resume != "exact":
        return checkpoint.resume, checkpoint.missing
    was, now = checkpoint.manifest.get("versions", {}), versions()
    changed = [f"{name} {was[name]} → {now.get(name)}" for name in was if was[name] != now.get(name)]
    edits = [change.key for change in diff(checkpoint.config, config)]
    changed += [key for key in edits if key.split(".")[0] not in NOT_TRAINING]
    if len(attempts) > 1:
        changed += _code_changes(attempts[-2], attempts[-1])
    return ("warm", "changed since: " + ", ".join(changed)) if changed else ("exact", "")


def _code_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say whether the project's code is another; where it could not be hashed, that it may be."""
    was, now = before.get("code_sha256"), after.get("code_sha256")
    if was is None or now is None:
        return ["perhaps the project's code (it could not be hashed)"]
    return [] if was == now else ["the project's code"]


def _attempts(folder: Path) -> list[dict[str, Any]]:
    return written.read(folder / written.ATTEMPTS).sound


def _best_so_far(folder: Path) -> float:
    """Return the score of the `best` checkpoint that is on disk: the evaluation at its step."""
    from rlx.files import number

    try:
        step = checkpoints.read(folder / "checkpoints" / "best", with_replay=False).step
    except RlxError:  # none yet, or damaged: the next evaluation makes a new one
        return float("-inf")
    events = [row for row in written.read(folder / written.EVENTS).sound if row.get("event") == "evaluated"]
    return max((number(row["mean"]) for row in events if row.get("step") == step), default=float("-inf"))


class _Clock:
    """Steps a second since the last row, CPU seconds and memory of this process."""

    def __init__(self, step: int) -> None:
        self._step, self._time = step, time.monotonic()

    def read(self, step: int) -> dict[str, float]:
        now = time.monotonic()
        rate = (step - self._step) / max(now - self._time, 1e-9)
        self._step, self._time = step, now
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
