from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rlx
from rlx import files
from rlx.errors import UsageError
from rlx.runs import index, store, summary
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run

MakeRun = Callable[..., Run]
LONG_AGO = 1_000_000_000.0


def settle(run: Run, *, changes: int = 0) -> Run:
    """Make the folder's last change older than the clock's grain, so that its row may be stored.

    A folder that changes while others list it needs another time for every change, as a real folder has.
    """
    os.utime(run.path, (LONG_AGO + changes, LONG_AGO + changes))
    return run


def names(root: Path, **query: object) -> list[str]:
    return [row["name"] for row in index.summaries(root, **query).rows]  # type: ignore[arg-type]


def rows(root: Path) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in index.summaries(root).rows}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs whose folders were read."""
    read: list[str] = []
    genuine = summary.summarize

    def summarize(path: Path) -> dict[str, object]:
        read.append(path.name)
        return genuine(path)

    monkeypatch.setattr(summary, "summarize", summarize)
    return read


def test_lists_nothing_and_makes_nothing_where_there_are_no_runs(tmp_path: Path) -> None:
    assert index.summaries(tmp_path).rows == []
    (tmp_path / "runs").mkdir()
    assert index.summaries(tmp_path).total == 0
    assert not (tmp_path / ".rlx").exists()


def test_newest_run_comes_first(tmp_path: Path, make_run: MakeRun) -> None:
    made = [make_run().name for _ in range(3)]

    assert names(tmp_path) == made[::-1]


@pytest.mark.parametrize("state", ["completed", "failed", "interrupted", "prepared", "lost"])
def test_a_run_that_only_its_folder_can_change_is_read_once(
    tmp_path: Path, make_run: MakeRun, reads: list[str], state: str
) -> None:
    settle(make_run(state=state))
    for _ in range(3):
        assert [row["status"] for row in index.summaries(tmp_path).rows] == [state]

    assert len(reads) == 1


@pytest.mark.parametrize("state", ["running", "lost elsewhere", "broken"])
def test_a_run_that_may_change_by_itself_is_read_every_time(
    tmp_path: Path, make_run: MakeRun, reads: list[str], state: str
) -> None:
    run = make_run(state="lost" if state == "lost elsewhere" else "running")
    if state == "lost elsewhere":
        events = run.path / "seed_0" / "events.jsonl"
        events.write_bytes(events.read_bytes().replace(b'"place":"', b'"place":"elsewhere '))
    if state == "broken":
        (run.path / "metadata.json").write_bytes(b"{")
    settle(run)
    for _ in range(3):
        names(tmp_path)

    assert len(reads) == 3


def test_a_prepared_run_that_starts_by_itself_is_noticed(tmp_path: Path, make_run: MakeRun) -> None:
    run = settle(make_run(state="prepared"))
    assert rows(tmp_path)[run.name]["status"] == "prepared"

    live = LiveSeed(run.path / "seed_0", root=tmp_path)
    assert rows(tmp_path)[run.name]["status"] == "running"
    settle(run)
    assert rows(tmp_path)[run.name]["status"] == "running"
    live.completed(100)
    live.close()
    assert rows(tmp_path)[run.name]["status"] == "completed"


def test_a_run_that_changed_a_moment_ago_is_not_trusted_yet(
    tmp_path: Path, make_run: MakeRun, reads: list[str]
) -> None:
    make_run()
    names(tmp_path)
    names(tmp_path)

    assert len(reads) == 2


def test_notices_tags_notes_added_seeds_and_evaluations(tmp_path: Path, make_run: MakeRun) -> None:
    run = settle(make_run())
    assert rows(tmp_path)[run.name]["tags"] == []

    store.tag(run, "baseline")
    assert rows(tmp_path)[run.name]["tags"] == ["baseline"]
    settle(run)
    store.note(run, "nice")
    assert rows(tmp_path)[run.name]["note"] == "nice"
    os.utime(run.path, (LONG_AGO + 1, LONG_AGO + 1))
    store.add_seeds(run, [7])
    assert rows(tmp_path)[run.name]["seeds"] == 2
    shutil.rmtree(run.path / "seed_7")
    for step, mean in enumerate([1.0, 2.0]):
        os.utime(run.path, (LONG_AGO + 2 + step, LONG_AGO + 2 + step))
        rows(tmp_path)
        store.save_evaluation(run.path, "f1", "seed_0_latest", {"purpose": "report", "mean": mean})
        assert rows(tmp_path)[run.name]["return"]["mean"] == mean  # type: ignore[index]


def test_notices_deleted_renamed_and_copied_runs(tmp_path: Path, make_run: MakeRun) -> None:
    first, second, third = (settle(make_run()) for _ in range(3))
    names(tmp_path)

    store.delete(first)
    second.path.rename(second.path.with_name("renamed_001"))
    shutil.copytree(third.path, third.path.with_name("copied_001"))

    assert sorted(names(tmp_path)) == ["cartpole_003", "copied_001", "renamed_001"]


def test_notices_a_folder_replaced_by_another_with_the_same_name_and_time(tmp_path: Path, make_run: MakeRun) -> None:
    run = settle(make_run())
    rows(tmp_path)
    other = settle(make_run(root=tmp_path / "elsewhere", env="Acrobot-v1"))
    shutil.rmtree(run.path)
    other.path.rename(run.path)
    settle(run)

    assert rows(tmp_path)[run.name]["env"] == "Acrobot-v1"


def test_index_survives_moving_the_project(tmp_path: Path, make_run: MakeRun, reads: list[str]) -> None:
    settle(make_run(root=tmp_path / "here"))
    names(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there with spaces")

    assert names(tmp_path / "there with spaces") == ["cartpole_001"]
    assert len(reads) == 1


@pytest.mark.parametrize("damage", ["deleted", "empty", "garbage", "torn", "foreign", "old version", "no table"])
def test_a_damaged_index_is_rebuilt_with_the_same_rows(tmp_path: Path, make_run: MakeRun, damage: str) -> None:
    for _ in range(30):
        settle(make_run())
    before = rows(tmp_path)
    path = tmp_path / ".rlx" / "index.db"
    content = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "garbage":
        path.write_bytes(b"no database" * 500)
    elif damage == "torn":
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    else:
        connection = sqlite3.connect(path)
        connection.executescript(
            {
                "foreign": "DROP TABLE run; CREATE TABLE run (x)",
                "old version": "DROP TABLE run; CREATE TABLE run (x); PRAGMA user_version = 99",
                "no table": "DROP TABLE run",
            }[damage]
        )
        connection.close()

    assert rows(tmp_path) == before
    assert rows(tmp_path) == before
    assert sqlite3.connect(path).execute("SELECT count(*) FROM run").fetchone() == (30,)


def test_lists_from_memory_where_no_index_can_be_written(tmp_path: Path, make_run: MakeRun) -> None:
    settle(make_run())
    (tmp_path / ".rlx").write_text("a file is in the way")

    assert names(tmp_path) == ["cartpole_001"]


def test_lists_from_a_copy_while_somebody_holds_the_index(
    tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    settle(make_run())
    names(tmp_path)
    settle(make_run("second"))
    monkeypatch.setattr(index, "BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(tmp_path / ".rlx" / "index.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    assert names(tmp_path) == ["second_001", "cartpole_001"]
    assert "cartpole_001" not in reads[1:]

    holder.execute("COMMIT")
    holder.execute("BEGIN EXCLUSIVE")
    assert names(tmp_path) == ["second_001", "cartpole_001"]
    holder.close()


def test_lists_a_project_on_a_read_only_disk(tmp_path: Path, make_run: MakeRun) -> None:
    settle(make_run())
    names(tmp_path)
    settle(make_run("second"))
    code = (
        f"from rlx.runs import index; from pathlib import Path; print(index.summaries(Path({str(tmp_path)!r})).total)"
    )
    script = (
        f'mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path} && exec {sys.executable} -c "$0"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, code], capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")

    assert done.stdout.strip() == "2", done.stderr


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("metadata.json", b'{"schema": 1, "na', "metadata.json is not valid JSON"),
        ("metadata.json", b"", "metadata.json is not valid JSON"),
        ("metadata.json", b"[1]", "metadata.json does not describe a run"),
        ("metadata.json", None, "metadata.json"),
        ("labels.json", b'{"tags": [', "labels.json is not valid JSON"),
        ("labels.json", b"[]", "does not hold tags"),
        ("supervisor.json", b"{", None),
    ],
)
def test_a_broken_run_is_listed_with_its_reason(
    tmp_path: Path, make_run: MakeRun, name: str, content: bytes | None, reason: str | None
) -> None:
    sound, broken = settle(make_run()), settle(make_run())
    path = broken.path / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)

    found = rows(tmp_path)

    assert found[sound.name]["status"] == "completed"
    assert found[broken.name]["status"] == ("broken" if reason else "completed")
    assert reason is None or reason in str(found[broken.name]["reason"])


@pytest.mark.parametrize(
    ("name", "content", "status", "reason"),
    [
        ("events.jsonl", b'{"event": \n{"event": "completed"}\n', "failed", "seed_0/events.jsonl has a bad line"),
        ("events.jsonl", None, "failed", "seed_0/events.jsonl is not a plain file"),
        ("metrics.jsonl", b"\x00\x00\n", "completed", "seed_0/metrics.jsonl is damaged"),
        (
            "metrics.jsonl",
            b'{"step": "x"}\n',
            "completed",
            "seed_0/metrics.jsonl has a bad line: `step` has a wrong type or value",
        ),
        ("metrics.jsonl", None, "completed", "seed_0/metrics.jsonl is not a plain file"),
    ],
)
def test_a_damaged_file_of_one_seed_is_named_and_the_others_are_told(
    tmp_path: Path, make_run: MakeRun, name: str, content: bytes | None, status: str, reason: str
) -> None:
    run = settle(make_run(seeds={0: [1.0], 1: [3.0]}))
    path = run.path / "seed_0" / name
    path.unlink()
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)

    found = rows(tmp_path)[run.name]

    assert (found["status"], found["seeds"]) == (status, 2)
    assert reason in found["reason"]
    assert found["return"]["best"] == 3.0


def test_a_broken_run_that_is_mended_is_listed_as_it_is(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run()
    path = run.path / "metadata.json"
    content = path.read_bytes()
    path.write_bytes(content[:20])
    settle(run)
    assert rows(tmp_path)[run.name]["status"] == "broken"
    path.write_bytes(content)
    settle(run)

    assert rows(tmp_path)[run.name]["status"] == "completed"


def test_other_folders_and_files_in_runs_are_not_runs(tmp_path: Path, make_run: MakeRun) -> None:
    settle(make_run())
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / ".new-12-ab").mkdir()
    (tmp_path / "runs" / "README").write_text("hello")

    assert names(tmp_path) == ["cartpole_001"]


def test_a_folder_whose_name_is_not_utf8_is_listed_as_broken(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run()
    os.rename(run.path, os.fsencode(tmp_path / "runs") + b"/caf\xe9_001")

    (row,) = index.summaries(tmp_path).rows

    assert row["status"] == "broken"
    assert row["name"] == "caf\\udce9_001"


def test_a_project_whose_path_is_not_utf8_has_an_index(tmp_path: Path, make_run: MakeRun) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    settle(make_run(root=place))

    assert names(place) == ["cartpole_001"]
    assert (place / ".rlx" / "index.db").exists()


def test_filters(tmp_path: Path, make_run: MakeRun) -> None:
    make_run("cartpole", algo="ppo")
    make_run("cartpole_dqn", algo="dqn", state="failed", reason="boom")
    store.tag(make_run("pend", env="Pendulum-v1", algo="recurrent_ppo"), "good", "run two")

    assert names(tmp_path, env="cartpole") == ["cartpole_dqn_001", "cartpole_001"]
    assert names(tmp_path, algo="PPO") == ["cartpole_001"]
    assert names(tmp_path, algo="recurrent-ppo") == ["pend_001"]
    assert names(tmp_path, status="failed") == ["cartpole_dqn_001"]
    assert names(tmp_path, tag="good") == names(tmp_path, tag="run two") == ["pend_001"]
    assert names(tmp_path, tag="goo") == []
    assert names(tmp_path, name="dqn") == ["cartpole_dqn_001"]
    assert names(tmp_path, name="cartpole_0*") == ["cartpole_001"]
    assert names(tmp_path, name="%' OR 1") == []


def test_sorts_with_runs_that_lack_the_value_last(tmp_path: Path, make_run: MakeRun) -> None:
    for number, final in enumerate([5.0, 50.0, -1.0]):
        make_run(f"r{number}", seeds={0: [final]})
    make_run("none", seeds={0: []})

    assert names(tmp_path, sort="return") == ["r1_001", "r0_001", "r2_001", "none_001"]
    assert names(tmp_path, sort="return", reverse=True) == ["r2_001", "r0_001", "r1_001", "none_001"]
    assert names(tmp_path, sort="name") == ["none_001", "r0_001", "r1_001", "r2_001"]
    assert names(tmp_path, sort="created", reverse=True) == ["r0_001", "r1_001", "r2_001", "none_001"]


def test_pages_and_says_how_many_there_are(tmp_path: Path, make_run: MakeRun) -> None:
    made = [make_run().name for _ in range(5)]
    page = index.summaries(tmp_path, limit=2, offset=1)

    assert [row["name"] for row in page.rows] == [made[3], made[2]]
    assert page.total == 5


def test_refuses_an_unknown_status_and_sort_key_with_the_near_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as status:
        index.summaries(tmp_path, status="complete")
    with pytest.raises(UsageError) as sort:
        index.summaries(tmp_path, sort="retrun")

    assert status.value.hint == "did you mean `completed`?"
    assert sort.value.hint == "did you mean `return`?"


def test_non_finite_returns_are_kept(tmp_path: Path, make_run: MakeRun) -> None:
    settle(make_run(seeds={0: [float("nan")], 1: [1.0]}))

    for _ in range(2):
        (row,) = index.summaries(tmp_path).rows
        assert row["return"]["mean"] == "NaN"


def test_find_returns_readable_runs_of_the_project_around(
    tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run("a", algo="dqn")
    store.tag(make_run("b"), "keep")
    (make_run("c").path / "metadata.json").write_bytes(b"{")
    monkeypatch.delenv("RLX_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)

    assert [run.name for run in rlx.find()] == ["b_001", "a_001"]
    assert [run.name for run in rlx.find(algo="dqn")] == ["a_001"]
    (tagged,) = rlx.find(tag="keep")
    assert tagged.tags == ("keep",)


def _list_often(root: Path, count: int, results: multiprocessing.Queue[list[int]]) -> None:
    results.put([index.summaries(root).total for _ in range(count)])


def test_several_processes_may_list_at_once(tmp_path: Path, make_run: MakeRun) -> None:
    for _ in range(20):
        settle(make_run())
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_list_often, args=(tmp_path, 20, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for number in range(20):
        run = Run(tmp_path / "runs" / f"cartpole_{number + 1:03d}")
        store.tag(run, f"t{number}")
        settle(run, changes=1)
    totals = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()

    assert totals == [[20] * 20] * 4
    assert all(row["tags"] for row in rows(tmp_path).values())


def test_a_warm_list_imports_nothing_heavy_and_no_json_library(tmp_path: Path, make_run: MakeRun) -> None:
    settle(make_run())
    names(tmp_path)
    code = (
        "import sys; from pathlib import Path; from rlx.runs import index;"
        f"index.summaries(Path({str(tmp_path)!r})); import json; print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))

    assert not loaded & {"numpy", "torch", "gymnasium", "matplotlib", "pydantic", "yaml", "orjson", "dataclasses"}


def test_what_is_stored_equals_what_is_read(tmp_path: Path, make_run: MakeRun) -> None:
    run = settle(make_run(seeds={0: [1.0], 1: [3.0]}))
    first = rows(tmp_path)
    stored = rows(tmp_path)

    described = summary.summarize(run.path)
    assert described.pop("is_settled") is True
    assert first == stored == {run.name: files.decode(files.encode(described))}


def test_a_live_index_shows_new_runs_and_the_same_pages(tmp_path: Path, make_run: Callable[..., Run]) -> None:
    make_run("first")
    live = index.LiveIndex(tmp_path)
    assert [row["name"] for row in live.page().rows] == ["first_001"]
    make_run("second")
    live._updated -= 100.0
    page = live.page(limit=1, sort="name", reverse=True)
    assert [row["name"] for row in page.rows] == ["second_001"]
    assert page.total == 2
    assert live.page(name="fir").rows == index.summaries(tmp_path, name="fir").rows
    live.close()
