"""Dialects of metrics: the names that training libraries log, and rlx's names for the same figures.

`diagnose`, `analyze` and `reflect` look for rlx's names. A dialect maps them, reward terms included. Names that no
dialect knows stay as they are. Tags of the form `*/time` have seconds on their x-axis and are not metrics by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

RETURN = "rollout/return_mean"
LENGTH = "rollout/length_mean"
TERM = "reward/term/"
DIALECTS: dict[str, dict[str, str]] = {
    "rsl_rl": {
        "Train/mean_reward": RETURN, "Train/mean_episode_length": LENGTH, "Loss/value_function": "train/value_loss",
        "Loss/value": "train/value_loss", "Loss/surrogate": "train/policy_loss", "Loss/entropy": "train/entropy",
        "Loss/learning_rate": "train/learning_rate", "Policy/mean_noise_std": "train/std",
        "Policy/mean_std": "train/std", "Perf/total_fps": "time/steps_per_second",
    },
    "sb3": {
        "rollout/ep_rew_mean": RETURN, "rollout/ep_len_mean": LENGTH, "rollout/success_rate": "rollout/success_rate",
        "train/approx_kl": "train/approx_kl", "train/clip_fraction": "train/clip_fraction",
        "train/explained_variance": "train/explained_variance", "train/value_loss": "train/value_loss",
        "train/policy_gradient_loss": "train/policy_loss", "train/learning_rate": "train/learning_rate",
        "eval/mean_reward": "eval/return_mean", "eval/mean_ep_length": "eval/length_mean",
        "time/fps": "time/steps_per_second",
    },
    "cleanrl": {
        "charts/episodic_return": RETURN, "charts/episodic_length": LENGTH, "charts/SPS": "time/steps_per_second",
        "charts/learning_rate": "train/learning_rate", "losses/value_loss": "train/value_loss",
        "losses/policy_loss": "train/policy_loss", "losses/entropy": "train/entropy",
        "losses/approx_kl": "train/approx_kl", "losses/clipfrac": "train/clip_fraction",
        "losses/explained_variance": "train/explained_variance", "eval/episodic_return": "eval/return_mean",
    },
    "rl_games": {
        "rewards/step": RETURN, "episode_lengths/step": LENGTH, "losses/a_loss": "train/policy_loss",
        "losses/c_loss": "train/value_loss", "losses/entropy": "train/entropy", "info/kl": "train/approx_kl",
        "info/last_lr": "train/learning_rate", "performance/step_fps": "time/steps_per_second",
    },
    "skrl": {
        "Reward / Total reward (mean)": RETURN, "Episode / Total timesteps (mean)": LENGTH,
        "Loss / Policy loss": "train/policy_loss", "Loss / Value loss": "train/value_loss",
        "Learning / Learning rate": "train/learning_rate",
        "Policy / Standard deviation": "train/std",
    },
    "torch_ac": {
        "return_mean": RETURN, "num_frames_mean": LENGTH, "entropy": "train/entropy", "value_loss": "train/value_loss",
        "policy_loss": "train/policy_loss", "grad_norm": "train/gradient_norm", "FPS": "time/steps_per_second",
    },
}  # fmt: skip
"""Per library: its name → rlx's name."""
_TERMS = (
    re.compile(r"^Episode_Reward/(?P<term>[^/]+)$"),
    re.compile(r"^Episode[ _/]+rew_(?P<term>\w+)$"),
    re.compile(r"^(?:Info / )?Episode_Reward/(?P<term>[^/]+)$"),
    re.compile(r"^(?:info/)?reward_terms?/(?P<term>[^/]+)$"),
)
_CLOCKS = re.compile(r"/time$")


_CLEAR = {
    theirs: ours for table in DIALECTS.values() for theirs, ours in table.items() if "/" in theirs and theirs != ours
}
"""The names that belong to one library only: a name without a folder, such as `entropy`, could be anybody's."""


def dialect_of(names: Iterable[str]) -> str:
    """Return the dialect that knows the most of these names; empty if none of them is a return or a length."""
    present = set(names)
    best = ""
    most = 0
    for dialect, table in DIALECTS.items():
        known = present & table.keys()
        has_episodes = any(table[name] in (RETURN, LENGTH) for name in known)
        if has_episodes and len(known) > most:
            best = dialect
            most = len(known)
    return best


def rlx_name(name: str) -> str | None:
    """Return rlx's name of a metric whose own name belongs to one library only; None if there is none."""
    if name in _CLEAR:
        return _CLEAR[name]
    for pattern in _TERMS:
        match = pattern.match(name)
        if match:
            return f"{TERM}{match['term']}"
    return None


def with_rlx_names(values: Mapping[str, float], *, dialect: str = "") -> dict[str, float]:
    """Return the values under their own names and also under rlx's; a name that the source uses itself stays."""
    table = DIALECTS.get(dialect, {})
    both = {name: value for name, value in values.items() if not _CLOCKS.search(name)}
    for name, value in list(both.items()):
        ours = table.get(name) or rlx_name(name)
        if ours is not None:
            both.setdefault(ours, value)
    return both


def names_of(dialect: str, tags: Iterable[str]) -> dict[str, str]:
    """Return a source's `names` for the return of a dialect, if the program is known to log it."""
    present = set(tags)
    for theirs, ours in DIALECTS.get(dialect, {}).items():
        if ours == RETURN and theirs in present:
            return {RETURN: theirs}
    return {}
