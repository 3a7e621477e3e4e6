"""An option of a program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProgramOption:
    """An option of a program: the key that changes it, and the place that declares it."""

    key: str
    flag: str
    file: str
    line: int
    default: object = None
    type: str = ""
    is_required: bool = False
    is_switch: bool = False
    is_positional: bool = False
    is_seed: bool = False
    """Whether it sets the seed of a training: by its name, or because the program seeds with it."""
