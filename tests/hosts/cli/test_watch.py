"""`rlx watch`: one run or all, alarms, and exit codes for scripts."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow


def test_a_run_or_all_and_never_both(project: Project) -> None:
    for words in ((), ("some", "--all")):
        assert "rlx watch --all" in project.rlx("watch", *words, code=2).stderr


def test_where_nothing_trains_all_says_so(project: Project) -> None:
    assert project.rlx("watch", "--all").stdout.startswith("no run is training")
    assert json.loads(project.rlx("watch", "--all", "--json").stdout)["runs"] == []


def test_all_running_runs_stand_in_one_table_until_they_end(project: Project) -> None:
    for name in ("one", "two"):
        project.rlx("train", project.config(name, algo={"total_timesteps": 6000}, backend="fast"), "--detach")
    watched = project.rlx("watch", "--all", "--json")
    assert watched.stderr.startswith("run  ")
    runs = json.loads(watched.stdout)["runs"]
    ended = {one["run"]: one["state"] for one in runs}
    assert ended["two_001"] == "completed"  # the first may have ended before anybody looked
    assert ended.items() <= {"one_001": "completed", "two_001": "completed"}.items()


def test_a_diverging_run_ends_while_it_is_watched_and_says_why(project: Project) -> None:
    wrapper = {"rlx.testing:Poisoned": {"after": 3000}}
    config = project.config(env={"wrappers": [wrapper]}, algo={"total_timesteps": 200_000}, backend="fast")
    project.rlx("train", config, "--detach")
    wait_until(lambda: project.run("tiny_001").seeds[0].rows)
    watched = project.rlx("watch", "tiny_001", "--json", code=5)
    data = json.loads(watched.stdout)
    assert data["state"] == "failed"
    assert "is nan" in data["seeds"][0]["reason"]
    assert "not_finite" in [alarm["rule"] for alarm in data["alarms"]]
    assert "alarm not_finite" in watched.stderr


def test_leaving_after_a_time_is_no_failure(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 200_000}, backend="fast"), "--detach")
    left = json.loads(project.rlx("watch", "tiny_001", "--timeout", "0.1", "--json").stdout)
    assert left["state"] == "running"
    project.rlx("stop", "tiny_001")
