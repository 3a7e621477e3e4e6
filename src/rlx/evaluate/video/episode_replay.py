"""A replay: one episode, step by step, with the picture, the reward and what the policy expected at each step.

Row i belongs to frame i: the observation and picture that the policy saw, its value estimate and action distribution
for them, the action that it chose, and the reward that this action brought. The last row has no action.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.config.schema import Env
from rlx.envs.make import AnyEnv, make_env, quiet
from rlx.errors import RlxError
from rlx.evaluate.episode import Episode, EpisodeRunner
from rlx.evaluate.policy import stack
from rlx.evaluate.policy_internals import PolicyInternals, internals_of
from rlx.evaluate.rollout import MOST_PARALLEL, isolated_randomness
from rlx.evaluate.trajectory import parts_of
from rlx.evaluate.video.overlay import font
from rlx.evaluate.video.subject import PolicySubject

MOST_STEPS = 600
FRAME_WIDTH = 360
JPEG_QUALITY = 70
MOST_BARS = 20
MOST_SHOWN = 64
"""The most components of an observation that a row holds."""


@dataclass(frozen=True)
class ReplayRow:
    """One step. `frame` is a JPEG; the other fields are as the policy and the environment gave them."""

    step: int
    frame: bytes
    observation: dict[str, float]
    value: float | None
    entropy: float | None
    distribution: dict[str, list[float]]
    action: list[float] | None = None
    reward: float | None = None
    total: float = 0.0
    terms: dict[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        data = {name: value for name, value in vars(self).items() if name != "frame"}
        return {**data, "frame": base64.b64encode(self.frame).decode()}


@dataclass(frozen=True)
class Replay:
    """An episode with its rows. `is_drawn` tells that frames are drawings of the state: the environment has none."""

    title: str
    env: str
    episode: Episode
    rows: tuple[ReplayRow, ...]
    end: str
    is_drawn: bool
    unshown_steps: int

    def document(self) -> dict[str, Any]:
        """Return the replay as JSON-able data."""
        return {
            "schema": 1,
            "title": self.title,
            "env": self.env,
            "episode": self.episode.document(),
            "end": self.end,
            "is_drawn": self.is_drawn,
            "unshown_steps": self.unshown_steps,
            "steps": [row.document() for row in self.rows],
        }


def replay(
    subject: PolicySubject,
    episode_seed: int,
    *,
    most_steps: int = MOST_STEPS,
    progress: Callable[[int], None] = lambda _: None,
) -> Replay:
    """Play one episode of the subject's protocol as its evaluation would, and keep every step up to `most_steps`."""
    protocol = subject.protocol
    env, is_drawn = _make_env(protocol.env, protocol.root)
    runner = EpisodeRunner(env, [episode_seed], protocol=protocol)
    recorder = _ReplayRecorder(runner, subject, is_drawn)
    unshown = 0
    try:
        with isolated_randomness(episode_seed), quiet():
            runner.begin()
            subject.policy.reset()
            is_over = False
            while not is_over:
                is_over = recorder.step(keeps=runner.length < most_steps)
                unshown += int(runner.length > most_steps)
                progress(runner.length)
            recorder.finish(keeps=runner.length <= most_steps)
    finally:
        env.close()
    episode = runner.episodes[0]
    return Replay(subject.title, protocol.env.id, episode, tuple(recorder.rows), _end(episode), is_drawn, unshown)


def _make_env(env: Env, root: Any) -> tuple[AnyEnv, bool]:
    """Return the environment, and whether its state must be drawn because it cannot render."""
    try:
        made = make_env(env, root=root, render_mode="rgb_array")
    except RlxError:
        return make_env(env, root=root), True
    modes = made.metadata.get("render_modes") or ()
    return made, "rgb_array" not in modes and made.render_mode != "rgb_array"


def _end(episode: Episode) -> str:
    """Return how the episode ended."""
    if episode.is_cut:
        return "cut: it declares no time limit"
    if episode.terminated:
        return "terminated: the environment ended it"
    return "truncated: time limit"


