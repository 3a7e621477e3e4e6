"""Turns hyperparameters of RL Baselines3 Zoo into a config of rlx: YAML as data, Python texts without eval."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlx import files
from rlx.adopt.repository import dotted, literal
from rlx.config.key_docs import OTHER_NAMES
from rlx.config.load import parse
from rlx.config.schema import ALGORITHMS
from rlx.errors import NotFound, UsageError

LARGEST_FILE = 2**20
_ALGORITHMS = {"ppo_lstm": "recurrent_ppo"}
_POLICIES = {"MlpPolicy": "mlp", "CnnPolicy": "cnn", "MultiInputPolicy": "multi", "MlpLstmPolicy": "mlp",
             "CnnLstmPolicy": "cnn", "LinearPolicy": "mlp"}  # fmt: skip
_ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "ELU": "elu", "GELU": "gelu", "SiLU": "silu"}
_NORMALISERS = {"norm_obs": "obs", "norm_reward": "reward"}


@dataclass
class ZooConfig:
    """A config of rlx, and the settings that have no place in it."""

    algorithm: str
    entry: str
    """The entry of the file that was used: the environment's own, or `default`."""
    sections: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def text(self, source: str) -> str:
        """Return the config as YAML."""
        lines = [f"# From RL Baselines3 Zoo ({source}, entry {self.entry}), translated by rlx. Not measured with rlx."]
        lines += [f"# left out: {setting}" for setting in self.left_out]
        return "\n".join([*lines, yaml.safe_dump(self.sections, sort_keys=False, default_flow_style=None)])


def zoo_config(path: Path, env_id: str) -> ZooConfig:
    """Read the entry of an environment; the file's name is the algorithm, as in the zoo."""
    algorithm = _ALGORITHMS.get(path.stem, path.stem)
    if algorithm not in ALGORITHMS:
        known = ", ".join(sorted({*ALGORITHMS, *_ALGORITHMS}))
        raise UsageError(f"{path.name} does not name an algorithm that rlx trains", hint=f"known file names: {known}")
    entries = _entries(path)
    entry = env_id
    if entry not in entries:
        entry = "atari" if env_id.startswith("ALE/") or "NoFrameskip" in env_id else "default"
    settings = entries.get(entry)
    if not isinstance(settings, dict):
        hint = f"it has {', '.join(map(str, list(entries)[:12]))}"
        raise NotFound(f"{path} has no hyperparameters for {env_id}", hint=hint)
    config = ZooConfig(algorithm, entry)
    config.sections = {"env": {"id": env_id, "num_envs": 1}, "algo": {"name": algorithm}, "policy": {}}
    for key, value in settings.items():
        if not _translate(str(key), value, config):
            config.left_out.append(f"{key}: {str(value)[:80]}")
    _shrink_batch(config)
    if not config.sections["policy"]:
        del config.sections["policy"]
    parse({"run_name": "zoo", **config.sections}, source=str(path))
    return config


def _shrink_batch(config: ZooConfig) -> None:
    """Limit a batch to one rollout. SB3 does the same in silence; rlx refuses a larger one."""
    algo = config.sections["algo"]
    if "rollout_steps" not in ALGORITHMS[config.algorithm].model_fields or "batch_size" not in algo:
        return
    default = ALGORITHMS[config.algorithm].model_fields["rollout_steps"].default
    most = config.sections["env"]["num_envs"] * algo.get("rollout_steps", default)
    if algo["batch_size"] > most:
        config.left_out.append(f"batch_size: {algo['batch_size']}, limited to one rollout of {most}")
        algo["batch_size"] = most


def _entries(path: Path) -> dict[str, Any]:
    try:
        entries = yaml.safe_load(files.read_bytes(path, largest=LARGEST_FILE))
    except FileNotFoundError:
        raise NotFound(f"no file {path}", hint="--from zoo:hyperparams/ppo.yml") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first_line = str(error).splitlines()[0]
        raise UsageError(f"{path} is not YAML: {first_line}", hint="--from zoo:hyperparams/ppo.yml") from None
    if not isinstance(entries, dict):
        raise UsageError(f"{path} is not a table of environments", hint="--from zoo:hyperparams/ppo.yml")
    return entries


