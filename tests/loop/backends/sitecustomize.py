"""Makes the `hill` backend known to every process that is started with this folder on PYTHONPATH."""

from rlx import plugins

plugins.BACKENDS["hill"] = "hill:HillTrainer"
