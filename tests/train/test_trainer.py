"""A checkpoint goes on with the backend that wrote it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlx.config.load import parse
from rlx.errors import UsageError
from rlx.train.trainer import train


def test_a_session_on_another_backends_checkpoint_is_refused() -> None:
    experiment = parse({"env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"}, "backend": "sb3"})
    session: Any = SimpleNamespace(checkpoint=SimpleNamespace(backend="fast"))
    with pytest.raises(UsageError, match="a checkpoint of backend fast cannot be trained further with sb3") as caught:
        train(experiment, [session])
    assert caught.value.hint == "-s backend=fast, or start a new training"
