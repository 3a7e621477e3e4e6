"""What a seed's processes write is read back; what anybody else writes there is told as damage."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rlx import files
from rlx.runs import untrusted_rows
from rlx.runs.live import LiveSeed
from rlx.runs.run import Seed


def test_all_that_a_live_seed_writes_in_a_repository_is_sound(tmp_path: Path) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for words in (("init", "-q"), ("commit", "-qm", "first", "--allow-empty")):
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)
    (tmp_path / "untracked.py").touch()
    folder = tmp_path / "runs" / "walk_001" / "seed_0"
    folder.mkdir(parents=True)
    live = LiveSeed(folder, root=tmp_path)
    live.log(10, {"loss": float("nan")})
    live.log_resume(0)
    live.event("evaluated", step=10, mean=float("inf"), is_best=True)
    live.event("resumed", step=10, label="exact", missing="", checkpoint="latest")
    live.failed(ValueError("two\nlines"), step=10)
    live.close()
    seed = Seed(0, folder)
    assert seed.damage == ""
    assert [event["event"] for event in seed.events] == ["started", "evaluated", "resumed", "failed"]
    assert seed.attempts[0]["git"]["untracked"] == ["untracked.py"]


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("events.jsonl", b"5", "a row is not an object"),
        ("events.jsonl", b'{"time": 1}', "a row has no `event`"),
        ("events.jsonl", b'{"event": "completed", "time": 1e400}', "number"),
        ("events.jsonl", b'{"event": "evaluated", "time": 1, "step": 3}', "a row has no `mean`"),
        ("events.jsonl", b'{"event": "failed", "time": 1, "reason": ["x"]}', "`reason` has a wrong type or value"),
        ("attempts.jsonl", b'{"time": 1, "git": 5}', "`git` has a wrong type or value"),
        ("metrics.jsonl", b'{"step": true}', "`step` has a wrong type or value"),
        ("metrics.jsonl", b'{"step": 1e300}', "`step` has a wrong type or value"),
        ("metrics.jsonl", b"\xff", "has a bad line"),
    ],
)
def test_a_row_of_another_shape_is_damage_and_the_rows_before_it_stand(
    tmp_path: Path, name: str, line: bytes, says: str
) -> None:
    good = {"event": "started", "time": 1.0, "step": 1}
    (tmp_path / name).write_bytes(files.encode(good) + b"\n" + line + b"\n" + files.encode(good) + b"\n")
    found = untrusted_rows.read(tmp_path / name)
    assert found.sound == [good]
    assert name in found.damage
    assert says in found.damage
