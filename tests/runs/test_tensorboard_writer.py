from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlx.runs.tensorboard_writer import EventWriter


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()


def test_the_real_tensorboard_reads_every_scalar_with_step_and_wall_time(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path / "tb")
    for step in range(100):
        writer.write(step * 1000, {"rollout/return_mean": step * 0.5, "train/loss": -step}, wall_time=1e9 + step)
    writer.close()

    scalars = read(tmp_path / "tb").Scalars("rollout/return_mean")

    assert [(event.step, event.value) for event in scalars] == [(step * 1000, step * 0.5) for step in range(100)]
    assert scalars[3].wall_time == 1e9 + 3


def test_nan_and_infinity_survive_and_values_beyond_float32_become_infinite(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for step, value in enumerate([math.nan, math.inf, -math.inf, 1e300, -1e300]):
        writer.write(step, {"loss": value})
    writer.close()

    values = [event.value for event in read(tmp_path).Scalars("loss")]

    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, math.inf, -math.inf]


def test_names_and_steps_of_any_size_survive(tmp_path: Path) -> None:
    long_name = "train/" + "é" * 300
    writer = EventWriter(tmp_path)
    writer.write(2**40, {long_name: 1.0})
    writer.write(0, {long_name: 2.0})
    writer.close()

    assert [event.step for event in read(tmp_path).Scalars(long_name)] == [2**40, 0]


def test_two_writers_in_one_folder_write_two_files(tmp_path: Path) -> None:
    writers = [EventWriter(tmp_path) for _ in range(2)]
    for writer in writers:
        writer.write(1, {"loss": 1.0})
        writer.close()

    assert len({writer.path for writer in writers}) == 2


@pytest.mark.parametrize("cut", [1, 3, 20])
def test_a_file_cut_by_a_kill_is_read_up_to_the_cut(tmp_path: Path, cut: int) -> None:
    writer = EventWriter(tmp_path)
    for step in range(5):
        writer.write(step, {"loss": float(step)})
    writer.close()
    content = writer.path.read_bytes()
    writer.path.write_bytes(content[:-cut])

    assert [event.step for event in read(tmp_path).Scalars("loss")] == [0, 1, 2, 3]


def test_checksums_are_those_of_the_format(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    writer.close()
    length, length_crc = struct.unpack("<QI", writer.path.read_bytes()[:12])

    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    assert length_crc == masked_crc32c(struct.pack("<Q", length))
