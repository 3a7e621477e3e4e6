from __future__ import annotations

from typing import Any

import pytest

from rlx.envs.check_kwargs import accepted_by, refuse_unknown, takes
from rlx.errors import ConfigError


class Base:
    def __init__(self, width: int = 1) -> None: ...


class Derived(Base):
    def __init__(self, height: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)


def strict(env: object, size: int) -> None: ...


def open_ended(**kwargs: Any) -> None: ...


def test_a_class_takes_what_its_bases_take() -> None:
    assert accepted_by(Derived) == ["height", "width"]
    assert takes(Derived, "width")
    assert not takes(Derived, "depth")


def test_a_function_with_kwargs_takes_anything() -> None:
    assert takes(open_ended, "whatever")
    refuse_unknown(open_ended, {"whatever": 1}, label="it")


def test_an_unknown_argument_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_unknown(strict, {"sizes": 1}, label="`thing`", skip=1)
    assert caught.value.message == "`thing` takes no argument `sizes`"
    assert caught.value.hint == "did you mean `size`? it takes size"


def test_a_thing_without_arguments_says_so() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_unknown(lambda: None, {"x": 1}, label="thing")
    assert caught.value.hint == "it takes no arguments"
