"""Checks the keyword arguments of a class or function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from rlx.errors import ConfigError, did_you_mean


def takes(creator: Callable[..., Any], name: str) -> bool:
    """Return whether a class (with its base classes) or a function takes an argument of this name."""
    if name in accepted_by(creator):
        return True
    parameters = _parameters(creator)
    return not isinstance(creator, type) and (parameters is None or _takes_anything(parameters))


def _takes_anything(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def _parameters(creator: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(creator).parameters
    except (TypeError, ValueError):  # built in C
        return None


def refuse_unknown(
    creator: Callable[..., Any], kwargs: Mapping[str, Any], *, label: str, skip: int = 0, extra: tuple[str, ...] = ()
) -> None:
    """Raise an error for the first argument that a class or function does not take; `label` names it, quoted."""
    parameters = _parameters(creator)
    if parameters is None or _takes_anything(parameters):
        return
    accepted = list(parameters)[skip:]
    for name in kwargs:
        if name not in accepted and name not in extra:
            raise unknown_argument(label, name, [*accepted, *extra])


def refuse_wrong_types(creator: Callable[..., Any], kwargs: Mapping[str, Any], *, label: str) -> None:
    """Raise an error for the first argument that does not have the type that a class or function declares."""
    from pydantic import TypeAdapter, ValidationError

    types = get_type_hints(getattr(creator, "__init__") if isinstance(creator, type) else creator)  # noqa: B009
    for name, value in kwargs.items():
        if name not in types:
            continue
        try:
            TypeAdapter(types[name]).validate_python(value, strict=True)
        except ValidationError:
            wanted = getattr(types[name], "__name__", None)
            if wanted is None or "[" in str(types[name]):
                wanted = str(types[name]).replace("collections.abc.", "").replace("typing.", "")
            default = default_of(creator, name)
            hint = f"set `{name}` in env.wrappers to {_ARTICLES.get(wanted, wanted)}"
            if default is not None:
                hint += f"; its default is {default}"
            raise ConfigError(
                f"{label}: `{name}` is {value!r}, not {_ARTICLES.get(wanted, wanted)}", hint=hint
            ) from None


_ARTICLES = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}


def unknown_argument(label: str, name: str, accepted: list[str]) -> ConfigError:
    """Return the error for an unknown argument, with the known ones."""
    known = [argument for argument in accepted if argument not in ("self", "env", "render_mode")]
    hint = f"it takes {', '.join(known) or 'no arguments'}"
    near = did_you_mean(name, known)
    if near:
        hint = f"did you mean `{near}`? {hint}"
    return ConfigError(f"{label} takes no argument `{name}`", hint=hint)


def accepted_by(creator: Callable[..., Any]) -> list[str]:
    """Return the keyword arguments of a class, its base classes included (`**kwargs` is passed upwards)."""
    return list(_keywords(creator))


def default_of(creator: Callable[..., Any], name: str) -> Any:
    """Return the default of an argument; None if it has none or is not taken."""
    parameter = _keywords(creator).get(name)
    return None if parameter is None or parameter.default is parameter.empty else parameter.default


def _keywords(creator: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    sources: list[Any] = [creator]
    if isinstance(creator, type):
        sources = [vars(base)["__init__"] for base in creator.__mro__ if "__init__" in vars(base)]
    keywords: dict[str, inspect.Parameter] = {}
    for source in sources:
        for name, parameter in (_parameters(source) or {}).items():
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) and name != "self":
                keywords.setdefault(name, parameter)
    return keywords
