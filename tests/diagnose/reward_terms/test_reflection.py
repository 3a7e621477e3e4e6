"""Reflection on runs that were trained for real, and on what training leaves behind in worse cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlx import files
from rlx.diagnose.reward_terms.reflection import reflect
from rlx.errors import NotFound
from rlx.runs.run import Run
from tests.conftest import Project
from tests.diagnose.reward_terms.test_load_terms import log_terms

MakeRun = Callable[..., Run]


def test_a_farmed_coin_is_flagged_with_its_moment(corridors: Project) -> None:
    document, _ = reflect(corridors.run("farm_001"))
    first = document["findings"][0]
    assert (first["rule"], first["severity"]) == ("reward_hacking", "high")
    assert first["claim"].startswith("`coin` is farmed from step ")
    (step, last) = first["evidence"][0]["steps"]
    assert 0 <= step < 4096
    assert last == 8192
    assert first["evidence"][0]["seeds"] == [0, 1]
    coin = next(term for term in document["terms"] if term["name"] == "coin")
    assert coin["dominates"]
    assert coin["share"] > 0.8
    assert coin["correlation"] < 0
    assert set(coin["farmed_from"]) == {0, 1}
    assert document["hacking_risk"] == "high"


def test_a_clean_environment_gives_no_finding(corridors: Project) -> None:
    document, _ = reflect(corridors.run("corridor_001"))
    assert document["findings"] == []
    assert document["hacking_risk"] == "none"
    assert document["task"]["end"] > 0.9
    assert [term["name"] for term in document["terms"]] == ["goal", "progress", "time"]
    assert all(len(term["series"]) == 10 for term in document["terms"])


def test_the_reflection_is_kept_and_says_what_changed(corridors: Project) -> None:
    document, path = reflect(corridors.run("farm_001"), against=corridors.run("corridor_001"))
    assert path is not None
    assert path.name == "reward_reflection.json"
    kept = files.read_json(path)
    assert kept["schema"] == 1
    against = kept["against"]
    assert (against["run"], against["appeared"], against["gone"]) == ("corridor_001", ["coin"], [])
    assert against["terms"]["goal"]["share"][0] > against["terms"]["goal"]["share"][1]
    assert "reward_hacking" in against["findings"]["new"]
    path.unlink()
    assert reflect(corridors.run("farm_001"))[0]["findings"] == document["findings"]


def test_a_run_without_terms_says_how_to_report_them(make_run: MakeRun) -> None:
    with pytest.raises(NotFound, match="has no reward terms") as caught:
        reflect(make_run())
    assert 'info["reward_terms"]' in str(caught.value.hint)


def test_one_term_neither_dominates_nor_fails(make_run: MakeRun) -> None:
    run = make_run(seeds={0: []})
    log_terms(run, 0, only=lambda row: 0.1 * row)
    document, _ = reflect(run)
    (term,) = document["terms"]
    assert (term["share"], term["dominates"]) == (1.0, False)


def test_terms_that_are_nothing_but_nan_have_no_figures(make_run: MakeRun) -> None:
    run = make_run(seeds={0: []})
    log_terms(run, 0, broken=lambda row: float("nan"), fine=lambda row: float(row))
    document, _ = reflect(run)
    broken = document["terms"][0]
    assert (broken["min"], broken["mean"], broken["is_flat"]) == (None, None, False)
    assert document["findings"][0]["rule"] == "term_not_finite"


def test_a_run_that_is_still_training_is_reflected_on_so_far(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0]}, state="running")
    log_terms(run, 0, rows=2, alive=lambda row: 1.0, goal=lambda row: 0.0)
    document, _ = reflect(run)
    assert document["is_training"]
    assert document["steps"][-1] == 2000
    assert document["findings"] == [] or document["findings"][0]["severity"] == "low"


def test_a_folder_that_cannot_be_written_to_still_gets_an_answer(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(seeds={0: []})
    log_terms(run, 0, alive=lambda row: 1.0)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(files, "write_json", refuse)
    assert reflect(run)[1] is None
