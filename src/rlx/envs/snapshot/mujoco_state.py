"""MuJoCo's state: what `mj_getState` gives, the derived quantities a step may read first, and the model's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

# After `mj_step` these belong to the state before the last sub-step, and Ant or Humanoid read them at the start of the
# next step; recomputing them from the new positions would change the reward.
_DERIVED = (
    "xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat",
    "cam_xpos", "cam_xmat", "subtree_com", "subtree_linvel", "subtree_angmom", "cdof", "cdof_dot", "cinert", "cvel",
    "cacc", "cfrc_int", "cfrc_ext", "qacc", "qacc_smooth", "qacc_warmstart", "qfrc_bias", "qfrc_passive",
    "qfrc_actuator", "qfrc_smooth", "qfrc_constraint", "qfrc_inverse", "qfrc_spring", "qfrc_damper", "qfrc_gravcomp",
    "qfrc_fluid", "actuator_force", "actuator_length", "actuator_velocity", "act_dot", "ten_length", "ten_velocity",
    "sensordata", "energy",
)  # fmt: skip
# Groups of model fields that domain randomisation changes; only their floats, never an index or an address.
_RANDOMISED = ("body_", "geom_", "dof_", "jnt_", "qpos", "actuator_", "site_", "tendon_", "eq_", "pair_", "hfield_")
_OPTIONS = ("timestep", "gravity", "wind", "magnetic", "density", "viscosity", "impratio", "tolerance")

_model_fields: list[str] = []


def read_data(data: Any) -> dict[str, Any]:
    """Return everything the next step of a simulation depends on."""
    import mujoco

    signature = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    state = np.empty(mujoco.mj_stateSize(data.model, signature))
    mujoco.mj_getState(data.model, data, state, signature)
    names = _present(data)
    return {"state": state, "names": names, "derived": _joined(data, names)}


def write_data(data: Any, kept: dict[str, Any]) -> None:
    """Put a simulation where `read_data` found it."""
    import mujoco

    model = data.model
    signature = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_setState(model, data, kept["state"], signature)
    mujoco.mj_forward(model, data)  # contacts and everything else that is not listed above
    mujoco.mj_setState(model, data, kept["state"], signature)
    _write(data, kept["names"], kept["derived"])


def fits_data(data: Any, kept: dict[str, Any]) -> bool:
    """Say whether `kept` has the sizes of this simulation."""
    import mujoco

    size = mujoco.mj_stateSize(data.model, int(mujoco.mjtState.mjSTATE_INTEGRATION))
    return kept["state"].shape == (size,) and _fits(data, kept["names"], kept["derived"], _present(data))


def read_model(model: Any) -> dict[str, Any]:
    """Return the model's numbers that may be randomised between episodes."""
    fields = _fields(model)
    options = {name: np.array(getattr(model.opt, name)) for name in _OPTIONS if hasattr(model.opt, name)}
    return {"names": list(fields), "values": _joined(model, fields), "options": options}


def write_model(model: Any, kept: dict[str, Any]) -> None:
    """Give a model the numbers that `read_model` found."""
    _write(model, kept["names"], kept["values"])
    for name, values in kept["options"].items():
        if values.ndim:
            getattr(model.opt, name)[...] = values
        else:
            setattr(model.opt, name, values.item())


def fits_model(model: Any, kept: dict[str, Any]) -> bool:
    """Say whether `kept` has this model's sizes, and names nothing but its floats."""
    is_known = all(name in _OPTIONS for name in kept["options"])
    return is_known and _fits(model, kept["names"], kept["values"], _fields(model))


def _joined(owner: Any, names: list[str]) -> Any:
    """Return many small arrays as one; floats of 32 bits survive the way through 64."""
    return np.concatenate([getattr(owner, name).ravel() for name in names], dtype=np.float64)


def _write(owner: Any, names: list[str], values: Any) -> None:
    position = 0
    for name in names:
        target = getattr(owner, name)
        target[...] = values[position : position + target.size].reshape(target.shape)
        position += target.size


def _fits(owner: Any, names: list[str], values: Any, known: list[str]) -> bool:
    return names == known and values.shape == (sum(getattr(owner, name).size for name in names),)


def _present(data: Any) -> list[str]:
    return [name for name in _DERIVED if hasattr(data, name)]


def _fields(model: Any) -> list[str]:
    if not _model_fields:
        candidates = [name for name in dir(model) if name.startswith(_RANDOMISED)]
        _model_fields.extend(name for name in candidates if _is_float(getattr(model, name)))
    return _model_fields


def _is_float(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f"
