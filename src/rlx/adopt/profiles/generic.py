"""Any repository: only the facts in its own files."""

from rlx.adopt.profiles.profile import LengthFacts, Profile
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(_repository: ForeignRepository, _facts: ScanFacts) -> bool:
    return True


PROFILE = Profile(
    name="generic",
    matches=_matches,
    length=LengthFacts(
        (
            "total_timesteps",
            "total-timesteps",
            "n_timesteps",
            "num_env_steps",
            "total_steps",
            "total-steps",
            "max_steps",
            "timesteps",
            "num_timesteps",
            "num_frames",
            "frames",
            "steps",
            "max_iterations",
            "iterations",
            "num_iterations",
            "updates",
            "num_updates",
            "episodes",
            "num_episodes",
            "epochs",
        )
    ),
)
