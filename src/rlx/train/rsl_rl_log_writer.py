"""Log an rsl_rl training as a run of rlx, through rsl_rl's own plug-in and without a patch.

In the runner's config: `logger = {"class_name": "rlx.train.rsl_rl_log_writer:RslRlLogWriter", "run_name": "walk"}`.
Give `steps_per_iteration` (steps per environment × environments × ranks), so that the x-axis counts environment steps.
"""

from __future__ import annotations

import sys
from typing import Any

from rlx.runs.readers.metric_dialects import with_rlx_names
from rlx.train import own_script


def _join_log_writers(writer: type) -> None:
    """Make rsl_rl treat a class as one of its log writers; it saves models to those and stops them at the end."""
    module = sys.modules.get("rsl_rl.utils.log_writer")  # rsl_rl itself called: it is loaded
    base = getattr(module, "LogWriter", None)
    if base is not None:
        base.register(writer)


class RslRlLogWriter:
    """Collects the scalars of an iteration and writes them as one row when the next iteration starts."""

    def __init__(
        self, *_places: object, run_name: str = "rsl_rl", seed: int = 0, steps_per_iteration: int = 1, **config: Any
    ) -> None:
        config.pop("log_dir", None)  # it differs between the seeds of one run
        _join_log_writers(type(self))
        plain = {key: value for key, value in config.items() if isinstance(value, (str, int, float, bool))}
        self._run = own_script.start({"run_name": run_name, **plain}, seed=seed)
        self._steps = steps_per_iteration
        self._iteration = 0
        self._values: dict[str, float] = {}

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Log one value. Tags whose x-axis is the time in seconds are left out."""
        if tag.endswith("/time"):
            return
        if global_step != self._iteration:
            self._write()
            self._iteration = int(global_step)
        self._values[tag] = float(scalar_value)

    def _write(self) -> None:
        if self._values:
            self._run.log((self._iteration + 1) * self._steps, with_rlx_names(self._values))
            self._values = {}

    def store_config(self, env_cfg: object, train_cfg: object) -> None:
        """Do nothing: the config of a run is given when it starts."""

    def save_model(self, model_path: str, it: int) -> None:
        """Keep a copy of the checkpoint."""
        self._run.save(model_path, name="latest")

    def save_file(self, path: str) -> None:
        """Do nothing: rlx records the code itself."""

    def save_video(self, video: object, it: int) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Write the last row and end the run."""
        self._write()
        self._run.finish()
