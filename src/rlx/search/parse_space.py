"""Read a search space: `-p algo.learning_rate=log:1e-5:1e-2`, or the same as a value in a sweep file.

| text | meaning |
|---|---|
| `0.1:0.9` | numbers from 0.1 to 0.9 |
| `log:1e-5:1e-2` | the same, spread by the logarithm |
| `int:1:8`, `int:log:16:1024` | whole numbers |
| `a,b,c` | these values; `[64,64],[256,256]` are two lists |
| `… if KEY=a,b` | only if KEY has one of these values |

A sweep file may also write a list of values or a mapping with `low`, `high`, `log`, `int`, `values` and `if: {KEY: a}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlx.errors import UsageError, hint_for
from rlx.search.space import Choice, Condition, Parameter, Range, Space

ReadValue = Callable[[str], Any]
"""Reads one value as YAML does: `1e-3` is a number, `[64, 64]` a list."""
EXAMPLE = "for example -p algo.learning_rate=log:1e-5:1e-2 or -p algo.gamma=0.98,0.99"
WORDS = ("low", "high", "log", "int", "values", "if")


def parse_space(texts: Sequence[str], *, read: ReadValue) -> Space:
    """Read the space of a command line, one text per parameter."""
    parameters = []
    for text in texts:
        key, equals, domain = text.partition("=")
        if not equals or not key.strip() or not domain.strip():
            raise UsageError(f"-p {text}: a parameter is `key=values`", hint=EXAMPLE)
        parameters.append(parse_parameter(key.strip(), domain.strip(), read=read))
    return Space(tuple(parameters))


def space_of(document: Mapping[str, Any], *, read: ReadValue) -> Space:
    """Read the space of a sweep file: key → text, list or mapping."""
    return Space(tuple(parse_parameter(str(key), value, read=read) for key, value in document.items()))


def parse_parameter(key: str, domain: Any, *, read: ReadValue) -> Parameter:
    """Read one parameter from text, a list of values or a mapping."""
    if isinstance(domain, str):
        return _from_text(key, domain, read)
    if isinstance(domain, Mapping):
        return _from_mapping(key, domain)
    if isinstance(domain, (list, tuple)):
        return Parameter(key, _choice(key, list(domain)))
    raise UsageError(f"`{key}`: {domain!r} is not a range or a list of values", hint=EXAMPLE)


def _from_text(key: str, text: str, read: ReadValue) -> Parameter:
    text, _, condition = text.partition(" if ")
    words = [word.strip() for word in text.split(":")]
    kinds = []
    while words and words[0] in ("log", "int"):
        kinds.append(words.pop(0))
    parts = _split(text)
    is_quoted = text.lstrip().startswith(("[", "{", '"', "'"))
    if kinds or (len(words) == 2 and len(parts) == 1 and not is_quoted):
        if len(words) != 2 or "" in words:
            raise UsageError(f"`{key}`: `{text}` is not a range", hint="a range is low:high, log:low:high or int:1:8")
        bounds = [read(word) for word in words]
        domain: Range | Choice = _range(key, bounds, is_log="log" in kinds, is_whole="int" in kinds)
    else:
        if "" in parts:
            raise UsageError(f"`{key}` has an empty value: `{text}`", hint=EXAMPLE)
        domain = _choice(key, [read(part) for part in parts])
    return Parameter(key, domain, _condition(key, condition, read))


def _condition(key: str, text: str, read: ReadValue) -> Condition | None:
    if not text.strip():
        return None
    other, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise UsageError(f"`{key}`: the condition `{text}` is not `KEY=value`", hint="… if algo.name=ppo")
    return Condition(other.strip(), tuple(read(part) for part in _split(values)))


def _split(text: str) -> list[str]:
    """Split at the commas that are outside brackets and quotes."""
    parts = [""]
    depth = 0
    quote = ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _from_mapping(key: str, document: Mapping[str, Any]) -> Parameter:
    for word in document:
        if word not in WORDS:
            known = f"a range has {', '.join(WORDS)}"
            raise UsageError(f"`{key}`: unknown word `{word}`", hint=hint_for(str(word), WORDS, otherwise=known))
    condition = None
    if document.get("if"):
        ((other, values),) = dict(document["if"]).items()
        if not isinstance(values, (list, tuple)):
            values = [values]
        condition = Condition(str(other), tuple(values))
    if "values" in document:
        return Parameter(key, _choice(key, document["values"]), condition)
    if "low" not in document or "high" not in document:
        raise UsageError(f"`{key}`: a range needs `low` and `high`, or `values`", hint="{low: 0.1, high: 0.9}")
    bounds = [document["low"], document["high"]]
    domain = _range(key, bounds, is_log=bool(document.get("log")), is_whole=bool(document.get("int")))
    return Parameter(key, domain, condition)


def _range(key: str, bounds: list[Any], *, is_log: bool, is_whole: bool) -> Range:
    for bound in bounds:
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
            raise UsageError(f"`{key}`: `{bound}` is not a number", hint="a range is low:high, for example 0.1:0.9")
        if is_whole and bound != int(bound):
            raise UsageError(f"`{key}`: `{bound}` is not a whole number", hint=f"leave out `int:`: {key}=0.1:0.9")
    low, high = bounds
    if low >= high:
        wider = f"{key}={high:g}:{low:g}"
        if low == high:
            wider = f"fix it instead: -s {key}={low:g}"
        raise UsageError(f"`{key}`: the range {low:g}:{high:g} is empty", hint=wider)
    if is_log and low <= 0:
        message = f"`{key}`: a logarithmic range cannot start at {low:g}"
        raise UsageError(message, hint=f"start above 0: {key}=log:{min(1e-5, high / 1000):g}:{high:g}")
    return Range(low, high, is_log, is_whole)


def _choice(key: str, values: Any) -> Choice:
    if not isinstance(values, (list, tuple)) or not values:
        raise UsageError(f"`{key}` has no values", hint=EXAMPLE)
    distinct: list[Any] = []
    for value in values:
        if Choice(tuple(distinct)).unit(value) is None:
            distinct.append(value)
    return Choice(tuple(distinct))


def space_document(space: Space) -> dict[str, Any]:
    """Return a space as plain data, which `space_of` reads back."""
    return {parameter.key: _domain_document(parameter) for parameter in space.parameters}


def _domain_document(parameter: Parameter) -> dict[str, Any]:
    domain = parameter.domain
    if isinstance(domain, Choice):
        document: dict[str, Any] = {"values": list(domain.values)}
    else:
        document = {"low": domain.low, "high": domain.high, "log": domain.is_log, "int": domain.is_whole}
    if parameter.condition:
        document["if"] = {parameter.condition.key: list(parameter.condition.values)}
    return document
