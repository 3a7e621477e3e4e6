from __future__ import annotations

from pathlib import Path

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.snapshot.outside_state import hidden_state
from tests.envs import worlds


def test_sees_closures_class_attributes_and_module_variables() -> None:
    assert "the closure variable `count` of `Closing.__init__.<locals>.counted`" in hidden_state(worlds.Closing())
    assert "the class attribute `ClassWide.total`" in hidden_state(worlds.ClassWide())
    assert "the module variable `STEPS_EVER` of `worlds.py`" in hidden_state(worlds.Global())


def test_sees_the_variables_of_a_sibling_of_the_projects_file(tmp_path: Path) -> None:
    (tmp_path / "counter_of_mine.py").write_text("count = 0\n\ndef more():\n    global count\n    count += 1\n")
    (tmp_path / "own.py").write_text(
        "import gymnasium\nfrom gymnasium import spaces\nfrom counter_of_mine import more\n"
        "class Own(gymnasium.Env):\n    observation_space = action_space = spaces.Discrete(2)\n"
    )
    seen = hidden_state(make_env(Env(id="own.py:Own"), root=tmp_path))
    assert "the module variable `count` of `counter_of_mine.py`" in seen


def test_libraries_are_not_searched(tmp_path: Path) -> None:
    seen = hidden_state(make_env(Env(id="CartPole-v1"), root=tmp_path))
    assert not [name for name in seen if name.startswith("the module variable")]
