"""A profile: the marks of a framework, and the facts about it that its users' repositories do not spell out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rlx.adopt.find.dependencies import FRAMEWORKS
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts

Unit = Literal["environment steps", "iterations", "episodes", "frames"]


RSL_RL_TAGS = (
    "Train/mean_reward", "Train/mean_episode_length", "Train/mean_reward/time", "Train/mean_episode_length/time",
    "Loss/value_function", "Loss/surrogate", "Loss/learning_rate", "Policy/mean_noise_std", "Perf/total_fps",
    "Perf/collection time", "Perf/learning_time",
)  # fmt: skip
"""The metrics that rsl_rl's runner logs in every repository that trains with it."""
SB3_TAGS = (
    "rollout/ep_rew_mean", "rollout/ep_len_mean", "train/loss", "train/value_loss", "train/approx_kl",
    "train/learning_rate", "time/fps",
)  # fmt: skip
"""The metrics that Stable-Baselines3 logs by itself."""


@dataclass(frozen=True)
class LogFacts:
    """Where and how a framework logs, and the names of its metrics."""

    reader: str = "tensorboard"
    folder: str = ""
    step: str = "step"
    tags: tuple[str, ...] = ()
    score: str = ""
    """The metric that people watch."""
    dialect: str = ""
    """The name of the dialect in `runs.readers.metric_dialects`."""


@dataclass(frozen=True)
class LengthFacts:
    """How the length of a training is set, and the environment steps in one unit."""

    keys: tuple[str, ...] = ()
    unit: Unit = "environment steps"
    formula: str = ""
    usual: int | None = None
    """The length to draft if the program's own default does not say it."""


@dataclass(frozen=True)
class Profile:
    """One framework. The first profile whose marks match describes a repository."""

    name: str
    matches: Callable[[ForeignRepository, ScanFacts], bool]
    logs: LogFacts = LogFacts()
    length: LengthFacts = LengthFacts()
    checkpoint: str = ""
    seed_keys: tuple[str, ...] = ("seed",)
    train: str = ""
    """The path of the training program, if the framework's layout fixes it."""
    extra: tuple[str, ...] = ()
    """Words that a training without a person and a display needs."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values for required options, if neither the documentation nor the source has one."""
    usual: Mapping[str, str] = field(default_factory=dict)
    """Values that work in every installation: the documentation's may need an optional package."""
    hyperparameters: tuple[str, ...] = ()
    """Keys that the framework's override option takes, if the program does not list them as options."""
    override: str = ""
    reward_key: str = ""
    """The key that sets the weight of a reward term, such as `env.rewards.{term}.weight`, if options reach it."""
    seed_spacing: str = ""
    notes: tuple[str, ...] = ()
    eval_template: str = "generic"


def depends_on(facts: ScanFacts, *names: str) -> bool:
    """Return whether the repository requires or imports one of these frameworks."""
    return any(name in names for name in facts.names("framework"))


def trains_with(repository: ForeignRepository, facts: ScanFacts, *packages: str) -> bool:
    """Return whether the repository requires a framework, or a program of it that trains or plays imports it.

    An import elsewhere is not enough: a library of algorithms can have a wrapper for every framework.
    """
    required = {fact.name for fact in facts.of("framework") if fact.confidence == "high"}
    if required & {FRAMEWORKS[package] for package in packages}:
        return True
    programs = [repository.by_path(fact.file) for kind in ("train", "eval") for fact in facts.of(kind)]
    if not programs:
        return depends_on(facts, *(FRAMEWORKS[package] for package in packages))
    return any(file is not None and file.packages & set(packages) for file in programs)


def has_file(repository: ForeignRepository, *tails: str) -> bool:
    """Return whether the repository has a file with one of these path endings."""
    return any(path == tail or path.endswith(f"/{tail}") for path in repository.files for tail in tails)