class _ReplayRecorder:
    """Plays an episode in batches as large as an evaluation's, so that the actions are the same bit for bit."""

    def __init__(self, runner: EpisodeRunner, subject: PolicySubject, is_drawn: bool) -> None:
        self.rows: list[ReplayRow] = []
        self._runner = runner
        self._subject = subject
        self._is_drawn = is_drawn

    def step(self, *, keeps: bool) -> bool:
        """Choose and apply one action; return whether the episode is over."""
        from gymnasium.vector.utils import batch_space, iterate

        env = self._runner.env
        protocol = self._subject.protocol
        count = min(protocol.episodes, MOST_PARALLEL)
        first = protocol.episode_seeds().start
        place = (self._runner.seed - first) % protocol.episodes % count
        masks: Any = self._runner.mask()
        if masks is not None:
            masks = np.stack([masks] * count)
        observations = stack(env.observation_space, [self._runner.observation] * count)
        row = self._look(observations, masks, place) if keeps else None
        actions = self._subject.policy.predict(observations, deterministic=protocol.deterministic, masks=masks)
        action = list(iterate(batch_space(env.action_space, count), actions))[place]
        is_over = self._runner.step(action)
        if row is not None:
            numbers = [float(value) for part in parts_of(action).values() for value in np.asarray(part).reshape(-1)]
            told = {"action": numbers, "reward": self._runner.reward, "total": self._runner.total,
                    "terms": dict(self._runner.last_terms)}  # fmt: skip
            self.rows.append(ReplayRow(**{**vars(row), **told}))
        return is_over

    def finish(self, *, keeps: bool) -> None:
        """Add the last observation, after which no action was chosen."""
        if keeps:
            env = self._runner.env
            count = min(self._subject.protocol.episodes, MOST_PARALLEL)
            observations = stack(env.observation_space, [self._runner.observation] * count)
            row = self._look(observations, None, 0)
            self.rows.append(ReplayRow(**{**vars(row), "total": self._runner.total}))

    def _look(self, observations: Any, masks: Any, place: int) -> ReplayRow:
        internals = internals_of(self._subject.policy, observations, masks)
        shown = flat_observation(self._runner.observation)
        frame = self._frame(shown)
        return ReplayRow(
            self._runner.length,
            frame,
            shown,
            _at(internals.values, place),
            _at(internals.entropy, place),
            _distribution(internals, place),
        )

    def _frame(self, shown: dict[str, float]) -> bytes:
        picture: Any = None
        if not self._is_drawn:
            picture = self._runner.render()
        if not isinstance(picture, np.ndarray) or picture.ndim != 3 or picture.shape[2] != 3:
            picture = state_drawing(shown, self._runner.length)
        return jpeg(picture)


def flat_observation(observation: Any) -> dict[str, float]:
    """Return the numbers of an observation by name, at most `MOST_SHOWN`; pixels are left out."""
    shown: dict[str, float] = {}
    for name, array in parts_of(observation).items():
        values = np.asarray(array).reshape(-1)
        if values.size > 1024:  # pixels
            continue
        for index, value in enumerate(values.tolist()):
            if len(shown) < MOST_SHOWN:
                label = name or "obs"
                shown[label if values.size == 1 and name else f"{label}[{index}]"] = float(value)
    return shown


def _at(values: NDArray[np.float64] | None, place: int) -> float | None:
    if values is None:
        return None
    return float(values[place])


def _distribution(internals: PolicyInternals, place: int) -> dict[str, list[float]]:
    named = {"probabilities": internals.probabilities, "mean": internals.mean, "std": internals.std}
    return {name: [float(value) for value in rows[place]] for name, rows in named.items() if rows is not None}


def jpeg(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture as JPEG, at most `FRAME_WIDTH` wide."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(picture, dtype=np.uint8))
    if image.width > FRAME_WIDTH:
        image = image.resize((FRAME_WIDTH, max(1, round(image.height * FRAME_WIDTH / image.width))))
    stream = io.BytesIO()
    image.save(stream, format="JPEG", quality=JPEG_QUALITY, optimize=True)
    return stream.getvalue()


def state_drawing(shown: dict[str, float], step: int) -> NDArray[np.uint8]:
    """Draw an observation as bars, for an environment that cannot render. A bar is tanh of its number."""
    from PIL import Image, ImageDraw

    names = list(shown)[:MOST_BARS]
    line = 20
    picture = Image.new("RGB", (FRAME_WIDTH, 30 + line * max(1, len(names))), "white")
    draw = ImageDraw.Draw(picture)
    draw.text((8, 6), f"state at step {step} (no render)", font=font(13), fill=(90, 90, 90))
    middle = 250
    for place, name in enumerate(names):
        top = 28 + place * line
        value = shown[name]
        length = 90 * float(np.tanh(value)) if np.isfinite(value) else 0.0
        draw.text((8, top), f"{name}  {value:.3g}", font=font(12), fill=(20, 20, 20))
        left, right = sorted((middle, middle + length))
        draw.rectangle((left, top + 2, right, top + line - 6), fill=(0, 114, 178))
        draw.line((middle, top, middle, top + line - 4), fill=(120, 120, 120))
    return np.asarray(picture)
