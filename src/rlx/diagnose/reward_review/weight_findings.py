"""Weights without terms and terms without weights, if a file has dicts of both. Read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_review.reward_ast import assignments, named
from rlx.diagnose.rule import Rule, Sighting

WEIGHTS = re.compile(r"weight|scale|coef", re.I)
TERMS = re.compile(r"term|component|reward", re.I)


@dataclass(frozen=True)
class RewardFile:
    """The syntax tree of a file with a reward, and the file's name."""

    tree: ast.Module
    place: str

    @cached_property
    def weights(self) -> dict[str, int]:
        """The names of the weights in dicts, with their lines."""
        return self._keys(lambda name: bool(WEIGHTS.search(name)))

    @cached_property
    def terms(self) -> dict[str, int]:
        """The names of the terms, with their lines: keys of dicts, and functions called `reward_x` or `_reward_x`."""
        terms = self._keys(lambda name: bool(TERMS.search(name)) and not WEIGHTS.search(name))
        functions = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and (match := re.fullmatch(r"_?reward_(\w+)", node.name)):
                functions[match[1]] = node.lineno
        if self.weights.keys() & functions.keys():
            terms |= functions
        return terms

    def _keys(self, is_meant: Callable[[str], bool]) -> dict[str, int]:
        """Return the text keys of dicts with such a name, with their lines."""
        lines: dict[str, int] = {}
        for node in ast.walk(self.tree):
            for target, value in assignments(node):
                keys: list[ast.expr | None] = list(value.keys) if isinstance(value, ast.Dict) else []
                holder: ast.expr = target
                if isinstance(target, ast.Subscript):
                    keys = [target.slice]
                    holder = target.value
                if is_meant(named(holder) or ""):
                    texts = [key for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
                    lines |= {str(key.value): key.lineno for key in texts}
        return lines


def find_weights_without_term(file: RewardFile) -> Iterator[Sighting]:
    """Find weights for which the file has no term."""
    for name in [name for name in file.weights if file.terms and name not in file.terms]:
        evidence = Evidence(f"{file.place}:{file.weights[name]}", name)
        claim = f"weight `{name}` has no term: nothing in the file computes `{name}`"
        yield Sighting((evidence,), claim, tries=(f"add the term `{name}`, or drop its weight",))


def find_terms_without_weight(file: RewardFile) -> Iterator[Sighting]:
    """Find terms for which the file has no weight."""
    for name in [name for name in file.terms if file.weights and name not in file.weights]:
        evidence = Evidence(f"{file.place}:{file.terms[name]}", name)
        weights = ", ".join(f"`{weight}`" for weight in file.weights)
        yield Sighting(
            (evidence,),
            f"term `{name}` has no weight, unlike {weights}",
            tries=(f"give `{name}` a weight, or drop it",),
        )


RULES: tuple[Rule[RewardFile], ...] = (
    Rule("weight_without_term", "medium", find_weights_without_term),
    Rule("term_without_weight", "low", find_terms_without_weight),
)
