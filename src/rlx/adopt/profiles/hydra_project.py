"""Projects that are configured by Hydra and have no known framework."""

from rlx.adopt.profiles.profile import LengthFacts, LogFacts, Profile, depends_on
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(_repository: ForeignRepository, facts: ScanFacts) -> bool:
    return depends_on(facts, "Hydra")


PROFILE = Profile(
    name="Hydra project",
    matches=_matches,
    logs=LogFacts(folder="."),
    length=LengthFacts(
        (
            "total_timesteps",
            "num_train_frames",
            "num_env_steps",
            "total_steps",
            "steps",
            "max_iterations",
            "iterations",
        ),
        "environment steps",
    ),
)
