"""The defaults that depend on the rest of the config; after loading, every value is set."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TypeVar

from rlx.config.schema import (
    COMMAND,
    Algo,
    Ars,
    Dqn,
    Env,
    Experiment,
    OffPolicy,
    OnPolicy,
    Policy,
    Ppo,
    Sac,
    Section,
    Trpo,
)

SectionT = TypeVar("SectionT", bound=Section)
LONGEST_NAME_BYTES = 120  # leaves room for `_<number>` and temporary names in a file name of 255 bytes


def resolve(experiment: Experiment) -> Experiment:
    """Return the experiment with every open value filled in; resolving twice changes nothing."""
    total = experiment.algo.total_timesteps
    num_envs = 1
    if isinstance(experiment.algo, OnPolicy):
        num_envs = 8
    env = _fill(experiment.env, num_envs=num_envs)
    return experiment.model_copy(
        update={
            "run_name": slug(experiment.run_name) or _default_name(experiment),
            "env": env,
            "algo": _resolve_algo(experiment.algo, num_envs=env.num_envs or 1),
            "policy": _resolve_policy(experiment.policy, experiment.algo),
            "checkpoint": _fill(experiment.checkpoint, save_every=max(1, total // 10)),
            "eval": _fill(experiment.eval, every=max(1, total // 10)),
            "log": _fill(experiment.log, every=_log_every(experiment.algo)),
            "stop": _fill(experiment.stop, every=max(1, total // 50)),
        }
    )


def _fill(section: SectionT, **values: object) -> SectionT:
    """Return the section with the values it leaves open."""
    absent = {key: value for key, value in values.items() if getattr(section, key) is None}
    if not absent:
        return section
    return section.model_copy(update=absent)


def _log_every(algo: Algo) -> int:
    """Return 1 (every update) for algorithms that update once per rollout; for others, 200 rows per run."""
    if isinstance(algo, (OnPolicy, Ars)):
        return 1
    return max(1, algo.total_timesteps // 200)


def _resolve_policy(policy: Policy, algo: Algo) -> Policy:
    """Fill in the networks of the papers' reference code, which SB3 uses too."""
    if not isinstance(algo, OffPolicy):
        return _fill(policy, hidden_sizes=(64, 64), activation="tanh")
    sizes = (400, 300)
    if isinstance(algo, Dqn):
        sizes = (64, 64)
    elif isinstance(algo, Sac):
        sizes = (256, 256)
    return _fill(policy, hidden_sizes=sizes, activation="relu")


def _resolve_algo(algo: Algo, *, num_envs: int) -> Algo:
    """Fit default values to the written ones: the batch to the rollout, the warm-up to the run."""
    written = algo.model_fields_set
    update: dict[str, object] = {}
    if isinstance(algo, (Ppo, Trpo)) and "batch_size" not in written:
        update["batch_size"] = fitting_batch(num_envs * algo.rollout_steps, algo.batch_size)
    if isinstance(algo, OffPolicy) and "learning_starts" not in written:
        update["learning_starts"] = min(algo.learning_starts, algo.total_timesteps // 2)
    if isinstance(algo, Ars) and algo.top_deltas is None:
        update["top_deltas"] = algo.deltas
    if not update:
        return algo
    return algo.model_copy(update=update)


def divisors(number: int) -> list[int]:
    """Return the divisors in order; none for numbers too large to be a rollout."""
    if number > 10**10:
        return []
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def fitting_batch(rollout: int, wanted: int) -> int:
    """Return the batch size nearest to `wanted` (as a ratio) that divides the rollout."""
    fitting = [n for n in divisors(rollout) if n > 1] or [wanted]
    return min(fitting, key=lambda n: abs(math.log(n / wanted)))


def _default_name(experiment: Experiment) -> str:
    if experiment.command is None:
        return default_name(experiment.env, experiment.algo)
    script = next((word for word in experiment.command.train if word.endswith((".py", ".sh"))), COMMAND)
    return slug(script.rpartition("/")[2].rpartition(".")[0]) or COMMAND


def default_name(env: Env, algo: Algo) -> str:
    """Return `<env>_<algo>`: `ALE/Pong-v5` with PPO is `pong_ppo`."""
    world = re.sub(r"-v\d+$", "", re.split(r"[/:]", env.id)[-1])
    return slug(f"{world}_{algo.name.rsplit(':', 1)[-1]}".lower()) or "run"


def slug(name: str) -> str:
    """Return a name that is safe as a file name: letters of any script, digits, `_ - + .`; empty if none is left."""
    normal = unicodedata.normalize("NFC", name)
    unsafe = {ord(char): "_" for char in normal if not _is_safe(char)}
    text = re.sub("_{2,}", "_", normal.translate(unsafe)).strip("._-+")
    return text.encode()[:LONGEST_NAME_BYTES].decode(errors="ignore").rstrip("._-+")


def _is_safe(char: str) -> bool:
    return char.isalnum() or char in "._-+" or unicodedata.category(char) in ("Mn", "Mc")
