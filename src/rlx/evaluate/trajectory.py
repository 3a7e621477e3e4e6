"""Trajectories of evaluation episodes, kept on request as plain arrays (npz, never pickled), and read back checked."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs.record import reward_terms
from rlx.errors import FileDamaged, UsageError

if TYPE_CHECKING:
    from rlx.evaluate.episode import Episode

SUFFIX = ".npz"
Array = NDArray[Any]


@dataclass(frozen=True)
class Trajectory:
    """One episode of T steps: T + 1 observations, T actions, rewards, terms and infos (the scalars; NaN where absent).

    Observations and actions are named arrays: one called "" where the space is plain, else one for each of its parts.
    """

    seed: int
    success: bool | None
    terminated: bool
    observations: Mapping[str, Array]
    actions: Mapping[str, Array]
    rewards: Array
    terms: Mapping[str, Array]
    infos: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.rewards)

    def observation(self, step: int) -> Any:
        """Return what was seen before a step; after the last one with `len(self)`."""
        return _at(self.observations, step)

    def action(self, step: int) -> Any:
        return _at(self.actions, step)

    def info(self, step: int) -> dict[str, Any]:
        """Return the scalars that came with a step, and its reward terms where there were some."""
        told = {name: values[step].item() for name, values in self.infos.items()}
        terms = {name: float(values[step]) for name, values in self.terms.items()}
        return {**told, "reward_terms": terms} if terms else told


def _at(parts: Mapping[str, Array], step: int) -> Any:
    return parts[""][step] if "" in parts else {name: values[step] for name, values in parts.items()}


class Trail:
    """Writes down one episode while it is played."""

    def __init__(self, observation: Any) -> None:
        self._observations = [_parts(observation)]
        self._actions: list[dict[str, Array]] = []
        self._rewards: list[float] = []
        self._terms: list[dict[str, float]] = []
        self._infos: list[dict[str, float]] = []

    def add(self, action: Any, reward: float, observation: Any, info: Mapping[str, Any]) -> None:
        """Take note of a step; arrays are copied, since an environment may use them again."""
        self._actions.append(_parts(action))
        self._rewards.append(reward)
        self._observations.append(_parts(observation))
        self._terms.append(reward_terms(info))
        self._infos.append({str(key): float(value) for key, value in info.items() if _is_scalar(value)})

    def trajectory(self, episode: Episode) -> Trajectory:
        """Return the whole episode."""
        return Trajectory(
            episode.seed,
            episode.success,
            episode.terminated,
            {name: np.stack([one[name] for one in self._observations]) for name in self._observations[0]},
            {name: np.stack([one[name] for one in self._actions]) for name in self._actions[0]},
            np.array(self._rewards),
            _columns(self._terms, absent=0.0),
            _columns(self._infos, absent=float("nan")),
        )


def _parts(value: Any, name: str = "") -> dict[str, Array]:
    """Return a value of any space as named arrays, copied."""
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, tuple):
        items = {str(index): item for index, item in enumerate(value)}.items()
    else:
        array = np.array(value)
        if array.dtype.kind not in "biuf":
            what = type(value).__name__
            raise UsageError(f"a {what} cannot be kept as an array", hint="leave --keep-trajectories out")
        return {name: array}
    prefix = f"{name}/" if name else ""
    return {key: array for part, item in items for key, array in _parts(item, f"{prefix}{part}").items()}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.number)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    )


def _columns(rows: Sequence[Mapping[str, float]], *, absent: float) -> dict[str, Array]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, absent) for row in rows]) for name in names}


def encode(trajectories: Sequence[Trajectory]) -> bytes:
    """Return trajectories as the bytes of an npz file: every array of all episodes end to end, and their lengths."""
    arrays: dict[str, Array] = {
        "length": np.array([len(one) for one in trajectories], dtype=np.int64),
        "seed": np.array([one.seed for one in trajectories], dtype=np.int64),
        "success": np.array([-1 if one.success is None else int(one.success) for one in trajectories], dtype=np.int8),
        "terminated": np.array([one.terminated for one in trajectories], dtype=np.bool_),
        "reward": np.concatenate([one.rewards for one in trajectories]),
    }
    arrays |= _joined("observation", [one.observations for one in trajectories], trajectories)
    arrays |= _joined("action", [one.actions for one in trajectories], trajectories)
    arrays |= _joined("term", [one.terms for one in trajectories], trajectories, absent=0.0)
    arrays |= _joined("info", [one.infos for one in trajectories], trajectories)
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _joined(
    kind: str, parts: Sequence[Mapping[str, Array]], of: Sequence[Trajectory], *, absent: float = float("nan")
) -> dict[str, Array]:
    """Put the named arrays of all episodes end to end; one that an episode has not is `absent` there."""
    names = dict.fromkeys(name for one in parts for name in one)
    return {
        f"{kind}:{name}": np.concatenate(
            [one[name] if name in one else np.full(len(each), absent) for one, each in zip(parts, of, strict=True)]
        )
        for name in names
    }


def read(path: Path) -> list[Trajectory]:
    """Return the trajectories of a file; nothing in it is executed, and one that is not whole is refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
        return _split(arrays)
    except (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile) as error:
        raise FileDamaged(f"{path.parent.name}/{path.name} does not hold trajectories: {error}") from None


def _split(arrays: Mapping[str, Array]) -> list[Trajectory]:
    lengths = [int(length) for length in arrays["length"]]
    ends = np.cumsum(lengths)
    parts = {kind: _of_kind(arrays, kind) for kind in ("observation", "action", "term", "info")}
    for kind, of in (*parts.items(), ("reward", {"": arrays["reward"]})):
        rows = sum(lengths) + (len(lengths) if kind == "observation" else 0)
        if any(len(values) != rows for values in of.values()):
            raise ValueError(f"its {kind}s have not the length of its episodes")
    found = []
    for index, (length, end) in enumerate(zip(lengths, ends.tolist(), strict=True)):
        steps, seen = slice(end - length, end), slice(end - length + index, end + index + 1)
        success = int(arrays["success"][index])
        found.append(
            Trajectory(
                int(arrays["seed"][index]),
                None if success < 0 else bool(success),
                bool(arrays["terminated"][index]),
                {name: values[seen] for name, values in parts["observation"].items()},
                {name: values[steps] for name, values in parts["action"].items()},
                arrays["reward"][steps],
                {name: values[steps] for name, values in parts["term"].items()},
                {name: values[steps] for name, values in parts["info"].items()},
            )
        )
    return found


def _of_kind(arrays: Mapping[str, Array], kind: str) -> dict[str, Array]:
    return {name.removeprefix(f"{kind}:"): values for name, values in arrays.items() if name.startswith(f"{kind}:")}


def stored(run: Path) -> list[Path]:
    """Return the files of trajectories that a run keeps."""
    return sorted((run / "eval").glob(f"*/*{SUFFIX}"))
