"""holosoma: whole-body control with its own PPO and FastSAC agents, configured by tyro."""

from rlx.adopt.profiles.profile import RSL_RL_TAGS, LengthFacts, LogFacts, Profile, has_file, trains_with
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    return trains_with(repository, facts, "holosoma") or has_file(repository, "holosoma/train_agent.py")


PROFILE = Profile(
    name="holosoma",
    matches=_matches,
    logs=LogFacts(
        folder="logs",
        tags=RSL_RL_TAGS,
        score="Train/mean_reward",
        dialect="rsl_rl",
    ),
    length=LengthFacts(
        ("algo.config.num-learning-iterations", "max-iterations"),
        "iterations",
        "iterations × num_steps_per_env × num_envs",
    ),
    checkpoint="model_*.pt",
    seed_keys=("training.seed", "seed"),
    train="src/holosoma/holosoma/train_agent.py",
    seed_spacing="it trains with seed + rank: space the seeds by at least the number of ranks",
    eval_template="rsl_rl",
)
