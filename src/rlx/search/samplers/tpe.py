"""Optuna's tree-structured Parzen estimator (extra `search`). All options are set, as Optuna 5 changed its defaults."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rlx.errors import MissingExtra
from rlx.search.observation import TRIES, NewConfigs, Observation, ranks
from rlx.search.space import Choice, Parameter, Space, Values

START = 10


class TpeSampler:
    """Rebuilds an Optuna study from the history and asks it. Failed configs count as the worst."""

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return new configs; random ones if the estimator repeats itself."""
        try:
            import optuna
        except ImportError:
            raise MissingExtra("optuna", extra="search", why="the sampler `tpe`") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = _study(optuna, space, history, seed)
        new = NewConfigs(space, history, count)
        for _ in range(TRIES):
            if new.missing <= 0:
                break
            trial = study.ask()
            values: Values = {}
            for parameter in space.parameters:
                if space.counts(parameter, values):
                    values[parameter.key] = _suggest(trial, parameter)
            new.add(values)
        return new.draw(seed=seed)


def _study(optuna: Any, space: Space, history: Sequence[Observation], seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # `group`, for conditional parameters
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=START, n_ei_candidates=24, multivariate=True, group=True, constant_liar=True,
            seed=seed * 10_007 + len(history),
        )  # fmt: skip
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for observation, rank in zip(history, ranks(history), strict=True):
        params = {}
        distributions = {}
        for parameter in space.parameters:
            if parameter.key in observation.values:
                params[parameter.key] = _stored(parameter, observation.values[parameter.key])
                distributions[parameter.key] = _distribution(optuna, parameter)
        if None not in params.values():
            trial = optuna.trial.create_trial(params=params, distributions=distributions, value=float(rank))
            study.add_trial(trial)
    return study


def _distribution(optuna: Any, parameter: Parameter) -> Any:
    domain = parameter.domain
    if isinstance(domain, Choice):
        return optuna.distributions.CategoricalDistribution(list(range(len(domain.values))))
    if domain.is_whole:
        return optuna.distributions.IntDistribution(int(domain.low), int(domain.high), log=domain.is_log)
    return optuna.distributions.FloatDistribution(domain.low, domain.high, log=domain.is_log)


def _stored(parameter: Parameter, value: Any) -> Any:
    """Return a value as Optuna stores it: the index of a choice. None if it is not in the space."""
    unit = parameter.domain.unit(value)
    if unit is None:
        return None
    if isinstance(parameter.domain, Choice):
        return int(unit * len(parameter.domain.values))
    return value


def _suggest(trial: Any, parameter: Parameter) -> Any:
    domain = parameter.domain
    if isinstance(domain, Choice):
        return domain.values[trial.suggest_categorical(parameter.key, list(range(len(domain.values))))]
    if domain.is_whole:
        return trial.suggest_int(parameter.key, int(domain.low), int(domain.high), log=domain.is_log)
    return float(f"{trial.suggest_float(parameter.key, domain.low, domain.high, log=domain.is_log):.6g}")
