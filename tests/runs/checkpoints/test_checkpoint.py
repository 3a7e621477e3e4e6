"""Checkpoints are whole or refused, whatever happens to the writer, the disk or the files."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx import files
from rlx.errors import CheckpointInvalid, NotFound
from rlx.runs.checkpoints import checkpoint
from rlx.runs.checkpoints.checkpoint import Bundle

MEMBERS = (
    "manifest.json",
    "policy.safetensors",
    "optimizer.safetensors",
    "state.json",
    "state.safetensors",
    "replay.safetensors",
)


def bundle(step: int = 5, **changes: Any) -> Bundle:
    made = Bundle(
        step=step,
        backend="sb3",
        algorithm="ppo",
        resume="exact",
        missing="",
        policy={"weight": np.full((2, 3), step, dtype=np.float32), "bias": np.array(0.5)},
        optimizer={"policy.optimizer/0/exp_avg": np.arange(6, dtype=np.float64)},
        state={"counter": 2**100, "noise": float("nan"), "last_obs": np.ones(3), "pair": (1, "x")},
        replay={"rewards": np.arange(4, dtype=np.float32)},
        spaces={"action": {"kind": "discrete", "n": 2}},
    )
    return replace(made, **changes)


def write(folder: Path, step: int = 5, *, name: str = "latest", **changes: Any) -> Path:
    return checkpoint.write(
        folder, bundle(step, **changes), name=name, config={"algo": {"name": "ppo"}, "clip": float("inf")}
    )


def reseal(path: Path, **changes: Any) -> None:
    """Rewrite the manifest as a careful forger would: hashes of the present files, digest valid."""
    manifest = json.loads((path / "manifest.json").read_bytes()) | changes
    for member, entry in manifest["files"].items():
        content = (path / member).read_bytes()
        entry.update(sha256=files.sha256(content), bytes=len(content))
    (path / "manifest.json").write_bytes(checkpoint._sealed(manifest))


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".") and path.name != ".write.lock")


def test_a_bundle_comes_back_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "checkpoints")
    found = checkpoint.read(path)
    assert (found.step, found.backend, found.algorithm, found.resume, found.missing) == (5, "sb3", "ppo", "exact", "")
    assert found.state["counter"] == 2**100
    assert np.isnan(found.state["noise"])
    assert found.state["pair"] == (1, "x")
    for mine, theirs in (
        (found.policy, bundle().policy),
        (found.optimizer, bundle().optimizer),
        (found.replay, bundle().replay),
    ):
        assert set(mine) == set(theirs)
        for key in mine:
            assert mine[key].dtype == theirs[key].dtype
            np.testing.assert_array_equal(mine[key], theirs[key])
    assert found.config == {"algo": {"name": "ppo"}, "clip": "Infinity"}
    assert found.spaces == bundle().spaces
    assert found.path == path
    assert found.manifest["versions"]["numpy"] == np.__version__
    assert set(os.listdir(path)) == set(MEMBERS)


def test_a_bundle_without_replay_has_no_replay_file(tmp_path: Path) -> None:
    path = write(tmp_path, replay={})
    assert not (path / "replay.safetensors").exists()
    assert checkpoint.read(path).replay == {}


def test_replay_can_be_left_unread(tmp_path: Path) -> None:
    assert checkpoint.read(write(tmp_path), with_replay=False).replay == {}


def test_writing_again_replaces_the_old_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, 5)
    assert checkpoint.read(write(tmp_path, 6)).step == 6
    assert leftovers(tmp_path) == []


def test_a_link_shares_files_leaves_the_replay_out_and_says_so(tmp_path: Path) -> None:
    write(tmp_path)
    best = checkpoint.read(checkpoint.link(tmp_path, "latest", "best"))
    assert (best.replay, best.resume, best.missing) == ({}, "warm", "replay buffer")
    assert (tmp_path / "best/policy.safetensors").samefile(tmp_path / "latest/policy.safetensors")
    write(tmp_path, 6)
    assert checkpoint.read(tmp_path / "best").step == 5


def test_a_link_of_a_checkpoint_without_replay_keeps_its_label(tmp_path: Path) -> None:
    write(tmp_path, replay={})
    assert checkpoint.read(checkpoint.link(tmp_path, "latest", "best")).resume == "exact"


def test_a_link_is_a_copy_where_the_disk_has_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)

    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert checkpoint.read(checkpoint.link(tmp_path, "latest", "best")).step == 5
    assert not (tmp_path / "best/policy.safetensors").samefile(tmp_path / "latest/policy.safetensors")


def test_a_bundle_without_its_replay_says_what_is_missing() -> None:
    assert bundle(replay={}).without_replay().resume == "exact"
    stripped = bundle(resume="boundary", missing="env state").without_replay()
    assert (stripped.replay, stripped.resume, stripped.missing) == ({}, "warm", "replay buffer, env state")


def test_names_are_in_order_and_read_nothing(tmp_path: Path) -> None:
    assert checkpoint.names(tmp_path / "absent") == []
    write(tmp_path)
    for name in ("step_1000", "step_200", "best"):
        checkpoint.link(tmp_path, "latest", name)
    (tmp_path / ".step_7.1.tmp").mkdir()
    (tmp_path / "a file").touch()
    assert checkpoint.names(tmp_path) == ["step_200", "step_1000", "best", "latest"]


def test_names_needs_no_numpy() -> None:
    code = "import sys, pathlib; from rlx.runs.checkpoints import checkpoint; checkpoint.names(pathlib.Path()); "
    code += "assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_prune_keeps_the_newest_steps_and_the_named_ones(tmp_path: Path) -> None:
    write(tmp_path)
    for name in ("step_1000", "step_200", "step_30", "best"):
        checkpoint.link(tmp_path, "latest", name)
    checkpoint.prune(tmp_path, keep=2)
    assert checkpoint.names(tmp_path) == ["step_200", "step_1000", "best", "latest"]
    checkpoint.prune(tmp_path, keep=0)
    assert checkpoint.names(tmp_path) == ["best", "latest"]
    assert leftovers(tmp_path) == []


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    for name in ("../latest", ".hidden", "", "a/b"):
        with pytest.raises(ValueError, match="cannot be named"):
            write(tmp_path, name=name)


def test_newest_is_the_highest_step_and_prefers_latest(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "absent") is None
    write(tmp_path, 7)
    checkpoint.link(tmp_path, "latest", "step_7")
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert (found.path.name, found.skipped) == ("latest", ())
    write(tmp_path, 3)
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.path.name == "step_7"


def test_newest_falls_back_to_an_older_one_and_says_why(tmp_path: Path) -> None:
    write(tmp_path, 3, name="step_3")
    write(tmp_path, 5, name="step_5")
    write(tmp_path, 7)
    with (tmp_path / "latest/policy.safetensors").open("r+b") as stream:
        stream.truncate(10)
    (tmp_path / "step_5/manifest.json").write_bytes(b"{}")
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.path.name == "step_3"
    assert len(found.skipped) == 2
    assert any("latest: policy.safetensors has 10 bytes" in reason for reason in found.skipped)
    assert any("step_5: manifest.json has the schema None" in reason for reason in found.skipped)


def test_newest_refuses_where_nothing_is_left_to_use(tmp_path: Path) -> None:
    (write(tmp_path) / "state.json").unlink()
    with pytest.raises(CheckpointInvalid, match=r"state\.json is missing") as caught:
        checkpoint.newest(tmp_path)
    assert caught.value.hint


def test_no_checkpoint_is_not_found_with_what_there_is(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(NotFound) as caught:
        checkpoint.read(tmp_path / "best")
    assert caught.value.hint == "there are: latest"
    (tmp_path / "file").touch()
    with pytest.raises(NotFound, match="is not a checkpoint"):
        checkpoint.read(tmp_path / "file")


@pytest.mark.parametrize("member", MEMBERS)
def test_an_altered_byte_anywhere_is_refused(tmp_path: Path, member: str) -> None:
    path = write(tmp_path)
    content = (path / member).read_bytes()
    for position in range(0, len(content), max(1, len(content) // 60)):
        altered = bytearray(content)
        altered[position] ^= 0x01
        (path / member).write_bytes(altered)
        with pytest.raises(CheckpointInvalid):
            checkpoint.read(path)
    (path / member).write_bytes(content)
    assert checkpoint.read(path).step == 5


def test_white_space_added_to_the_manifest_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    manifest = path / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    with pytest.raises(CheckpointInvalid, match="was altered"):
        checkpoint.read(path)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_truncated_or_missing_file_is_refused(tmp_path: Path, member: str) -> None:
    path = write(tmp_path)
    content = (path / member).read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        (path / member).write_bytes(content[:size])
        with pytest.raises(CheckpointInvalid):
            checkpoint.read(path)
    (path / member).unlink()
    with pytest.raises(CheckpointInvalid, match=f"{member} is missing"):
        checkpoint.read(path)


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize("member", ["payload.pkl", "policy.pth", "data.pkl", *MEMBERS])
def test_a_planted_pickle_is_refused_and_never_runs(tmp_path: Path, member: str) -> None:
    path, marker = write(tmp_path / "checkpoints"), tmp_path / "it ran"
    (path / member).write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(CheckpointInvalid) as caught:
        checkpoint.read(path)
    assert member in caught.value.message
    assert caught.value.hint
    if member != "manifest.json" and member in MEMBERS:
        reseal(path)
        with pytest.raises(CheckpointInvalid, match=member):
            checkpoint.read(path)
    assert not marker.exists()


def test_a_member_the_manifest_names_on_top_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path / "extra.safetensors").write_bytes((path / "policy.safetensors").read_bytes())
    manifest = json.loads((path / "manifest.json").read_bytes())
    reseal(path, files={**manifest["files"], "extra.safetensors": {}})
    with pytest.raises(CheckpointInvalid, match="lists the members"):
        checkpoint.read(path)


def test_a_member_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["files"]["../../secret"] = {"sha256": "0" * 64, "bytes": 1}
    (path / "manifest.json").write_bytes(checkpoint._sealed(manifest))
    with pytest.raises(CheckpointInvalid, match="lists the members"):
        checkpoint.read(path)


def test_a_huge_header_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path / "policy.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    reseal(path)
    with pytest.raises(CheckpointInvalid, match="its header claims"):
        checkpoint.read(path)


def test_a_file_larger_than_allowed_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    os.truncate(path / "manifest.json", 2**40)  # sparse: takes no space
    with pytest.raises(CheckpointInvalid, match="are allowed"):
        checkpoint.read(path)


def test_a_link_or_a_pipe_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "checkpoints")
    shutil.move(path / "state.json", tmp_path / "outside.json")
    (path / "state.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(CheckpointInvalid, match=r"state\.json cannot be opened"):
        checkpoint.read(path)
    (path / "state.json").unlink()
    os.mkfifo(path / "state.json")
    with pytest.raises(CheckpointInvalid, match="is not a file"):
        checkpoint.read(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"step": "5"},
        {"step": True},
        {"resume": {"label": "perfect", "missing": ""}},
        {"resume": {"label": "exact"}},
        {"config": []},
        {"schema": 2},
    ],
    ids=str,
)
def test_a_manifest_with_senseless_fields_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = write(tmp_path)
    reseal(path, **changes)
    with pytest.raises(CheckpointInvalid, match=r"manifest\.json"):
        checkpoint.read(path)


def test_a_state_that_builds_more_than_plain_values_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path / "state.json").write_bytes(b'{"x": {"$object": "os.system"}}')
    reseal(path)
    with pytest.raises(CheckpointInvalid, match=r"state\.json unknown kind of value"):
        checkpoint.read(path)


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two-renames"])
def test_readers_never_see_a_torn_checkpoint_while_a_writer_replaces_it(
    tmp_path: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    write(tmp_path, 0)
    done = threading.Event()

    def keep_writing() -> None:
        for step in range(1, 60):
            write(tmp_path, step)
        done.set()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    steps = []
    while not done.is_set():
        found = checkpoint.read(tmp_path / "latest")
        assert found.policy["weight"][0, 0] == found.step
        steps.append(found.step)
    writer.join()
    assert steps == sorted(steps)
    assert checkpoint.read(tmp_path / "latest").step == 59


def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    real = os.write
    failing_at = 0
    while True:
        failing_at += 1
        calls = 0

        def full(descriptor: int, content: Any) -> int:
            nonlocal calls
            calls += 1
            if calls == failing_at:  # noqa: B023
                real(descriptor, memoryview(content)[: len(content) // 2])
                raise OSError(28, "No space left on device")
            return real(descriptor, content)

        monkeypatch.setattr(os, "write", full)
        try:
            write(tmp_path, 2)
        except OSError:
            monkeypatch.setattr(os, "write", real)
            assert checkpoint.read(tmp_path / "latest").step == 1
            assert leftovers(tmp_path) == []
        else:
            break
    monkeypatch.setattr(os, "write", real)
    assert failing_at > 10
    assert checkpoint.read(tmp_path / "latest").step == 2


KILLED = """
import os, sys, pathlib
import numpy as np
from rlx.runs.checkpoints import checkpoint
folder = pathlib.Path(sys.argv[1])

