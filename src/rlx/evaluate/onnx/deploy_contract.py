"""A deployed policy: its ONNX file, the contract that says how to feed it, and the check that both still agree.

The contract names the observations in order with their scale, the action mapping, the control rate and the hashes. A
copy of it is inside the model. The check file holds observations with the trained policy's actions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx import files
from rlx.errors import NotFound, UsageError
from rlx.evaluate.onnx.onnx_graph import ACTION, onnx_model, require_onnx
from rlx.evaluate.onnx.policy_layers import ObservationPart, PolicyLayers, policy_layers
from rlx.evaluate.policy import Policy, rebuild
from rlx.runs.checkpoints.checkpoint import Checkpoint

SCHEMA = 1
ROWS = 1000
LARGEST_DIFFERENCE = 1e-5
_SPREAD = 2.0
_INSIDE = "rlx.contract"


@dataclass(frozen=True)
class DeployWishes:
    """What the checkpoint does not know: the names of the observations, and the control rate."""

    names: tuple[str, ...] = ()
    control_hz: float | None = None
    source: str = ""


def export_onnx(checkpoint: Checkpoint, target: Path, wishes: DeployWishes) -> dict[str, Any]:
    """Write the model, its contract and its check file; return the proof that the model acts as the policy does."""
    require_onnx()
    layers = policy_layers(checkpoint)
    document = _contract(checkpoint, layers, wishes)
    model = onnx_model(layers, {_INSIDE: json.dumps(document, sort_keys=True)})
    content = model.SerializeToString()
    target.parent.mkdir(parents=True, exist_ok=True)
    observations = drawn_observations(layers.parts, checkpoint, ROWS)
    actions = policy_actions(rebuild(checkpoint), layers.parts, observations)
    files.write_durable(target, content)
    files.write_json(contract_path(target), {**document, "model_sha256": files.sha256(content)})
    with files.replacing(check_path(target)) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **{f"observation/{name}": rows for name, rows in observations.items()},
                 action=actions)  # fmt: skip
    return verify(target)


def contract_path(model: Path) -> Path:
    return model.with_suffix(".contract.json")


def check_path(model: Path) -> Path:
    return model.with_suffix(".check.npz")


def _contract(checkpoint: Checkpoint, layers: PolicyLayers, wishes: DeployWishes) -> dict[str, Any]:
    sizes = [int(np.prod(part.space.shape)) for part in layers.parts]
    names = list(wishes.names)
    if names and (len(names) != sum(sizes) or len(set(names)) != len(names)):
        message = f"--names has {len(set(names))} different names, but the observation has {sum(sizes)} numbers"
        raise UsageError(message, hint="--names with one name per number, in order, separated by commas")
    config: Mapping[str, Any] = checkpoint.config
    env = config.get("env") or {}
    start = 0
    parts = []
    for part, size in zip(layers.parts, sizes, strict=True):
        parts.append(_part_document(part, names[start : start + size]))
        start += size
    space = layers.action_space
    action: dict[str, Any] = {"space": checkpoint.spaces.get("action"), "mapping": layers.head, "shape": space.shape}
    return {
        "schema": SCHEMA,
        "observation": parts,
        "action": {**action, "shape": list(space.shape or ())},
        "control_hz": wishes.control_hz,
        "env": {"id": env.get("id"), "wrappers": env.get("wrappers") or []},
        "algorithm": checkpoint.algorithm,
        "step": checkpoint.step,
        "source": wishes.source,
        "checkpoint_sha256": checkpoint.identity,
    }


def _part_document(part: ObservationPart, names: Sequence[str]) -> dict[str, Any]:
    size = int(np.prod(part.space.shape))
    document: dict[str, Any] = {
        "input": part.name,
        "shape": list(part.space.shape),
        "dtype": str(part.space.dtype),
        "order": list(names) or [f"{part.name}[{index}]" for index in range(size)],
        "scale": None,
    }
    if part.mean is not None and part.std is not None:
        document["scale"] = {"mean": part.mean.tolist(), "std": part.std.tolist(), "clip": part.clip}
    return document


def drawn_observations(parts: Sequence[ObservationPart], checkpoint: Checkpoint, rows: int) -> dict[str, NDArray[Any]]:
    """Return observations around those of the training, inside the bounds of the space."""
    generator = np.random.default_rng(0)
    replay = checkpoint.parity.get("observations")
    observations = {}
    for part in parts:
        size = int(np.prod(part.space.shape))
        centre = np.zeros(size)
        spread = np.ones(size)
        if part.mean is not None and part.std is not None:
            centre = part.mean
            spread = part.std
        elif isinstance(replay, np.ndarray) and len(replay) > 1:
            centre = replay.reshape(len(replay), -1).mean(axis=0)
            spread = replay.reshape(len(replay), -1).std(axis=0) + 1e-3
        drawn = centre + _SPREAD * spread * generator.standard_normal((rows, size))
        shaped = drawn.reshape(rows, *part.space.shape)
        observations[part.name] = np.clip(shaped, part.space.low, part.space.high).astype(part.space.dtype)
    return observations


def policy_actions(
    policy: Policy, parts: Sequence[ObservationPart], observations: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    """Return the trained policy's own actions."""
    if len(parts) == 1 and parts[0].name == "observation":
        return np.asarray(policy.predict(observations["observation"]))
    return np.asarray(policy.predict({part.name: observations[part.name] for part in parts}))


