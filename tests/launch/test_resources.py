"""What a machine has and what one seed may use of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlx
from rlx.launch import resources
from rlx.launch.resources import Slots, gpu_places, memory_places, neutral_environment, worker_environment


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(resources, "available_cores", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    return monkeypatch


def test_seeds_fill_the_cores(machine: pytest.MonkeyPatch) -> None:
    assert Slots.of({}).places == (None,) * 8
    assert Slots.of({"resources": {"cores": 3}}).places == (None,) * 2
    assert Slots.of({"resources": {"cores": 64}}).places == (None,)


def test_one_seed_a_gpu_unless_told(machine: pytest.MonkeyPatch) -> None:
    assert Slots.of({"device": "cuda"}).places == ("2", "5")
    assert Slots.of({"device": "cuda", "resources": {"gpus": 0.5}}).places == ("2", "5", "2", "5")
    assert Slots.of({"device": "cpu"}).places[0] is None


def test_a_seed_of_several_gpus_has_them_to_itself(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("CUDA_VISIBLE_DEVICES", "2,5,6,7,9")
    assert Slots.of({"resources": {"gpus": 2}}).places == ("2,5", "6,7")
    assert gpu_places(8) == ()


def test_without_a_gpu_there_is_one_place_all_the_same(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("CUDA_VISIBLE_DEVICES", "")
    assert Slots.of({"device": "cuda"}).places == (None,)


def test_the_least_loaded_gpu_is_taken(machine: pytest.MonkeyPatch) -> None:
    slots = Slots.of({"device": "cuda", "resources": {"gpus": 0.5}})
    assert slots.without(["2"]).places == ("5", "2", "5")
    assert slots.without(["2", "5", "5"]).places == ("2",)
    assert slots.without(["2", "5", "5", "2"]).places == ()


def test_places_that_were_given_out_under_other_hardware_count_all_the_same(machine: pytest.MonkeyPatch) -> None:
    assert Slots.of({"device": "cuda"}).without([None]).places == ("2",)


def test_memory_limits_how_many_run_side_by_side(machine: pytest.MonkeyPatch) -> None:
    assert Slots.of({"resources": {"memory": 1e6}}).places == (None,)
    assert memory_places(1e6) == 0


def test_a_worker_gets_its_threads_its_gpu_and_no_display(machine: pytest.MonkeyPatch) -> None:
    environment = worker_environment({"resources": {"cores": 2}}, root=Path("/project"), gpu="5")
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["CUDA_VISIBLE_DEVICES"] == "5"
    assert environment["SDL_NO_SIGNAL_HANDLERS"] == "1"
    assert environment["RLX_ROOT"] == "/project"


def test_what_changes_imports_is_emptied_and_rlx_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/evil")
    assert set(neutral_environment().values()) == {""}
    own = str(Path(rlx.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"/evil:{own}")
    assert neutral_environment()["PYTHONPATH"] == own
