"""For people with their own training script: a run in three lines, with the same folder, heartbeat and status.

run = rlx.start({"run_name": "mine", "env": {"id": "CartPole-v1"}}, seed=0)
run.log(step, {"rollout/return_mean": 21.5})
run.save("model.pt")
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import UsageError
from rlx.runs import opaque, project, store
from rlx.runs.live import LiveSeed
from rlx.runs.run import SCRIPT_BACKEND, Run

if TYPE_CHECKING:
    import numpy as np

    from rlx.config.schema import Env
    from rlx.evaluate.rollout import Evaluation


class ScriptRun:
    """A run that a script of one's own trains; use it as a context manager so that its end is recorded."""

    def __init__(self, run: Run, live: LiveSeed) -> None:
        self.run = run
        self.name = run.name
        self.path = run.path
        self._live = live
        self._step = 0
        self._is_ended = False
        atexit.register(self._finish_at_exit)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append one row of metrics."""
        self._step = max(self._step, int(step))
        self._live.log(int(step), values)

    def save(self, file: str | Path, *, name: str = "latest") -> Path:
        """Keep a copy of a checkpoint file of one's own, with its hash; rlx never opens it."""
        source = Path(file)
        if not source.is_file():
            raise UsageError(f"no file {source} to save", hint="save it with your library first, then give its path")
        kept = opaque.keep(self._live.folder / "checkpoints", source, step=self._step, name=name)
        self._live.event("saved", step=self._step, file=source.name, sha256=kept.sha256)
        return kept.path

    def evaluate(
        self, policy: Callable[[Any], np.ndarray[Any, Any]], *, episodes: int = 20, name: str = "latest"
    ) -> Evaluation:
        """Measure `policy(observation) -> action` under rlx's protocol, so that the run can be compared."""
        from rlx.evaluate.protocol import Protocol
        from rlx.evaluate.rollout import Evaluator

        protocol = Protocol(
            env=_env(self.run), episodes=episodes, deterministic=True, purpose="report", root=self._live.root
        )
        with Evaluator(protocol) as evaluator:
            evaluation = evaluator.evaluate(_FunctionPolicy(policy), seed=self._live.number)
        document = {**evaluation.document(), "seed": self._live.number, "step": self._step}
        store.save_evaluation(self.path, evaluation.fingerprint, f"seed_{self._live.number}_{name}", document)
        if name == "latest":
            self._live.event("reported", step=self._step, fingerprint=evaluation.fingerprint)
        return evaluation

    def finish(self, error: BaseException | None = None) -> None:
        """Record how the script ended; called by the context manager."""
        if self._is_ended:
            return
        self._is_ended = True
        if error is None:
            self._live.completed(self._step)
        elif isinstance(error, KeyboardInterrupt):
            self._live.request_stop("SIGINT")
            self._live.interrupted(self._step)
        else:
            self._live.failed(error, step=self._step)
        self._live.close()

    def _finish_at_exit(self) -> None:
        """End a run whose script used no `with`: an error that reached the top makes it failed."""
        self.finish(getattr(sys, "last_value", None))

    def __enter__(self) -> ScriptRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(error)


class _FunctionPolicy:
    """`policy(observation) -> action` as a policy on batches."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> np.ndarray[Any, Any]:
        import numpy as np

        return np.stack([np.asarray(self._function(item)) for item in _items(observations)])

    def reset(self, finished: Any = None) -> None:
        """Keep nothing between steps."""


def _items(batch: Any) -> list[Any]:
    """Split a batch of observations (array, dict or tuple of arrays) into single ones."""
    if isinstance(batch, dict):
        columns = {key: _items(value) for key, value in batch.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(batch, tuple):
        return list(zip(*map(_items, batch), strict=True))
    return list(batch)


def start(config: Mapping[str, Any], *, seed: int = 0, run: str | None = None) -> ScriptRun:
    """Start recording a script's training of one seed; `run` adds the seed to an existing run instead.

    `config` is any mapping with a `run_name` and, for `evaluate`, an `env` section; other keys are kept as they are.
    """
    root = project.root()
    target = _existing(run, seed, root) if run else _new(dict(config), seed, root)
    live = LiveSeed(target.path / f"seed_{seed}", root=root)
    return ScriptRun(Run(target.path), live)


def _existing(name: str, seed: int, root: Path) -> Run:
    from rlx.runs.run import find

    return store.add_seeds(find(name, root=root), [seed])


def _new(config: dict[str, Any], seed: int, root: Path) -> Run:
    import yaml

    from rlx.config.defaults import slug

    env = config.get("env")
    env_id = env.get("id") if isinstance(env, dict) else env
    name = slug(str(config.get("run_name") or "script"))
    canonical = files.encode({key: value for key, value in sorted(config.items()) if key not in ("seed", "run_name")})
    identity = {
        "env": env_id,
        "algorithm": _algorithm(config.get("algo")),
        "backend": SCRIPT_BACKEND,
        "total_timesteps": _planned(config.get("algo")),
        "config_hash": files.sha256(files.encode(config)),
        "group_hash": files.sha256(canonical),
    }
    snapshot = yaml.safe_dump(files.decode(files.encode(config)), sort_keys=False)
    return store.create(root, name=name, snapshot=snapshot, metadata=identity, seeds=[seed])


def _algorithm(algo: object) -> str:
    return str(algo.get("name", SCRIPT_BACKEND)) if isinstance(algo, dict) else str(algo or SCRIPT_BACKEND)


def _planned(algo: object) -> int:
    planned = algo.get("total_timesteps") if isinstance(algo, dict) else None
    return planned if isinstance(planned, int) else 0


def _env(run: Run) -> Env:
    from rlx.config.schema import Env

    env = run.config.get("env")
    if not env:
        raise UsageError(f"{run.name} names no env", hint='rlx.start({"env": {"id": "CartPole-v1"}, …})')
    return Env.model_validate({"id": env} if isinstance(env, str) else env)
