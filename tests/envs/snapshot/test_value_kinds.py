from __future__ import annotations

import itertools
import re
import threading
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np
import pytest

from rlx.envs.snapshot.value_kinds import attributes_of, class_name, is_plain_class, kind_of, payload_of

T = TypeVar("T")


class Plain: ...


class Slotted:
    __slots__ = ("__private", "value")

    def __init__(self) -> None:
        self.value = 1
        self.__private = 2


class Typed(Generic[T]): ...


class OwnDict(dict):  # type: ignore[type-arg]
    __slots__ = ("extra",)


@pytest.mark.parametrize("cls", [Plain, Slotted, Typed, OwnDict, gymnasium.Env, gymnasium.wrappers.TimeLimit])
def test_classes_of_python_are_plain(cls: type) -> None:
    assert is_plain_class(cls)


def test_classes_of_compiled_code_are_not_plain() -> None:
    import mujoco
    import pygame

    for cls in (
        mujoco.MjData,
        np.random.Generator,
        re.Pattern,
        type(threading.Lock()),
        itertools.count,
        pygame.Surface,
    ):
        assert not is_plain_class(cls), cls


def test_slots_are_attributes() -> None:
    assert attributes_of(Slotted()) == {"value": 1, "_Slotted__private": 2}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Plain(), "object"),
        (OwnDict(), "object"),
        ({}, "dict"),
        (np.float64(1), "scalar"),
        (len, "code"),
        (Plain, "code"),
    ],
)
def test_kinds_of_values(value: Any, kind: str) -> None:
    assert kind_of(type(value)) == kind


def test_the_payload_of_a_container_of_ones_own() -> None:
    assert payload_of(OwnDict) is dict
    assert payload_of(Plain) is None


def test_a_class_from_a_projects_file_is_named_without_the_projects_place() -> None:
    cls = type("Reach", (), {"__module__": "rlx_user_0123456789ab.reach"})
    assert class_name(cls) == "reach.Reach"
