"""How faithfully training can go on from a checkpoint, and what stands against `exact`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.config.schema import Experiment
from rlx.envs import state as env_state
from rlx.envs.vector import make_vector
from rlx.envs.worlds import AnyVector


class Fidelity:
    """The label of the checkpoints to come; it only ever gets weaker."""

    def __init__(self, experiment: Experiment, *, root: Path, takes_late: bool = False) -> None:
        """Probe the environment: what cannot be captured and put back is reset on a resume."""
        self.label, self.missing = "exact", ""
        probed = env_state.probe(lambda: make_vector(experiment.env, root=root, num_envs=1, takes_late=takes_late))
        if not probed.is_exact:
            self.weaken("boundary", f"environment state ({probed.missing})")

    def weaken(self, label: str, missing: str) -> None:
        """Say that from now on something is missing."""
        self.label = "warm" if "warm" in (label, self.label) else label
        self.missing = f"{self.missing}, {missing}" if self.missing else missing

    def capture(self, env: AnyVector) -> Any:
        """Return the environments' state, or None where they have none that can be put back."""
        if self.label != "exact":
            return None
        try:
            return env_state.capture(env)
        except env_state.Uncapturable as error:  # it could at the start, and no longer can
            self.weaken("boundary", f"environment state ({error})")
            return None
