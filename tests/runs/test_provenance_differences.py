from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlx import files
from rlx.runs.provenance import differences
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def attempt(
    commit: str = "a" * 40, *, torch: str = "2.13", threads: str = "1", diff: str | None = None
) -> dict[str, Any]:
    return {
        "schema": 1, "time": 1000.0, "git": {"commit": commit, "diff_sha256": diff, "untracked_total": 2},
        "versions": {"python": "3.11", "torch": torch}, "host": "h", "platform": "Linux", "cores": 2,
        "environment": {"OMP_NUM_THREADS": threads},
    }  # fmt: skip


def add_attempt(run: Run, seed: int, document: dict[str, Any]) -> None:
    files.append_line(run.path / f"seed_{seed}" / "attempts.jsonl", files.encode(document))


def test_attempts_that_differ_are_said_plainly(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})
    add_attempt(run, 0, attempt())
    add_attempt(run, 1, attempt("b" * 40, torch="2.14", threads="2"))
    add_attempt(run, 1, attempt("b" * 40, torch="2.14", threads="2", diff="c" * 64))

    assert differences(Run(run.path)) == [
        "code: aaaaaaaaaaaa (seed 0); bbbbbbbbbbbb (seed 1 attempt 1); "
        "bbbbbbbbbbbb + uncommitted changes cccccccc (seed 1 attempt 2)",
        "threads: OMP_NUM_THREADS 1 (seed 0); OMP_NUM_THREADS 2 (seed 1 attempt 1, seed 1 attempt 2)",
        "torch: 2.13 (seed 0); 2.14 (seed 1 attempt 1, seed 1 attempt 2)",
    ]


def test_equal_attempts_do_not_differ(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})
    for seed in (0, 1):
        add_attempt(run, seed, attempt())

    assert differences(run) == []


def test_an_attempt_outside_git_differs_from_one_inside(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})
    add_attempt(run, 0, attempt())
    add_attempt(run, 1, {**attempt(), "git": None})

    assert differences(run) == ["code: aaaaaaaaaaaa (seed 0); outside git (seed 1)"]
