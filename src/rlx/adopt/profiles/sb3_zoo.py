"""RL Baselines3 Zoo: `train.py --algo ALGO --env ENV` with tuned hyperparameters."""

from rlx.adopt.profiles.profile import SB3_TAGS, LengthFacts, LogFacts, Profile, depends_on, has_file
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    return depends_on(facts, "RL Baselines3 Zoo") or has_file(repository, "rl_zoo3/train.py", "hyperparams/ppo.yml")


PROFILE = Profile(
    name="RL Baselines3 Zoo",
    matches=_matches,
    logs=LogFacts(
        folder="logs",
        tags=(*SB3_TAGS, "eval/mean_reward", "eval/mean_ep_length"),
        score="rollout/ep_rew_mean",
        dialect="sb3",
    ),
    length=LengthFacts(("n-timesteps", "n_timesteps"), "environment steps", usual=100_000),
    checkpoint="*.zip",
    train="train.py",
    extra=("--tensorboard-log", "{out}/tb"),
    hyperparameters=(
        "learning_rate",
        "n_steps",
        "batch_size",
        "n_epochs",
        "gamma",
        "gae_lambda",
        "clip_range",
        "ent_coef",
        "vf_coef",
    ),
    override="--hyperparams {key}:{value} ...",
    usual={"algo": "ppo", "env": "CartPole-v1"},
    eval_template="sb3",
)