def write(step):
    policy, replay = {"w": np.full(3, step)}, {"r": np.zeros(3)}
    made = checkpoint.Bundle(step, "sb3", "ppo", "exact", "", policy, {}, {"step": step}, replay, {})
    checkpoint.write(folder, made, name="latest", config={})

def crash_at(count):
    left = count
    for name in ("fsync", "rename", "mkdir", "rmdir", "unlink", "write"):
        def counted(*args, _real=getattr(os, name), **kwargs):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), 9)
            return _real(*args, **kwargs)
        setattr(os, name, counted)

write(1)
for count in range(1, 200):
    child = os.fork()
    if child == 0:
        crash_at(count)
        write(1 + count)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
    found = checkpoint.newest(folder)
    assert found.step == found.state["step"] == found.policy["w"][0], count
    assert found.step in (before, 1 + count) if count > 1 else True, (count, found.step)
    before = found.step
assert count > 20, count
assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == [".write.lock"], list(folder.iterdir())
"""


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two-renames"])
def test_a_writer_killed_anywhere_leaves_the_old_or_the_new_and_the_next_one_tidies_up(
    tmp_path: Path, exchange: bool
) -> None:
    code = KILLED if exchange else "from rlx import files\nfiles._exchange = lambda one, other: False\n" + KILLED
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_a_file_that_grows_past_the_limit_of_the_disk_is_a_clean_error(tmp_path: Path) -> None:
    code = """
import resource, sys, pathlib
import numpy as np
from rlx.runs.checkpoints import checkpoint
def write(size):
    made = checkpoint.Bundle(size, "sb3", "ppo", "exact", "", {"w": np.zeros(size)}, {}, {}, {}, {})
    checkpoint.write(pathlib.Path(sys.argv[1]), made, name="latest", config={})
write(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write(100_000)
except OSError as error:
    print(error.strerror)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "File too large"
    assert checkpoint.read(tmp_path / "latest").step == 1
    assert leftovers(tmp_path) == []
