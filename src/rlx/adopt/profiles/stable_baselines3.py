"""Scripts that train with Stable-Baselines3 directly."""

from rlx.adopt.profiles.profile import SB3_TAGS, LengthFacts, LogFacts, Profile, depends_on
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts

_PACKAGES = ("stable_baselines3", "sb3_contrib", "sbx")


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    """Return whether a training program imports an algorithm; its vector environments alone are not a training."""
    if not depends_on(facts, "Stable-Baselines3", "SB3-Contrib", "SBX"):
        return False
    for fact in facts.of("train"):
        file = repository.by_path(fact.file)
        if file is not None and any(_is_algorithm(name) for name in file.imports):
            return True
    return False


def _is_algorithm(name: str) -> bool:
    """Return whether an imported name is an algorithm, such as `stable_baselines3.PPO`."""
    package, _, rest = name.partition(".")
    last = rest.rpartition(".")[2]
    return package in _PACKAGES and not rest.startswith("common") and last.isupper()


PROFILE = Profile(
    name="Stable-Baselines3",
    matches=_matches,
    logs=LogFacts(
        tags=SB3_TAGS,
        score="rollout/ep_rew_mean",
        dialect="sb3",
    ),
    length=LengthFacts(
        ("total_timesteps", "total-timesteps", "timesteps", "n_timesteps", "steps"), "environment steps"
    ),
    eval_template="sb3",
)
