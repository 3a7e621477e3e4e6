from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto

from rlx.runs.readers.tensorboard import TensorboardReader
from rlx.runs.tensorboard_writer import EventWriter
from rlx.testing import ReaderContract


class TestTensorboard(ReaderContract):
    reader = TensorboardReader
    place = "tb"

    def write(self, path: Path, start: int, count: int) -> None:
        writer = EventFileWriter(str(path), filename_suffix=f".{start}")
        for row in range(start, start + count):
            score = {2: math.nan, 3: math.inf}.get(row, float(row))
            for tag, value in (("loss", row / 4), ("score", score)):
                summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
                writer.add_event(Event(step=100 * row, wall_time=1e9, summary=summary))
        writer.close()

    def file(self, path: Path) -> Path:
        return max(path.glob("*tfevents*"), default=path / "events.out.tfevents.1.host", key=lambda file: file.name)


def event(value: Summary.Value, step: int = 7) -> Event:
    return Event(step=step, summary=Summary(value=[value]))


def test_tensors_of_one_number_are_scalars_and_everything_else_is_left_out(tmp_path: Path) -> None:
    writer = EventFileWriter(str(tmp_path))
    kinds = {"float32": np.float32(1.5), "float64": np.float64(2.5), "int32": np.int32(-3), "int64": np.int64(4)}
    for tag, value in kinds.items():
        writer.add_event(event(Summary.Value(tag=tag, tensor=make_tensor_proto(value))))
    writer.add_event(event(Summary.Value(tag="vector", tensor=make_tensor_proto(np.arange(3.0)))))
    writer.add_event(event(Summary.Value(tag="text", tensor=make_tensor_proto("hello"))))
    writer.add_event(event(Summary.Value(tag="picture", image=Summary.Image(encoded_image_string=b"x" * 100))))
    writer.close()
    found = {name: value for point in TensorboardReader().read(tmp_path) for name, value in point.values.items()}
    assert found == {"float32": 1.5, "float64": 2.5, "int32": -3.0, "int64": 4.0}


def test_several_files_are_one_log_and_other_folders_are_told_apart(tmp_path: Path) -> None:
    for folder, step in (("PPO_1", 1), ("PPO_1", 2), ("PPO_1/eval", 3)):
        writer = EventWriter(tmp_path / folder)
        writer.write(step, {"return": float(step)}, wall_time=5.0)
        writer.close()
    points = TensorboardReader().read(tmp_path)
    assert [(point.step, dict(point.values), point.time) for point in points] == [
        (1, {"return": 1.0}, 5.0), (2, {"return": 2.0}, 5.0), (3, {"PPO_1/eval/return": 3.0}, 5.0),
    ]  # fmt: skip


def test_a_damaged_file_is_read_to_the_damage_and_named(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for step in range(5):
        writer.write(step, {"loss": 1.0})
    writer.close()
    content = bytearray(writer.path.read_bytes())
    content[-20] ^= 0xFF
    writer.path.write_bytes(content)
    reader = TensorboardReader()
    assert [point.step for point in reader.read(tmp_path)] == [0, 1, 2, 3]
    assert reader.damaged == [writer.path]


def test_neither_tensorflow_nor_tensorboard_is_needed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rlx.runs.readers.tensorboard import TensorboardReader as R;"
        f"R().read(Path({str(tmp_path)!r}));"
        "print([name for name in ('tensorboard', 'tensorflow', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
