"""mjlab: tasks of Isaac Lab's form on MuJoCo, trained with rsl_rl and configured by tyro."""

from rlx.adopt.profiles.profile import RSL_RL_TAGS, LengthFacts, LogFacts, Profile, has_file, trains_with
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    return trains_with(repository, facts, "mjlab") or has_file(repository, "mjlab/scripts/train.py")


PROFILE = Profile(
    name="mjlab",
    matches=_matches,
    logs=LogFacts(
        folder="logs/rsl_rl",
        tags=(*RSL_RL_TAGS, "Episode_Reward/*", "Episode_Termination/*"),
        score="Train/mean_reward",
        dialect="rsl_rl",
    ),
    length=LengthFacts(("agent.max-iterations",), "iterations", "iterations × num_steps_per_env × num_envs × ranks"),
    checkpoint="model_*.pt",
    seed_keys=("agent.seed", "env.seed"),
    train="src/mjlab/scripts/train.py",
    extra=("--agent.logger", "tensorboard"),
    reward_key="env.rewards.{term}.weight",
    seed_spacing="it trains with seed + rank: space the seeds by at least the number of ranks",
    notes=("the default logger is W&B: rlx reads TensorBoard, so the draft sets `--agent.logger tensorboard`",),
    eval_template="rsl_rl",
)
