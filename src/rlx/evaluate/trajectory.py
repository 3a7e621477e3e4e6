"""Trajectories of evaluation episodes, stored on request as plain arrays (npz, never pickled), and read back."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs.reward_terms import terms_of
from rlx.errors import FileDamaged, UsageError

if TYPE_CHECKING:
    from rlx.evaluate.episode import Episode

SUFFIX = ".npz"
Array = NDArray[Any]


@dataclass(frozen=True)
class Trajectory:
    """One episode of T steps: T + 1 observations, T actions, rewards, terms and scalar infos (NaN if absent).

    Observations and actions are named arrays: one per part of the space, or one called "" for a plain space.
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
        """Return the observation before a step. Step `len(self)` is the last observation."""
        return _at(self.observations, step)

    def action(self, step: int) -> Any:
        return _at(self.actions, step)

    def info(self, step: int) -> dict[str, Any]:
        """Return the scalars of a step's info, and its reward terms if there are any."""
        info: dict[str, Any] = {name: values[step].item() for name, values in self.infos.items()}
        if self.terms:
            info["reward_terms"] = {name: float(values[step]) for name, values in self.terms.items()}
        return info


def _at(parts: Mapping[str, Array], step: int) -> Any:
    if "" in parts:
        return parts[""][step]
    return {name: values[step] for name, values in parts.items()}


class TrajectoryRecorder:
    """Records one episode while it is played."""

    def __init__(self, observation: Any) -> None:
        self._observations = [parts_of(observation)]
        self._actions: list[dict[str, Array]] = []
        self._rewards: list[float] = []
        self._terms: list[dict[str, float]] = []
        self._infos: list[dict[str, float]] = []

    def add(self, action: Any, reward: float, observation: Any, info: Mapping[str, Any]) -> None:
        """Record a step. Arrays are copied, because an environment may reuse them."""
        self._actions.append(parts_of(action))
        self._rewards.append(reward)
        self._observations.append(parts_of(observation))
        self._terms.append(terms_of(info))
        self._infos.append({str(key): float(value) for key, value in info.items() if _is_scalar(value)})

    def trajectory(self, episode: Episode) -> Trajectory:
        """Return the whole episode."""
        return Trajectory(
            episode.seed,
            episode.success,
            episode.terminated,
            {name: np.stack([parts[name] for parts in self._observations]) for name in self._observations[0]},
            {name: np.stack([parts[name] for parts in self._actions]) for name in self._actions[0]},
            np.array(self._rewards),
            _columns(self._terms, absent=0.0),
            _columns(self._infos, absent=float("nan")),
        )


def parts_of(value: Any, name: str = "") -> dict[str, Array]:
    """Return a value of any space as named arrays, copied."""
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, tuple):
        items = {str(index): item for index, item in enumerate(value)}.items()
    else:
        array = np.array(value)
        if array.dtype.kind not in "biuf":
            kind = type(value).__name__
            raise UsageError(f"a {kind} cannot be stored as an array", hint="leave out --keep-trajectories")
        return {name: array}
    prefix = f"{name}/" if name else ""
    return {key: array for part, item in items for key, array in parts_of(item, f"{prefix}{part}").items()}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.number)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    )


def _columns(rows: Sequence[Mapping[str, float]], *, absent: float) -> dict[str, Array]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, absent) for row in rows]) for name in names}


def encode(trajectories: Sequence[Trajectory]) -> bytes:
    """Return trajectories as the bytes of an npz file: the arrays of all episodes end to end, and their lengths."""
    success = {None: -1, False: 0, True: 1}
    arrays: dict[str, Array] = {
        "length": np.array([len(episode) for episode in trajectories], dtype=np.int64),
        "seed": np.array([episode.seed for episode in trajectories], dtype=np.int64),
        "success": np.array([success[episode.success] for episode in trajectories], dtype=np.int8),
        "terminated": np.array([episode.terminated for episode in trajectories], dtype=np.bool_),
        "reward": np.concatenate([episode.rewards for episode in trajectories]),
    }
    lengths = [len(episode) for episode in trajectories]
    arrays |= _join("observation", [episode.observations for episode in trajectories], lengths)
    arrays |= _join("action", [episode.actions for episode in trajectories], lengths)
    arrays |= _join("term", [episode.terms for episode in trajectories], lengths, absent=0.0)
    arrays |= _join("info", [episode.infos for episode in trajectories], lengths)
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _join(
    kind: str, episodes: Sequence[Mapping[str, Array]], lengths: Sequence[int], *, absent: float = float("nan")
) -> dict[str, Array]:
    """Put the named arrays of all episodes end to end. An episode without an array is filled with `absent`."""
    joined = {}
    for name in dict.fromkeys(name for arrays in episodes for name in arrays):
        parts = [arrays.get(name, np.full(length, absent)) for arrays, length in zip(episodes, lengths, strict=True)]
        joined[f"{kind}:{name}"] = np.concatenate(parts)
    return joined


def read(path: Path) -> list[Trajectory]:
    """Return the trajectories of a file. Nothing in it is executed, and an incomplete file is refused."""
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
    for kind, named in (*parts.items(), ("reward", {"": arrays["reward"]})):
        rows = sum(lengths)
        if kind == "observation":
            rows += len(lengths)
        if any(len(values) != rows for values in named.values()):
            raise ValueError(f"its {kind}s do not have the length of its episodes")
    trajectories = []
    for index, (length, end) in enumerate(zip(lengths, ends.tolist(), strict=True)):
        steps = slice(end - length, end)
        seen = slice(end - length + index, end + index + 1)
        trajectories.append(
            Trajectory(
                int(arrays["seed"][index]),
                {-1: None, 0: False}.get(int(arrays["success"][index]), True),
                bool(arrays["terminated"][index]),
                {name: values[seen] for name, values in parts["observation"].items()},
                {name: values[steps] for name, values in parts["action"].items()},
                arrays["reward"][steps],
                {name: values[steps] for name, values in parts["term"].items()},
                {name: values[steps] for name, values in parts["info"].items()},
            )
        )
    return trajectories


def _of_kind(arrays: Mapping[str, Array], kind: str) -> dict[str, Array]:
    return {name.removeprefix(f"{kind}:"): values for name, values in arrays.items() if name.startswith(f"{kind}:")}


def stored_trajectories(run: Path) -> list[Path]:
    """Return the trajectory files of a run."""
    return sorted((run / "eval").glob(f"*/*{SUFFIX}"))
