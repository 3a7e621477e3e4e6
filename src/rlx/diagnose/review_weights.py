"""Weights and terms that miss each other, where a file has dicts of both; read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.diagnose.finding import Evidence, Finding
from rlx.diagnose.reward_code import named

WEIGHTS = re.compile(r"weight|scale|coef", re.I)
TERMS = re.compile(r"term|component|reward", re.I)


def weights_and_terms(tree: ast.Module, place: str) -> Iterator[Finding]:
    """Find weights without a term of that name, and terms without a weight, where a file has dicts of both."""
    weights, functions = _keys(tree, WEIGHTS), _named_functions(tree)
    terms = _keys(tree, TERMS, other_than=WEIGHTS) | (functions if weights.keys() & functions.keys() else {})
    if not weights or not terms:
        return
    for name in (name for name in weights if name not in terms):
        claim = f"weight `{name}` has no term: nothing in the file makes a `{name}`"
        evidence = (Evidence(f"{place}:{weights[name]}", name),)
        yield Finding(
            "weight_without_term", "medium", claim, evidence, (f"make the term `{name}`, or drop its weight",)
        )
    for name in (name for name in terms if name not in weights):
        claim = f"term `{name}` has no weight beside {', '.join(f'`{one}`' for one in weights)}"
        evidence = (Evidence(f"{place}:{terms[name]}", name),)
        yield Finding("term_without_weight", "low", claim, evidence, (f"give `{name}` a weight, or drop it",))


def _keys(tree: ast.Module, kind: re.Pattern[str], *, other_than: re.Pattern[str] | None = None) -> dict[str, int]:
    """Return the text keys of dicts whose name is of a kind, with the lines they stand on."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            holder = target.value if isinstance(target, ast.Subscript) else target
            name = named(holder) or ""
            if not kind.search(name) or (other_than is not None and other_than.search(name)):
                continue
            keys = [target.slice] if isinstance(target, ast.Subscript) else _dict_keys(getattr(node, "value", None))
            found |= {
                key.value: key.lineno for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    return found


def _dict_keys(node: ast.expr | None) -> list[ast.expr]:
    return [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []


def _named_functions(tree: ast.Module) -> dict[str, int]:
    """Return the terms that functions called `reward_x` or `_reward_x` make."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    matches = [(re.fullmatch(r"_?reward_(\w+)", node.name), node.lineno) for node in functions]
    return {match[1]: line for match, line in matches if match}