def _translate(key: str, value: Any, config: ZooConfig) -> bool:
    """Put one setting into the config; return False if it has no place there."""
    special = {"policy": _policy, "policy_kwargs": _policy_kwargs, "normalize": _normalize}.get(key)
    if special is not None:
        return special(value, config)
    place = OTHER_NAMES.get(key, f"algo.{key}")
    if key == "noise_std":
        place = "algo.action_noise"
    elif key == "noise_type" and value == "normal":
        return True  # the only kind of noise that rlx has
    section, _, name = place.partition(".")
    if key == "n_envs" and isinstance(value, int):
        config.sections["env"]["num_envs"] = value
        return True
    if section != "algo" or name not in ALGORITHMS[config.algorithm].model_fields:
        return False
    number = _number(value)
    if number is None:
        return False
    if name in ("total_timesteps", "buffer_size", "learning_starts") and isinstance(number, float):
        number = int(number)
    config.sections["algo"][name] = number
    return True


def _number(value: Any) -> Any:
    """Return a setting of the zoo: a number, a flag, `auto`, or a schedule such as `lin_0.001`; None for others."""
    if isinstance(value, (bool, int, float)) or value == "auto":
        return value
    if not isinstance(value, str):
        return None
    is_linear = value.startswith("lin_")
    try:
        number = float(value.removeprefix("lin_"))
    except ValueError:
        return None
    if is_linear:
        return {"linear": [number, 0.0]}
    return number


def _policy(value: Any, config: ZooConfig) -> bool:
    if value not in _POLICIES:
        return False
    if _POLICIES[value] != "mlp":
        config.sections["policy"]["type"] = _POLICIES[value]
    return True


def _normalize(value: Any, config: ZooConfig) -> bool:
    parts: dict[str, bool] = {}
    if isinstance(value, bool):
        parts = {"obs": value, "reward": value}
    for name, node in _arguments(value):
        flag = literal(node)
        if name in _NORMALISERS and isinstance(flag, bool):
            parts[_NORMALISERS[name]] = flag
        elif name != "gamma":
            config.left_out.append(f"normalize.{name}")
    if parts:
        config.sections["env"]["normalize"] = parts
    return bool(parts)


def _policy_kwargs(value: Any, config: ZooConfig) -> bool:
    found = False
    for name, node in _arguments(value):
        found = True
        policy = config.sections["policy"]
        sizes = _sizes(node)
        activation = _ACTIVATIONS.get(dotted(node).rpartition(".")[2])
        if name == "net_arch" and sizes is not None:
            policy["hidden_sizes"] = sizes
        elif name == "activation_fn" and activation:
            policy["activation"] = activation
        elif isinstance(literal(node), (bool, int, float)):
            policy.setdefault("kwargs", {})[name] = literal(node)
        else:
            config.left_out.append(f"policy_kwargs.{name}: {ast.unparse(node)[:80]}")
    return found


def _sizes(node: ast.expr) -> list[int] | None:
    """Return the hidden layers of a network; None if actor and critic differ."""
    arms = [child for _, child in _entries_of(node)] or [node]
    sizes = [literal(arm) for arm in arms]
    same = all(size == sizes[0] for size in sizes)
    if same and isinstance(sizes[0], list) and all(isinstance(size, int) for size in sizes[0]):
        return sizes[0]
    return None


def _arguments(value: Any) -> Iterator[tuple[str, ast.expr]]:
    """Yield the entries of a dict that is written as Python text, or of a mapping."""
    if isinstance(value, Mapping):
        value = repr(dict(value))
    if not isinstance(value, str):
        return
    try:
        tree = ast.parse(value.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _entries_of(tree)


def _entries_of(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call) and dotted(node.func) == "dict" and not node.args:
        for keyword in node.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(literal(key), str):
                yield str(literal(key)), value
