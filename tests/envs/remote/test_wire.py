"""Frames between an evaluator and a policy: what is sent arrives, anything else is garbled and never more than that."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx.envs.remote import wire


def received(frame: bytes, *, most_bytes: int = 2**20) -> Any:
    stream = io.BytesIO(frame)

    def exactly(size: int) -> bytes:
        content = stream.read(size)
        if len(content) < size:
            raise EOFError
        return content

    return wire.read(exactly, most_bytes=most_bytes)


@pytest.mark.parametrize(
    "tree",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(3),
        np.zeros((0, 4), np.uint8),
        {"a": np.ones(2, bool), "b": (np.arange(3), {"c": np.eye(2)})},
        np.arange(4, dtype=">i4"),
    ],
)
def test_what_is_sent_arrives(tree: Any) -> None:
    kind, found, about = received(wire.pack("act", tree, deterministic=True))
    assert (kind, about) == ("act", {"deterministic": True})
    assert json.dumps(found, default=lambda array: (array.tolist(), array.shape)) == json.dumps(
        tree, default=lambda array: (array.tolist(), array.shape)
    )


def test_a_frame_can_be_without_arrays() -> None:
    assert received(wire.pack("ready")) == ("ready", None, {})


def test_objects_are_not_sent() -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        wire.pack("act", np.array([object()]))
    with pytest.raises(TypeError, match="cannot be sent"):
        wire.pack("act", np.array(["text"]))


def header(**changes: Any) -> bytes:
    content = {"kind": "actions", "tree": 0, "leaves": [["<f4", [1]]], "about": {}, **changes}
    return json.dumps(content).encode()


def frame(head: bytes, payload: bytes = bytes(4), *, magic: bytes = wire.MAGIC) -> bytes:
    return wire.LENGTHS.pack(magic, len(head), len(payload)) + head + payload


@pytest.mark.parametrize(
    "bad",
    [
        frame(header(), magic=b"RLX2"),
        frame(b"nonsense"),
        frame(b"[1]"),
        frame(b"[" * 60000),
        frame(header(kind=1)),
        frame(header(leaves=[["|O8", [1]]])),
        frame(header(leaves=[["<f4", [-1]]])),
        frame(header(leaves=[["<f4", [2]]])),
        frame(header(leaves=[["<f4", [10**12]]])),
        frame(header(leaves=[["<f4", "1"]])),
        frame(header(leaves=[]), b"more"),
        frame(header(tree=7)),
        frame(header(tree={"dict": 1})),
        frame(header(tree=[0])),
        frame(header(), bytes(5)),
        wire.LENGTHS.pack(wire.MAGIC, 2**31, 4),
        wire.LENGTHS.pack(wire.MAGIC, 10, 2**60),
    ],
)
def test_anything_else_is_garbled(bad: bytes) -> None:
    with pytest.raises(wire.InvalidFrame):
        received(bad)


@given(st.binary(max_size=200), st.integers(0, 2**20))
def test_noise_is_garbled_or_too_short(noise: bytes, size: int) -> None:
    for content in (noise, wire.LENGTHS.pack(wire.MAGIC, len(noise), size) + noise):
        with pytest.raises((wire.InvalidFrame, EOFError)):
            received(content)
