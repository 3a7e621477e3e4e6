"""The resume label of checkpoints: how exactly training can continue from them, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.config.schema import Experiment
from rlx.envs import snapshot
from rlx.envs.native_vector import AnyVector
from rlx.envs.remote.env_process import connected
from rlx.envs.vector import make_vector


class Fidelity:
    """The label of the next checkpoints; it can only get weaker."""

    def __init__(self, experiment: Experiment, *, root: Path, takes_late: bool = False) -> None:
        """Probe the environment: if its state cannot be restored, it is reset on a resume."""
        self.label = "exact"
        self.missing = ""
        if (process := connected()) is not None:
            _, facts = process.call("probe", env=experiment.env.model_dump(mode="json"), takes_late=takes_late)
            probed = snapshot.Probe(facts.get("is_exact") is True, str(facts.get("missing")))
        else:
            probed = snapshot.probe(lambda: make_vector(experiment.env, root=root, num_envs=1, takes_late=takes_late))
        if not probed.is_exact:
            self.weaken("boundary", f"environment state ({probed.missing})")

    def weaken(self, label: str, missing: str) -> None:
        """Weaken the label, because from now on something is missing."""
        if self.label != "warm":
            self.label = label
        self.missing = ", ".join(filter(None, [self.missing, missing]))

    def capture(self, env: AnyVector) -> Any:
        """Return the environments' state, or None if it cannot be restored."""
        if self.label != "exact":
            return None
        try:
            return snapshot.capture(env)
        except snapshot.Uncapturable as error:  # the probe succeeded, but the environment changed since
            self.weaken("boundary", f"environment state ({error})")
            return None
