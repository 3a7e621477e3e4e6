"""The best of the other runs counts that were evaluated in the same way, in no more steps."""

from __future__ import annotations

from collections.abc import Callable

from rlx import files
from rlx.diagnose.load_case import read_case
from rlx.diagnose.run_case import OtherRunScore
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def evaluated(make_run: MakeRun, name: str, *means: float, protocol: str = "aaa", step: int = 100) -> Run:
    run = make_run(name)
    for seed, mean in enumerate(means):
        document = {"mean": mean, "std": 1.0, "n": 5, "step": step, "seed": seed, "purpose": "report"}
        path = run.path / "eval" / protocol / f"seed_{seed}_latest.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, document)
    return Run(run.path)


def test_the_best_median_of_another_run_under_the_same_protocol_counts(make_run: MakeRun) -> None:
    own = evaluated(make_run, "own", 10.0)
    evaluated(make_run, "good", 90.0, 100.0, 400.0)
    evaluated(make_run, "worse", 50.0)
    evaluated(make_run, "measured_otherwise", 900.0, protocol="bbb")
    evaluated(make_run, "longer", 900.0, step=200)
    assert read_case(own).best_other_run == OtherRunScore("good_001", 100.0, 100)


def test_a_run_alone_has_none_and_a_damaged_neighbour_does_not_count(make_run: MakeRun) -> None:
    own = evaluated(make_run, "own", 10.0)
    other = evaluated(make_run, "other", 20.0)
    (other.path / "eval" / "aaa" / "seed_0_latest.json").write_bytes(b"{torn")
    assert read_case(own).best_other_run is None
    assert read_case(make_run("never_evaluated")).best_other_run is None
