"""CleanRL: one file per algorithm, tyro options, TensorBoard below `runs/`."""

from rlx.adopt.profiles.profile import LengthFacts, LogFacts, Profile, has_file
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(repository: ForeignRepository, facts: ScanFacts) -> bool:
    if has_file(repository, "cleanrl/ppo.py"):
        return True
    return any(tag in facts.names("metric tag") for tag in ("charts/episodic_return", "charts/SPS"))


PROFILE = Profile(
    name="CleanRL",
    matches=_matches,
    logs=LogFacts(
        folder="runs",
        tags=("charts/episodic_return", "charts/episodic_length", "charts/SPS"),
        score="charts/episodic_return",
        dialect="cleanrl",
    ),
    length=LengthFacts(("total-timesteps", "total_timesteps"), "environment steps"),
    checkpoint="*.cleanrl_model",
    train="cleanrl/ppo.py",
    notes=("returns are those of single training episodes, at the step at which each ended",),
    eval_template="generic",
)
