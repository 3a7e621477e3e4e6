"""rsl_rl: repositories that train with its runners, legged_gym's included."""

from rlx.adopt.profiles.profile import RSL_RL_TAGS, LengthFacts, LogFacts, Profile, has_file, trains_with
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    is_project = trains_with(repository, facts, "rsl_rl", "rsl_rl_lib", "legged_gym")
    return is_project or has_file(repository, "on_policy_runner.py")  # also the copies in other repositories


PROFILE = Profile(
    name="rsl_rl",
    matches=_matches,
    logs=LogFacts(
        folder="logs",
        tags=(*RSL_RL_TAGS, "Episode/*"),
        score="Train/mean_reward",
        dialect="rsl_rl",
    ),
    length=LengthFacts(
        ("max_iterations", "num_learning_iterations", "iterations"),
        "iterations",
        "iterations × num_steps_per_env × num_envs × ranks",
    ),
    checkpoint="model_*.pt",
    notes=(
        "rsl_rl ≥ 5.5 logs to rlx without a patch: logger={'class_name': 'rlx.train.rsl_rl_log_writer:RslRlLogWriter'}",
    ),
    eval_template="rsl_rl",
)
