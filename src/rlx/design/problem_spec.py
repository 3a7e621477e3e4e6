"""`spec.yaml`: one typed description of an RL problem, from the observation to the robustness tests.

Declarations are plans. `rlx check spec` compares them with the real environment, and the environment wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from rlx.config import yaml_lines
from rlx.config.load import LocatedProblem, config_error, dump_data
from rlx.config.schema import Count, Env, Flag, Natural, NonNegative, Number, Positive, Problem, Section, Share, Text
from rlx.config.yaml_lines import Document, FileKind, KeyPath
from rlx.design.signals import OFF_POLICY
from rlx.errors import UsageError, did_you_mean
from rlx.evaluate.stored_code import refuse_code_of_foreign_project

FILE = "spec.yaml"
KIND = FileKind("spec", "make one: rlx spec new --env CartPole-v1")


class ObservationPlan(Section):
    """The inputs of the policy."""

    space: Text = ""
    size: Natural = 0
    history: Count = 1
    privileged: tuple[Text, ...] = ()


class ActionPlan(Section):
    """The outputs of the policy."""

    space: Text = ""
    kind: Literal["discrete", "continuous", "multi_discrete", "multi_binary", "other"] = "discrete"
    size: Natural = 1


class RewardPlan(Section):
    """The reward: its terms with their weights, and whether the environment reports success."""

    terms: dict[str, Number] = Field(default_factory=dict)
    scale: NonNegative = 1.0
    reports_success: Flag = False
    has_smoothness_term: Flag = False


class MdpPlan(Section):
    """How long episodes last, how they end, and what one observation tells.

    Without a `horizon`, its length is not known.
    """

    horizon: Count | None = None
    discount: Share = 0.99
    termination: Text = ""
    truncation: Text = ""
    observability: Literal["full", "partial"] = "full"
    control_dt: Positive | None = None
    physics_dt: Positive | None = None


class StrategyPlan(Section):
    """The algorithm, its budget and the reason for it."""

    algorithm: Text = "ppo"
    total_timesteps: Count = 100_000
    because: Text = ""


class RolloutPlan(Section):
    """How data is collected."""

    num_envs: Count = 8
    steps: Count = 256
    policy_lag: Natural = 0
    correction: Literal["none", "vtrace"] = "none"


class BufferPlan(Section):
    """How data is kept: `rollout` is cleared after each update, `replay` is circular."""

    kind: Literal["rollout", "replay"] = "rollout"
    size: Natural = 0


class LearnerPlan(Section):
    """How data is used."""

    network: Text = "mlp"
    hidden_sizes: tuple[Count, ...] = (64, 64)
    learning_rate: Positive = 3e-4
    batch_size: Count = 64
    update_epochs: Count = 10


class PlacementPlan(Section):
    """Where the parts run."""

    machines: Count = 1
    cores: Count = 1
    simulator: Literal["cpu", "gpu"] = "cpu"
    learner: Literal["cpu", "gpu"] = "cpu"


class ArchitecturePlan(Section):
    """Rollout, buffer, learner and placement."""

    rollout: RolloutPlan = RolloutPlan()
    buffer: BufferPlan = BufferPlan()
    learner: LearnerPlan = LearnerPlan()
    placement: PlacementPlan = PlacementPlan()


class AgentsPlan(Section):
    """Several agents."""

    agents: Count = 2
    relation: Literal["cooperative", "competitive", "mixed"] = "cooperative"
    training: Literal["independent", "central"] = "independent"
    method: Text = "ppo"
    shared_parameters: Flag = True
    baseline: Literal["independent", "none"] = "independent"
    api: Literal["parallel", "aec"] = "parallel"
    cross_play: Flag = False


class HierarchyPlan(Section):
    """A manager that sets goals for a worker every `period` steps; goals are names of observation numbers."""

    period: Count = 10
    goals: tuple[Text, ...] = ()


class ImitationPlan(Section):
    """Demonstrations and the method that learns from them."""

    method: Literal["bc", "dagger", "gail", "irl"] = "bc"
    demonstrations: Natural = 0
    is_expert_queryable: Flag = False
    dataset: Text = ""


class OfflinePlan(Section):
    """A fixed dataset."""

    dataset: Text = ""
    episodes: Natural = 0
    algorithm: Literal["bc", "cql", "iql"] = "bc"
    baseline: Literal["bc", "none"] = "bc"
    behaviour_policies: Count = 1
    validation: Literal["held_out_data", "second_environment", "test_environment"] = "held_out_data"


class PreferencePlan(Section):
    """Labelled pairs that train a reward model."""

    pairs: Natural = 0
    annotators: Count = 2
    hold_out: Share = 0.2
    split: Literal["episode", "pair"] = "episode"
    refresh: Flag = True


class RandomisationPlan(Section):
    """Factors of the environment with their ranges, as `rlx probe` reads them: `gravity: 5:15:6`."""

    factors: dict[str, Text] = Field(default_factory=dict)
    schedule: Literal["fixed", "adr"] = "fixed"


class CurriculumPlan(Section):
    """Levels, and what moves training to the next one."""

    levels: Count = 2
    advance: Literal["success", "schedule"] = "success"
    is_generated: Flag = False
    score: Literal["regret", "return", "none"] = "none"
    held_out_levels: Natural = 0


class EvaluationPlan(Section):
    """How the policy is measured."""

    episodes: Count = 20
    training_seeds: Count = 5
    metric: Literal["return", "success_rate", "pass_rate"] = "return"


class RobustnessPlan(Section):
    """Shifts and attacks that the policy is tested with."""

    conditions: tuple[Text, ...] = ()
    control: Flag = True
    attack_size: NonNegative = 0.0
    worst_of: Natural = 0


class ProblemSpec(Section):
    """A whole problem. Sections that do not apply are left out."""

    schema_: Literal[1] = Field(1, alias="schema")
    env: Env
    task: Text = ""
    is_for_robot: Flag = False
    trains_on_robot: Flag = False
    observation: ObservationPlan = ObservationPlan()
    action: ActionPlan = ActionPlan()
    reward: RewardPlan = RewardPlan()
    mdp: MdpPlan = MdpPlan()
    strategy: StrategyPlan = StrategyPlan()
    architecture: ArchitecturePlan = ArchitecturePlan()
    evaluation: EvaluationPlan = EvaluationPlan()
    multi_agent: AgentsPlan | None = None
    hierarchy: HierarchyPlan | None = None
    imitation: ImitationPlan | None = None
    offline: OfflinePlan | None = None
    preferences: PreferencePlan | None = None
    randomisation: RandomisationPlan | None = None
    curriculum: CurriculumPlan | None = None
    robustness: RobustnessPlan | None = None

    @property
    def algorithm_is_off_policy(self) -> bool:
        return self.strategy.algorithm in OFF_POLICY

    @field_validator("env", mode="before")
    @classmethod
    def _short_env(cls, value: object) -> object:
        if isinstance(value, str):
            return {"id": value}
        return value


def read_spec(path: Path) -> ProblemSpec:
    """Read a spec; every problem has a file and a line."""
    document = yaml_lines.read(path, kind=KIND)
    return build_spec(document)


def read_playable_spec(path: Path, *, root: Path) -> ProblemSpec:
    """Read a spec whose environment is played next; refused if that is code of a project that came from elsewhere."""
    spec = read_spec(path)
    refuse_code_of_foreign_project({"env": spec.env.model_dump(mode="json")}, root=root)
    return spec


def build_spec(document: Document) -> ProblemSpec:
    """Build a spec from plain data."""
    try:
        return ProblemSpec.model_validate(document.data)
    except ValidationError as error:
        problems = [_located(detail, document) for detail in error.errors(include_url=False)]
        raise config_error(problems) from None


def _located(detail: Any, document: Document) -> LocatedProblem:
    path: KeyPath = tuple(detail["loc"])
    key = ".".join(map(str, path))
    message = f"`{key}`: {detail['msg']}"
    hint = "rlx spec new --env ID writes every key"
    if detail["type"] == "extra_forbidden":
        message = f"unknown key `{key}`"
        near = did_you_mean(str(path[-1]), keys_at(path[:-1]))
        if near:
            hint = f"did you mean `{near}`?"
    return LocatedProblem(Problem(key, message, hint), document.place(path))


def keys_at(path: KeyPath) -> list[str]:
    """Return the keys that a spec may have at a path; none if there is no such section."""
    model: Any = ProblemSpec
    for part in path:
        field = model.model_fields.get(part)
        options = [] if field is None else [field.annotation, *getattr(field.annotation, "__args__", ())]
        model = next((option for option in options if isinstance(option, type) and issubclass(option, Section)), None)
        if model is None:
            return []
    return [field.alias or name for name, field in model.model_fields.items()]


def dump_spec(spec: ProblemSpec, *, head: str) -> str:
    """Return a spec as YAML. Optional sections that are not set are listed in a comment."""
    data = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["env"] = spec.env.model_dump(mode="json", include={"id", "kwargs", "wrappers"}, exclude_defaults=True)
    absent = [name for name in OPTIONAL if getattr(spec, name) is None]
    tail = f"# Sections for special cases: {', '.join(absent)}.\n"
    return f"# {head}\n{dump_data(data)}{tail}"


OPTIONAL = (
    "multi_agent", "hierarchy", "imitation", "offline", "preferences", "randomisation", "curriculum", "robustness",
)  # fmt: skip


def refuse_existing(path: Path) -> None:
    """Raise if a spec exists already."""
    if path.exists():
        raise UsageError(f"`{path}` already exists, and rlx does not overwrite it", hint=f"rlx spec status {path}")
