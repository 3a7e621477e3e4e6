"""The MiniGrid starter files: torch-ac agents that store everything below `storage/`."""

from rlx.adopt.profiles.profile import LengthFacts, LogFacts, Profile, depends_on
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFacts


def _matches(_repository: ForeignRepository, facts: ScanFacts) -> bool:
    return depends_on(facts, "torch-ac")


PROFILE = Profile(
    name="MiniGrid starter",
    matches=_matches,
    logs=LogFacts(
        reader="csv",
        folder="storage",
        step="frames",
        tags=(
            "return_mean",
            "rreturn_mean",
            "num_frames_mean",
            "entropy",
            "value",
            "policy_loss",
            "value_loss",
            "grad_norm",
        ),
        score="return_mean",
        dialect="torch_ac",
    ),
    length=LengthFacts(("frames",), "frames"),
    checkpoint="status.pt",
    train="scripts/train.py",
    values={"algo": "ppo", "env": "MiniGrid-Empty-5x5-v0"},
    eval_template="generic",
)
