"""Isaac Lab: its own repository, and extensions that train with rsl_rl, skrl, SB3 or rl_games."""

from rlx.adopt.profiles.profile import RSL_RL_TAGS, LengthFacts, LogFacts, Profile, has_file, trains_with
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    return trains_with(repository, facts, "isaaclab", "isaaclab_rl") or has_file(repository, "isaaclab.sh")


PROFILE = Profile(
    name="Isaac Lab",
    matches=_matches,
    logs=LogFacts(
        folder="logs/rsl_rl",
        tags=(*RSL_RL_TAGS, "Episode_Reward/*", "Episode_Termination/*"),
        score="Train/mean_reward",
        dialect="rsl_rl",
    ),
    length=LengthFacts(("max_iterations",), "iterations", "iterations × num_steps_per_env × num_envs × ranks"),
    checkpoint="model_*.pt",
    seed_keys=("seed",),
    train="scripts/reinforcement_learning/rsl_rl/train.py",
    extra=("--headless",),
    override="{key}={value}",
    reward_key="env.rewards.{term}.weight",
    values={"task": "Isaac-Cartpole-v0"},
    seed_spacing="it trains with seed + rank: space the seeds by at least the number of ranks",
    notes=(
        "`play` prints no metric: rlx adopt --eval-template writes an evaluation that does",
        "`--checkpoint best` is the newest checkpoint for rsl_rl and the final one for SB3: rlx never trusts the name",
    ),
    eval_template="rsl_rl",
)
