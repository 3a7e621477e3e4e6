"""Samplers by name; a sampler is imported only when it is used."""

from __future__ import annotations

from importlib import import_module

from rlx.errors import UsageError, hint_for
from rlx.search.observation import Sampler

SAMPLERS = {
    "model": "rlx.search.samplers.kernel_model:ModelSampler",
    "random": "rlx.search.samplers.random:RandomSampler",
    "grid": "rlx.search.samplers.grid:GridSampler",
    "sobol": "rlx.search.samplers.sobol:SobolSampler",
    "tpe": "rlx.search.samplers.tpe:TpeSampler",
    "cmaes": "rlx.search.samplers.cma_es:CmaEsSampler",
}


def sampler_named(name: str) -> Sampler:
    """Return a sampler; raise with the nearest name if there is none of this name."""
    if name not in SAMPLERS:
        known = f"samplers: {', '.join(SAMPLERS)}"
        raise UsageError(f"unknown sampler `{name}`", hint=hint_for(name, list(SAMPLERS), otherwise=known))
    module, _, attribute = SAMPLERS[name].partition(":")
    sampler: Sampler = getattr(import_module(module), attribute)()
    return sampler
