from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx import files
from rlx.errors import Refused, RlxError, UsageError
from rlx.runs import process, store
from rlx.runs.run import Run

MakeRun = Callable[..., Run]
context = multiprocessing.get_context("fork")


def create(root: Path, name: str = "demo") -> Run:
    return store.create(root, name=name, snapshot="env: x\n", metadata={"env": "x"}, seeds=[0, 3])


def test_a_created_run_is_whole(tmp_path: Path) -> None:
    run = create(tmp_path)

    assert sorted(os.listdir(run.path)) == [".folder", "config_snapshot.yaml", "metadata.json", "seed_0", "seed_3"]
    assert run.metadata["name"] == run.name == "demo_001"
    assert run.metadata["schema"] == 1
    assert os.listdir(tmp_path / "runs") == ["demo_001"]


def test_numbers_go_on_past_999_and_names_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "runs" / "demo_999").mkdir(parents=True)
    (tmp_path / "runs" / "demo_big_5000").mkdir()
    (tmp_path / "runs" / "demo_12").mkdir()

    assert [create(tmp_path).name for _ in range(2)] == ["demo_1000", "demo_1001"]
    assert create(tmp_path, "demo_big").name == "demo_big_5001"


def test_a_file_in_the_way_takes_a_number_too(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "demo_001").write_text("not a run")

    assert create(tmp_path).name == "demo_002"


def test_an_empty_folder_in_the_way_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "runs" / "demo_001").mkdir(parents=True)

    assert create(tmp_path).name == "demo_002"
    assert os.listdir(tmp_path / "runs" / "demo_001") == []


def _create_many(root: Path, count: int, names: multiprocessing.Queue[list[str]]) -> None:
    names.put([create(root).name for _ in range(count)])


def test_eight_processes_creating_runs_never_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "runs" / "demo_900").mkdir(parents=True)
    names: multiprocessing.Queue[list[str]] = context.Queue()
    creators = [context.Process(target=_create_many, args=(tmp_path, 20, names)) for _ in range(8)]
    for creator in creators:
        creator.start()
    made = [name for _ in creators for name in names.get(timeout=120)]
    for creator in creators:
        creator.join()

    assert [creator.exitcode for creator in creators] == [0] * 8
    assert len(set(made)) == 160
    assert sorted(int(name.removeprefix("demo_")) for name in made) == list(range(901, 1061))
    for name in made:
        assert Run(tmp_path / "runs" / name).metadata["name"] == name
    assert not [name for name in os.listdir(tmp_path / "runs") if name.startswith(".")]


def _tag_often(path: Path, tagger: int, count: int) -> None:
    for number in range(count):
        store.tag(Run(path), f"t{tagger}-{number}")


def _read_until(path: Path, done: multiprocessing.synchronize.Event, seen: multiprocessing.Queue[list[int]]) -> None:
    counts = []
    while not done.is_set():
        content = (path / "labels.json").read_bytes() if (path / "labels.json").exists() else b'{"tags": []}'
        counts.append(len(json.loads(content)["tags"]))
    seen.put(counts)


def test_three_processes_tagging_one_run_lose_nothing_and_readers_never_see_half_a_file(tmp_path: Path) -> None:
    run = create(tmp_path)
    done, seen = context.Event(), context.Queue()
    reader = context.Process(target=_read_until, args=(run.path, done, seen))
    taggers = [context.Process(target=_tag_often, args=(run.path, tagger, 200)) for tagger in range(3)]
    for worker in (reader, *taggers):
        worker.start()
    for tagger in taggers:
        tagger.join()
    done.set()
    counts = seen.get(timeout=60)
    reader.join()

    assert len(Run(run.path).tags) == 600
    assert counts == sorted(counts)
    assert reader.exitcode == 0
    assert not [name for name in os.listdir(run.path) if name.endswith(".tmp")]


def test_tags_are_kept_once_in_order_and_removed_by_name(make_run: MakeRun) -> None:
    run = store.tag(store.tag(make_run(), "b", "a"), "a", "c")
    assert run.tags == ("b", "a", "c")

    assert store.untag(run, "a", "b").tags == ("c",)
    with pytest.raises(UsageError, match="is not tagged `a`"):
        store.untag(run, "c", "a")
    assert Run(run.path).tags == ("c",)


def test_notes_are_replaced_and_tags_stay(make_run: MakeRun) -> None:
    run = store.note(store.note(store.tag(make_run(), "x"), "first"), "second\nline é")

    assert (run.note, run.tags) == ("second\nline é", ("x",))


def test_added_seeds_are_prepared_and_a_seed_is_never_added_twice(make_run: MakeRun) -> None:
    run = store.add_seeds(make_run(), [5, 6])
    assert [seed.number for seed in run.seeds] == [0, 5, 6]

    with pytest.raises(UsageError, match="already has seed 5"):
        store.add_seeds(run, [5])


def test_a_deleted_run_is_gone_and_its_number_is_not_given_again_while_later_ones_stand(tmp_path: Path) -> None:
    first, second = create(tmp_path), create(tmp_path)
    store.delete(first)

    assert os.listdir(tmp_path / "runs") == [second.name]
    assert create(tmp_path).name == "demo_003"


def test_a_training_run_is_not_deleted(make_run: MakeRun) -> None:
    run = make_run(state="running")
    with pytest.raises(Refused, match="is training"):
        store.delete(run)

    assert run.path.exists()


def test_an_evaluation_is_kept_and_moves_the_run_folders_time(make_run: MakeRun) -> None:
    run = make_run()
    os.utime(run.path, (1e9, 1e9))
    path = store.save_evaluation(run.path, "f", "seed_0_latest", {"mean": float("nan")})

    assert files.read_json(path) == {"schema": 1, "mean": "NaN"}
    assert run.path.stat().st_mtime > 1e9


def test_what_killed_creators_left_is_swept_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".new-1-a", ".gone-demo_001-b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    create(tmp_path)
    assert len(os.listdir(tmp_path / "runs")) == 3

    tomorrow = store.time.time() + 90_000
    monkeypatch.setattr(store.time, "time", lambda: tomorrow)
    create(tmp_path)
    assert sorted(os.listdir(tmp_path / "runs")) == ["demo_001", "demo_002"]


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file is in the way")
    with pytest.raises(RlxError, match=r"cannot write to .*runs"):
        create(tmp_path)


def test_a_name_that_is_not_utf8_in_the_identity_is_escaped(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.yaml")
    run = store.create(tmp_path, name="demo", snapshot="", metadata={"argv": ["rlx", "train", odd]}, seeds=[])

    assert run.metadata["argv"][2] == "caf\\udce9.yaml"


def test_the_living_process_of_a_running_seed_is_this_one(make_run: MakeRun) -> None:
    (seed,) = make_run(state="running").seeds

    assert seed.status.state == "running"
    assert seed.events[0]["process"]["pid"] == process.current().pid
