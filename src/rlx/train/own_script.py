"""Records a training script as a run, in three lines, with the same folder, heartbeat and status.

run = rlx.start({"run_name": "mine", "env": {"id": "CartPole-v1"}}, seed=0)
run.log(step, {"rollout/return_mean": 21.5})
run.save("model.pt")
"""

from __future__ import annotations

import atexit
import contextlib
import glob
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import UsageError
from rlx.runs import project, store
from rlx.runs.checkpoints import foreign_checkpoint
from rlx.runs.live import LiveSeed
from rlx.runs.provenance import provenance
from rlx.runs.run import SCRIPT_BACKEND, Run, find
from rlx.runs.status import COMPLETED, RUNNING

if TYPE_CHECKING:
    import numpy as np

    from rlx.config.schema import Env
    from rlx.evaluate.rollout import Evaluation


class ScriptRun:
    """A run that a training script records; use it as a context manager so that its end is recorded."""

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
        """Keep a copy of the script's checkpoint file, with its hash; rlx never opens it."""
        source = Path(file)
        if not source.is_file():
            raise UsageError(f"no file {source} to save", hint="save it with your library first, then pass its path")
        kept = foreign_checkpoint.keep(self._live.folder / "checkpoints", source, step=self._step, name=name)
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
        """End a run whose script did not use `with`; an uncaught error marks it as failed."""
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
        """Do nothing: a function has no memory."""


def _items(batch: Any) -> list[Any]:
    """Split a batch of observations (array, dict or tuple of arrays) into single ones."""
    if isinstance(batch, dict):
        columns = {key: _items(value) for key, value in batch.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(batch, tuple):
        return list(zip(*map(_items, batch), strict=True))
    return list(batch)


def start(config: Mapping[str, Any], *, seed: int = 0, run: str | None = None) -> ScriptRun:
    """Start recording a script's training of one seed. Seeds of one config join one run, also in parallel processes.

    A seed joins the newest run of the same config, name, code and package versions. A seed that failed or was lost
    there starts again; if it is complete or in training, rlx creates a new run. `run` names the run to join instead.
    `config` is any mapping with a `run_name` and, for `evaluate`, an `env` section; other keys are kept as they are.
    """
    from rlx.config.defaults import slug

    root = project.root()
    project.refuse_plain_training(root)
    origin = provenance(root)
    plain = files.decode(files.encode(dict(config)))
    name = slug(str(plain.get("run_name") or "")) or "script"
    runs = project.runs_folder(root)
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with files.locked(runs / name):  # processes that start together decide one after the other
            if run:
                target = _named(run, seed, root)
            else:
                target = _run_to_join(name, plain, seed, origin, root) or _new(name, plain, seed, root)
            live = LiveSeed(target.path / f"seed_{seed}", root=root, origin=origin)
    except OSError as error:
        raise store.write_error(error, runs) from error
    joined = Run(target.path)
    if joined.seed(seed).status.attempt > 1:
        live.forget_rows()
    return ScriptRun(joined, live)


def _named(name: str, seed: int, root: Path) -> Run:
    """Return the run with this name, with a folder for the seed."""
    target = find(name, root=root)
    known = {existing.number: existing for existing in target.seeds}
    if seed not in known:
        return store.add_seeds(target, [seed])
    state = known[seed].status.state
    if target.is_script and state not in (COMPLETED, RUNNING):
        return target
    hint = f"pass another seed (seed={max(known) + 1}), or leave out `run` to record it in a new run"
    raise UsageError(f"{target.name} already has seed {seed}, which is {state}", hint=hint)


def _run_to_join(name: str, config: Mapping[str, Any], seed: int, origin: Mapping[str, Any], root: Path) -> Run | None:
    """Return the newest run of this config if the seed is a replicate of its seeds, with a folder for the seed."""
    group = _group_hash(config)
    alike = [
        run
        for run in _runs_called(name, root)
        if run.metadata.get("backend") == SCRIPT_BACKEND and run.metadata.get("group_hash") == group
    ]
    if not alike:
        return None
    target = max(alike, key=lambda run: float(run.metadata.get("created") or 0.0))
    attempts = [attempt for existing in target.seeds for attempt in existing.attempts]
    if any(_code(attempt) != _code(origin) for attempt in attempts):
        return None
    states = {existing.number: existing.status.state for existing in target.seeds}
    if seed not in states:
        return store.add_seeds(target, [seed])
    if states[seed] in (COMPLETED, RUNNING):
        return None
    return target


def _runs_called(name: str, root: Path) -> Iterator[Run]:
    """Yield the runs `<name>_<NNN>` whose metadata can be read."""
    for folder in project.runs_folder(root).glob(f"{glob.escape(name)}_[0-9]*"):
        run = Run(folder)
        with contextlib.suppress(OSError, ValueError):
            if run.metadata and folder.name.removeprefix(f"{name}_").isdigit():
                yield run


def _code(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what must be equal for two attempts to be replicates."""
    git = attempt.get("git") or {}
    return git.get("commit"), git.get("code_diff_sha256"), attempt.get("code_sha256"), attempt.get("versions")


def _new(name: str, config: Mapping[str, Any], seed: int, root: Path) -> Run:
    import yaml

    env = config.get("env")
    identity = {
        "env": env.get("id") if isinstance(env, dict) else env,
        "algorithm": _algorithm(config.get("algo")),
        "backend": SCRIPT_BACKEND,
        "total_timesteps": _planned(config.get("algo")),
        "config_hash": files.sha256(files.encode(config)),
        "group_hash": _group_hash(config),
    }
    snapshot = yaml.safe_dump(config, sort_keys=False)
    return store.create(root, name=name, snapshot=snapshot, metadata=identity, seeds=[seed])


def _group_hash(config: Mapping[str, Any]) -> str:
    """Return the hash of the keys that replicates have in common."""
    return files.sha256(files.encode({key: config[key] for key in sorted(config) if key not in ("seed", "run_name")}))


def _algorithm(algo: object) -> str:
    if isinstance(algo, dict):
        algo = algo.get("name")
    return str(algo or SCRIPT_BACKEND)


def _planned(algo: object) -> int:
    planned = algo.get("total_timesteps") if isinstance(algo, dict) else None
    return planned if isinstance(planned, int) else 0


def _env(run: Run) -> Env:
    from rlx.config.schema import Env

    env = run.config.get("env")
    if not env:
        raise UsageError(f"the config of {run.name} has no `env`", hint='rlx.start({"env": {"id": "CartPole-v1"}, …})')
    return Env.model_validate({"id": env} if isinstance(env, str) else env)