def verify(model: Path, observations: Path | None = None) -> dict[str, Any]:
    """Compare a model with its contract and with the trained policy's actions; `problems` is empty if they agree."""
    _, onnxruntime = require_onnx()
    if not model.is_file():
        raise NotFound(f"no file {model}", hint="rlx export RUN:best --to onnx")
    document = files.read_json(contract_path(model))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise NotFound(f"{contract_path(model)} is not a contract of rlx", hint="rlx export RUN:best --to onnx")
    content = model.read_bytes()
    found: dict[str, Any] = {
        "model": str(model), "contract": str(contract_path(model)), "rows": 0, "largest_difference": None,
        "limit": LARGEST_DIFFERENCE,
    }  # fmt: skip
    if files.sha256(content) != document.get("model_sha256"):  # an unknown model is not loaded
        problem = "the model is not the one that the contract names (sha256)"
        return {**found, "problems": [problem], "is_equal": False}
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    problems = []
    inside = json.loads(session.get_modelmeta().custom_metadata_map.get(_INSIDE, "null"))
    outside = {key: value for key, value in document.items() if key != "model_sha256"}
    if inside != outside:
        problems.append("the contract is not the one inside the model: " + _difference(inside, outside))
    given, expected, names = _stored(observations or check_path(model), outside)
    problems += _order_problems(outside, names)
    result = session.run([ACTION], given)[0]
    largest, differing = _compared(result, expected)
    if differing:
        amount = f"{differing} of {len(expected)} actions"
        problems.append(f"{amount} differ from the trained policy's, by up to {largest:.3g}")
    compared = {"rows": len(expected), "largest_difference": largest}
    return {**found, **compared, "problems": problems, "is_equal": not problems}


def _difference(inside: Any, outside: dict[str, Any]) -> str:
    if not isinstance(inside, dict):
        return "the model has none"
    keys = [key for key in sorted({*inside, *outside}) if inside.get(key) != outside.get(key)]
    return f"`{', '.join(keys)}` differ"


def _stored(path: Path, document: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], NDArray[Any], list[str] | None]:
    """Return stored observations by input, the actions, and the names of the numbers if the file has them."""
    inputs = {part["input"]: part for part in document["observation"]}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            expected = arrays["action"]
            given = {}
            for name, part in inputs.items():
                key = f"observation/{name}" if f"observation/{name}" in arrays else name
                given[name] = arrays[key].astype(part["dtype"]).reshape(-1, *part["shape"])
            names = None
            if "names" in arrays:
                names = [str(name) for name in arrays["names"]]
    except (OSError, ValueError, KeyError) as error:
        hint = "an .npz file with the arrays `observation`, `action` and, if they have names, `names`"
        raise NotFound(f"{path} has no observations that can be compared: {error}", hint=hint) from None
    if {len(rows) for rows in given.values()} != {len(expected)}:
        raise UsageError(f"{path} has different numbers of observations and actions")
    return given, expected, names


def _order_problems(document: Mapping[str, Any], names: list[str] | None) -> list[str]:
    order = [name for part in document["observation"] for name in part["order"]]
    if names is None or names == order:
        return []
    if sorted(names) == sorted(order):
        moved = next(index for index, name in enumerate(order) if names[index] != name)
        return [f"the observations are in another order: number {moved} is `{names[moved]}`, not `{order[moved]}`"]
    return ["the observations have other names than the contract"]


def _compared(result: NDArray[Any], expected: NDArray[Any]) -> tuple[float, int]:
    """Return the largest difference, and how many rows differ by more than the limit."""
    if result.shape != expected.shape:
        return float("inf"), len(expected)
    apart = np.abs(result.astype(np.float64) - expected.astype(np.float64)).reshape(len(expected), -1)
    largest = apart.max(axis=1, initial=0.0)
    is_close = largest <= LARGEST_DIFFERENCE  # also false for NaN
    return float(np.max(largest, initial=0.0)), int(np.count_nonzero(~is_close))
