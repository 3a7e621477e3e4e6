from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlx.envs.import_object import load_object, user_error, where
from rlx.errors import ConfigError, NotFound


def test_loads_any_object_of_a_file_or_a_module(tmp_path: Path) -> None:
    (tmp_path / "policies.py").write_text("class Net:\n    class Inner:\n        size = 3\n")
    assert load_object("policies.py:Net", root=tmp_path).__name__ == "Net"
    assert load_object("policies.py:Net.Inner", root=tmp_path).size == 3
    assert load_object("gymnasium.spaces:Box", root=tmp_path).__name__ == "Box"


@pytest.mark.parametrize("reference", ["Net", "policies.py", "policies:", ":Net"])
def test_what_names_nothing_is_refused(reference: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not name a policy"):
        load_object(reference, root=tmp_path, kind="policy")


def test_an_absolute_path_works(tmp_path: Path) -> None:
    (tmp_path / "policies.py").write_text("value = 5\n")
    assert load_object(f"{tmp_path}/policies.py:value", root=Path("/")) == 5


def test_a_module_of_the_project_is_found_and_the_path_stays_clean(tmp_path: Path) -> None:
    (tmp_path / "package_here").mkdir()
    (tmp_path / "package_here" / "nets.py").write_text("value = 6\n")
    before = list(sys.path)
    assert load_object("package_here.nets:value", root=tmp_path) == 6
    assert sys.path == before


def test_a_module_that_misses_another_says_which(tmp_path: Path) -> None:
    (tmp_path / "hungry_module.py").write_text("import something_that_is_not_there\n")
    with pytest.raises(ConfigError) as caught:
        load_object("hungry_module:x", root=tmp_path)
    assert "hungry_module.py:1" in caught.value.message
    assert "something_that_is_not_there" in (caught.value.hint or "")
    with pytest.raises(NotFound):
        load_object("no_such_package.part:x", root=tmp_path)


def test_a_failed_import_is_tried_again_after_a_repair(tmp_path: Path) -> None:
    file = tmp_path / "fixed.py"
    file.write_text("raise ValueError\n")
    with pytest.raises(ConfigError):
        load_object("fixed.py:value", root=tmp_path)
    file.write_text("value = 1\n")
    assert load_object("fixed.py:value", root=tmp_path) == 1


def test_an_error_outside_the_project_is_placed_by_file_name_only(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere") as caught:
        Path("/nowhere/at/all").read_text()
    place = where(caught.value, root=tmp_path)
    assert place is not None
    assert "/" not in place
    assert user_error(caught.value, root=tmp_path, doing="reading").message.startswith(place)
