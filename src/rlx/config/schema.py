"""The typed, strict config of an experiment, with a default for every key that has a sensible one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

SCHEMA = 1
LARGEST_SEED = 2**32 - 1  # NumPy's legacy seeding, which SB3 calls, takes 32 bits


@dataclass(frozen=True)
class Problem:
    """A problem with a config key; a note (`is_error` false) does not stop the run."""

    key: str
    message: str
    hint: str | None = None
    is_error: Flag = True
    is_unknown_key: Flag = False


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # most commands need few models


def _integral(value: object) -> object:
    """Read 1e5 as an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


# Strict: `true` is not 1, "8" is not 8, and NaN and infinity are not numbers.
Text = Annotated[str, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]
NonNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Share = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1)]
PositiveShare = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=1), BeforeValidator(_integral)]
Natural = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_integral)]
GradientSteps = Annotated[int, Field(strict=True, ge=-1), BeforeValidator(_integral)]
SeedNumber = Annotated[int, Field(strict=True, ge=0, le=LARGEST_SEED), BeforeValidator(_integral)]


class Schedule(Section):
    """A value that moves from the first number to the second over the run."""

    linear: tuple[NonNegative, NonNegative] | None = None
    cosine: tuple[NonNegative, NonNegative] | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> Schedule:
        if (self.linear is None) == (self.cosine is None):
            raise ValueError("a schedule is `{linear: [from, to]}` or `{cosine: [from, to]}`")
        return self

    def at(self, remaining: float) -> float:
        """Return the value when the share `remaining` (1 → 0) of the run is left."""
        start, end = self.linear or self.cosine or (0.0, 0.0)
        weight = remaining
        if self.cosine:
            weight = (1 + math.cos(math.pi * (1 - remaining))) / 2
        return end + (start - end) * weight


def _rate_kind(value: object) -> str:
    if isinstance(value, (dict, Schedule)):
        return "schedule"
    return "number"


Rate = Annotated[
    Annotated[Positive, Tag("number")] | Annotated[Schedule, Tag("schedule")],
    Discriminator(_rate_kind),
]


class Wrapper(Section):
    """A wrapper by name or `file.py:Class`, and its arguments."""

    name: Text
    kwargs: dict[str, Any] = {}


class Normalize(Section):
    """Running normalisation; the statistics travel with every checkpoint."""

    obs: Flag = False
    reward: Flag = False
    clip: Positive = 10.0


class Env(Section):
    """The training environment: id, `module:Class`, or `path/file.py:Class`."""

    id: Annotated[str, Field(strict=True, min_length=1)]
    kwargs: dict[str, Any] = {}
    wrappers: tuple[Wrapper, ...] = ()
    num_envs: Count | None = None
    vectorization: Literal["auto", "sync", "async"] = "auto"
    normalize: Normalize = Normalize()

    @field_validator("wrappers", mode="before")
    @classmethod
    def _short_forms(cls, value: object) -> object:
        return _wrappers(value)


