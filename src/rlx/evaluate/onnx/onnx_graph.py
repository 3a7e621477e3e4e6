"""Writes a policy as an ONNX graph: normaliser, layers and action mapping inside, raw observations in, actions out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces
from numpy.typing import NDArray

from rlx.envs import spaces
from rlx.errors import UsageError
from rlx.evaluate.onnx.policy_layers import ObservationPart, PolicyLayers

OPSET = 20
IR_VERSION = 9
ACTION = "action"
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "elu": "Elu", "gelu": "Gelu"}


def require_onnx() -> tuple[Any, Any]:
    """Return the modules `onnx` and `onnxruntime`; say how to install them if they are missing."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        raise UsageError("ONNX export needs onnx and onnxruntime", hint="pip install 'rlx[onnx]'") from None
    return onnx, onnxruntime


def onnx_model(policy: PolicyLayers, metadata: Mapping[str, str]) -> Any:
    """Return the model of a policy, with texts that travel inside the file."""
    onnx, _ = require_onnx()
    graph = _Graph(onnx)
    rows = [graph.rows(part) for part in policy.parts]
    value = rows[0]
    if len(rows) > 1:
        value = graph.node("Concat", rows, axis=1)
    for weight, bias in policy.matrices[:-1]:
        value = graph.activation(graph.layer(value, weight, bias), policy.activation)
    value = graph.layer(value, *policy.matrices[-1])
    output = graph.actions(value, policy)
    model = graph.model(output, {key: str(text) for key, text in metadata.items()})
    onnx.checker.check_model(model, full_check=True)
    return model


class _Graph:
    """The nodes, inputs and constants of a graph that is being written."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._constants: list[Any] = []
        self._names = itertools.count()

    def node(self, kind: str, inputs: list[str], output: str = "", **settings: Any) -> str:
        name = output or f"v{next(self._names)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **settings))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        name = f"c{next(self._names)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def rows(self, part: ObservationPart) -> str:
        """Add an input, and return it as flat and normalised rows. Double precision, as in training."""
        types = self._onnx.TensorProto
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(part.space.dtype)
        self._inputs.append(self._onnx.helper.make_tensor_value_info(part.name, kind, ["rows", *part.space.shape]))
        flat = self.node("Flatten", [part.name], axis=1)
        if part.mean is None or part.std is None:
            return self.node("Cast", [flat], to=types.FLOAT)
        wide = self.node("Cast", [flat], to=types.DOUBLE)
        centred = self.node("Sub", [wide, self.constant(part.mean)])
        scaled = self.node("Div", [centred, self.constant(part.std)])
        bounds = [self.constant(np.array(bound, dtype=np.float64)) for bound in (-part.clip, part.clip)]
        return self.node("Cast", [self.node("Clip", [scaled, *bounds])], to=types.FLOAT)

    def layer(self, value: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        return self.node("Gemm", [value, self.constant(weight), self.constant(bias)], transB=1)

    def activation(self, value: str, name: str) -> str:
        if name == "silu":
            return self.node("Mul", [value, self.node("Sigmoid", [value])])
        return self.node(_ACTIVATIONS[name], [value])

    def actions(self, value: str, policy: PolicyLayers) -> Any:
        """Add the action mapping, and return the description of the output."""
        space = policy.action_space
        types = self._onnx.TensorProto
        if policy.head in ("choices", "quantiles"):
            self._choices(value, space, is_quantiles=policy.head == "quantiles")
            shape = [] if isinstance(space, gym_spaces.Discrete) else list(space.shape or ())
            return self._onnx.helper.make_tensor_value_info(ACTION, types.INT64, ["rows", *shape])
        shape = list(space.shape or ())
        if policy.head == "bits":
            positive = self.node("Greater", [value, self.constant(np.zeros(1, dtype=np.float32))])
            self._shaped(self.node("Cast", [positive], to=types.INT8), shape)
            return self._onnx.helper.make_tensor_value_info(ACTION, types.INT8, ["rows", *shape])
        assert isinstance(space, gym_spaces.Box)
        self._shaped(self._numbers(value, space, is_squashed=policy.head == "squashed"), shape)
        return self._onnx.helper.make_tensor_value_info(ACTION, types.FLOAT, ["rows", *shape])

    def _numbers(self, value: str, space: gym_spaces.Box, *, is_squashed: bool) -> str:
        low = space.low.reshape(-1).astype(np.float32)
        high = space.high.reshape(-1).astype(np.float32)
        if not is_squashed:
            above = self.node("Max", [value, self.constant(low)])
            return self.node("Min", [above, self.constant(high)])
        one = self.constant(np.ones(1, dtype=np.float32))
        half = self.constant(np.full(1, 0.5, dtype=np.float32))
        share = self.node("Mul", [self.node("Add", [self.node("Tanh", [value]), one]), half])
        return self.node("Add", [self.node("Mul", [share, self.constant(high - low)]), self.constant(low)])

    def _choices(self, value: str, space: gym_spaces.Space[Any], *, is_quantiles: bool) -> None:
        sizes = spaces.choice_sizes(space)
        if is_quantiles:
            apart = self.node("Reshape", [value, self.constant(np.array([0, -1, sizes[0]], dtype=np.int64))])
            value = self.node("ReduceMean", [apart, self.constant(np.array([1], dtype=np.int64))], keepdims=0)
        start = np.asarray(getattr(space, "start", 0), dtype=np.int64).reshape(-1)
        if isinstance(space, gym_spaces.Discrete):
            best = self.node("ArgMax", [value], axis=1, keepdims=0)
            self.node("Add", [best, self.constant(start)], output=ACTION)
            return
        best_of = []
        ends = np.cumsum(sizes)
        for begin, end in zip(ends - sizes, ends, strict=True):
            ranges = [self.constant(np.array([number], dtype=np.int64)) for number in (begin, end, 1)]
            best_of.append(self.node("ArgMax", [self.node("Slice", [value, *ranges])], axis=1, keepdims=1))
        joined = self.node("Add", [self.node("Concat", best_of, axis=1), self.constant(start)])
        self._shaped(joined, list(space.shape or ()))

    def _shaped(self, value: str, shape: list[int]) -> None:
        self.node("Reshape", [value, self.constant(np.array([-1, *shape], dtype=np.int64))], output=ACTION)

    def model(self, output: Any, metadata: Mapping[str, str]) -> Any:
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "policy", self._inputs, [output], initializer=self._constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="rlx"
        )
        helper.set_model_props(model, dict(metadata))
        return model
