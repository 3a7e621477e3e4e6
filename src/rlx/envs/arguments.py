"""Arguments: which ones a class or function takes, and the one line about those it does not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rlx.errors import ConfigError, did_you_mean


def takes(creator: Callable[..., Any], name: str) -> bool:
    """Say whether a class (its base classes included) or a function takes an argument of this name."""
    if name in accepted_by(creator):
        return True
    parameters = _parameters(creator)
    return not isinstance(creator, type) and (parameters is None or _takes_anything(parameters))


def _takes_anything(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _parameters(creator: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(creator).parameters
    except (TypeError, ValueError):  # built in C
        return None


def refuse_unknown(
    creator: Callable[..., Any], kwargs: Mapping[str, Any], *, label: str, skip: int = 0, extra: tuple[str, ...] = ()
) -> None:
    """Refuse arguments that a class or function does not take, naming those it does."""
    parameters = _parameters(creator)
    if parameters is None or _takes_anything(parameters):
        return
    accepted = list(parameters)[skip:]
    for name in kwargs:
        if name not in accepted and name not in extra:
            raise unknown_argument(label, name, [*accepted, *extra])


def unknown_argument(label: str, name: str, accepted: list[str]) -> ConfigError:
    """Return the error about an argument that is not taken, with the ones that are."""
    shown = [each for each in accepted if each not in ("self", "env", "render_mode")]
    near = did_you_mean(name, shown)
    known = f"it takes {', '.join(shown)}" if shown else "it takes no arguments"
    quoted = label if label.startswith("wrapper") else f"`{label}`"
    return ConfigError(
        f"{quoted} takes no argument `{name}`", hint=f"did you mean `{near}`? {known}" if near else known
    )


def accepted_by(creator: Callable[..., Any]) -> list[str]:
    """Return the keyword arguments of a class, its base classes included (`**kwargs` is passed upwards)."""
    return list(_keywords(creator))


def default_of(creator: Callable[..., Any], name: str) -> Any:
    """Return the default of an argument; None where it has none, or where the class or function does not take it."""
    parameter = _keywords(creator).get(name)
    return None if parameter is None or parameter.default is parameter.empty else parameter.default


def _keywords(creator: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    sources = (
        [vars(base)["__init__"] for base in creator.__mro__ if "__init__" in vars(base)]
        if isinstance(creator, type)
        else [creator]
    )
    found: dict[str, inspect.Parameter] = {}
    for source in sources:
        for name, parameter in (_parameters(source) or {}).items():
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) and name != "self":
                found.setdefault(name, parameter)
    return found