def _wrappers(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        return value
    return [written_out(item) for item in value]


def written_out(item: object) -> object:
    """Read `flatten`, `{frame_stack: {size: 4}}` and `{name: …, kwargs: …}` alike."""
    if isinstance(item, str):
        return {"name": item}
    if isinstance(item, dict) and len(item) == 1 and "name" not in item:
        ((name, kwargs),) = item.items()
        return {"name": name, "kwargs": kwargs or {}}
    return item


class Algo(Section):
    """The keys of every algorithm."""

    name: Text
    total_timesteps: Count = 100_000
    learning_rate: Rate = 3e-4
    gamma: Share = 0.99

    @property
    def says_length(self) -> bool:
        """Whether `total_timesteps` applies: the user's own program may choose its length itself."""
        return self.name != COMMAND or "total_timesteps" in self.model_fields_set


class OnPolicy(Algo):
    rollout_steps: Count = 256
    gae_lambda: Share = 0.95
    entropy_coef: NonNegative = 0.0
    value_coef: NonNegative = 0.5
    max_grad_norm: Positive = 0.5
    use_sde: Flag = False


class Ppo(OnPolicy):
    name: Literal["ppo"]
    batch_size: Count = 64
    update_epochs: Count = 10
    clip_range: Rate = 0.2
    clip_range_value: Positive | None = None
    normalize_advantage: Flag = True
    target_kl: Positive | None = None


class RecurrentPpo(Ppo):
    name: Literal["recurrent_ppo"]  # type: ignore[assignment]
    rollout_steps: Count = 128
    batch_size: Count = 128
    lstm_size: Count = 256


class MaskablePpo(Ppo):
    name: Literal["maskable_ppo"]  # type: ignore[assignment]
    use_sde: Literal[False] = False


class A2c(OnPolicy):
    name: Literal["a2c"]
    learning_rate: Rate = 7e-4
    rollout_steps: Count = 5
    gae_lambda: Share = 1.0
    normalize_advantage: Flag = False
    rms_prop: Flag = True


class Trpo(OnPolicy):
    name: Literal["trpo"]
    learning_rate: Rate = 1e-3
    batch_size: Count = 128
    critic_updates: Count = 10
    target_kl: Positive = 0.01
    cg_max_steps: Count = 15
    cg_damping: Positive = 0.1
    normalize_advantage: Flag = True


class OffPolicy(Algo):
    batch_size: Count = 256
    buffer_size: Count = 1_000_000
    learning_starts: Natural = 100
    train_every: Count = 1
    gradient_steps: GradientSteps = 1
    tau: PositiveShare = 0.005


class Dqn(OffPolicy):
    name: Literal["dqn"]
    learning_rate: Rate = 1e-4
    batch_size: Count = 32
    train_every: Count = 4
    tau: PositiveShare = 1.0
    target_update_every: Count = 10_000
    exploration_fraction: Share = 0.1
    exploration_initial: Share = 1.0
    exploration_final: Share = 0.05
    max_grad_norm: Positive = 10.0


class QrDqn(Dqn):
    name: Literal["qrdqn"]  # type: ignore[assignment]
    learning_rate: Rate = 5e-5
    exploration_fraction: Share = 0.005
    exploration_final: Share = 0.01
    quantiles: Count = 200


class Sac(OffPolicy):
    name: Literal["sac"]
    entropy_coef: NonNegative | Literal["auto"] = "auto"
    target_entropy: Number | Literal["auto"] = "auto"
    use_sde: Flag = False


class Tqc(Sac):
    name: Literal["tqc"]  # type: ignore[assignment]
    quantiles: Count = 25
    critics: Count = 2
    dropped_quantiles: Natural = 2


class Td3(OffPolicy):
    name: Literal["td3"]
    learning_rate: Rate = 1e-3
    action_noise: NonNegative = 0.1
    policy_delay: Count = 2
    target_noise: NonNegative = 0.2
    target_noise_clip: NonNegative = 0.5


class Ddpg(OffPolicy):
    name: Literal["ddpg"]
    learning_rate: Rate = 1e-3
    action_noise: NonNegative = 0.1


class Ars(Algo):
    name: Literal["ars"]
    learning_rate: Rate = 0.02
    delta_std: Rate = 0.05
    deltas: Count = 8
    top_deltas: Count | None = None
    eval_episodes: Count = 1


class CustomAlgo(Algo):
    """The user's own algorithm class (`file.py:Class`, an SB3 subclass); `kwargs` go to its constructor."""

    kwargs: dict[str, Any] = {}


ALGORITHMS: dict[str, type[Algo]] = {
    "ppo": Ppo,
    "a2c": A2c,
    "dqn": Dqn,
    "sac": Sac,
    "td3": Td3,
    "ddpg": Ddpg,
    "tqc": Tqc,
    "qrdqn": QrDqn,
    "trpo": Trpo,
    "ars": Ars,
    "recurrent_ppo": RecurrentPpo,
    "maskable_ppo": MaskablePpo,
}


class Policy(Section):
    """The network: `mlp`, `cnn`, `multi` (dict observations) or `file.py:Class`."""

    type: Text = "mlp"
    hidden_sizes: tuple[Count, ...] | None = None
    activation: Literal["tanh", "relu", "elu", "gelu", "silu"] | None = None
    kwargs: dict[str, Any] = {}


class CheckpointEvery(Section):
    """How often to save, and how many `step_N` checkpoints to keep in addition to `best` and `latest`."""

    save_every: Count | None = None
    keep: Natural = 3


class EvalEnv(Section):
    """The evaluation environment; unset keys are those of the training environment."""

    id: Annotated[str, Field(strict=True, min_length=1)] | None = None
    kwargs: dict[str, Any] | None = None
    wrappers: tuple[Wrapper, ...] | None = None

    @field_validator("wrappers", mode="before")
    @classmethod
    def _short_forms(cls, value: object) -> object:
        return _wrappers(value)


class Scenario(Section):
    """A variation of the evaluation environment, and the condition for passing it."""

    kwargs: dict[str, Any] = {}
    passes: Text | None = Field(None, alias="pass")


METRICS = ("return", "success_rate", "pass_rate")


class EvalEvery(Section):
    """How a policy is measured, and the periodic evaluation that chooses `best`."""

    every: Count | None = None
    episodes: Count = 10
    report_episodes: Count | None = None
    deterministic: Flag = True
    metric: Literal["return", "success_rate", "pass_rate"] | None = None
    env: EvalEnv | None = None
    scenarios: dict[str, Scenario] | None = None


class Plateau(Section):
    """Stop without a gain for `steps` steps, but only below the return `below` (default: the return at the start)."""

    steps: Count
    below: Number | None = None


class Budget(Section):
    """The most that one seed may use."""

    seconds: Positive | None = None
    cpu_seconds: Positive | None = None


class Stop(Section):
    """Rules that end a seed early, all off by default; NaN and infinity always end a seed."""

    every: Count | None = None
    plateau: Plateau | None = None
    budget: Budget | None = None
    findings: tuple[Text, ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether there is any rule to judge by."""
        return bool(self.plateau or self.budget or self.findings)


class Wandb(Section):
    project: Text = "rlx"
    entity: Text | None = None


class Log(Section):
    """Further places for the metrics (failures are ignored), and the interval between rows."""

    every: Count | None = None
    tensorboard: Flag = False
    wandb: Flag | Wandb = False


class Resources(Section):
    """The needs of one seed (memory in GB); seeds run in parallel as far as the machine allows."""

    cores: Count = 1
    gpus: NonNegative | None = None
    memory: Positive | None = None


class Source(Section):
    """The source of metrics: a file (`{out}` is the job's folder) or a command's output, and its reader.

    `names` maps rlx's name of a metric to the source's name; `pattern` is for `stdout` (named groups).
    """

    reader: Literal["jsonl", "csv", "tensorboard", "stdout"]
    path: Text = ""
    names: dict[str, Text] = {}
    step: Text = "step"
    pattern: Text | None = None


class Command(Section):
    """Training by the repository's own program (`backend: command`).

    Placeholders of `train` and `resume`: `{seed}`, `{out}` (the seed's folder), `{steps}`, `{overrides}` (one argument
    per key of `overrides`, in the form of `override`); in `resume` also `{checkpoint}`.
    """

    train: Annotated[tuple[Text, ...], Field(min_length=1)]
    resume: tuple[Text, ...] = ()
    prefix: tuple[Text, ...] = ()
    override: Text = "{key}={value}"
    overrides: dict[str, Any] = {}
    metrics: Source | None = None
    checkpoint: Text = ""
    artifacts: tuple[Text, ...] = ()
    python_path: tuple[Text, ...] = (".",)
    cwd: Text = ""
    minutes: Positive | None = None


COMMAND = "command"
"""The backend's name; also the env and algo of a config whose program has its own."""


def canonical_algorithm(name: str) -> str:
    """Return the one spelling of an algorithm's name (`QR-DQN` → `qrdqn`, `RecurrentPPO` → `recurrent_ppo`)."""
    squeezed = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    return next((known for known in ALGORITHMS if known.replace("_", "") == squeezed), name)


def _algo_kind(value: object) -> str:
    name = getattr(value, "name", "")
    if isinstance(value, dict):
        name = value.get("name", "ppo")
    if name not in ALGORITHMS:
        return "custom"
    return str(name)


AnyAlgo = Annotated[
    Annotated[Ppo, Tag("ppo")]
    | Annotated[A2c, Tag("a2c")]
    | Annotated[Dqn, Tag("dqn")]
    | Annotated[Sac, Tag("sac")]
    | Annotated[Td3, Tag("td3")]
    | Annotated[Ddpg, Tag("ddpg")]
    | Annotated[Tqc, Tag("tqc")]
    | Annotated[QrDqn, Tag("qrdqn")]
    | Annotated[Trpo, Tag("trpo")]
    | Annotated[Ars, Tag("ars")]
    | Annotated[RecurrentPpo, Tag("recurrent_ppo")]
    | Annotated[MaskablePpo, Tag("maskable_ppo")]
    | Annotated[CustomAlgo, Tag("custom")],
    Discriminator(_algo_kind),
]


class Experiment(Section):
    """A whole config: what to run. Seeds are replicates, never a hyperparameter."""

    run_name: Text = ""
    seed: SeedNumber = 0
    seeds: Count | tuple[SeedNumber, ...] | None = None
    device: Text = "auto"
    backend: Text = "auto"
    env: Env
    algo: AnyAlgo
    policy: Policy = Policy()
    checkpoint: CheckpointEvery = CheckpointEvery()
    eval: EvalEvery = EvalEvery()
    log: Log = Log()
    stop: Stop = Stop()
    resources: Resources = Resources()
    command: Command | None = None

    def training_seeds(self) -> tuple[int, ...]:
        """Return the training seeds of this config: the list, or as many as the count, starting at `seed`."""
        if isinstance(self.seeds, tuple):
            return self.seeds
        count = self.seeds or 1
        return tuple(range(self.seed, self.seed + count))
