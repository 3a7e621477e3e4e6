from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.envs.make import facts_of, inspect, make_env
from rlx.errors import ConfigError, MissingExtra, NotFound

REACH = '''
import gymnasium
import numpy as np
from gymnasium import spaces
import rewards


class Reach(gymnasium.Env):
    """Move a point to the origin."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, size: float = 1.0, render_mode=None):
        if size <= 0:
            raise ValueError("size must be positive")
        self.size = size
        self.render_mode = render_mode
        self.observation_space = spaces.Box(-10, 10, (2,), np.float32)
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1, 2) * self.size
        return self.position.astype(np.float32), {}

    def step(self, action):
        self.position = self.position + 0.1 * action
        return self.position.astype(np.float32), rewards.distance(self.position), False, False, {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


def make_small(**kwargs):
    return Reach(size=0.5, **kwargs)


class Bare(gymnasium.Env):
    pass


class NotAnEnv:
    pass


def wrong():
    return 3
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "my project" / "envs"
    folder.mkdir(parents=True)
    (folder / "reach.py").write_text(REACH)
    (folder / "rewards.py").write_text("def distance(position):\n    return -float(abs(position).sum())\n")
    return tmp_path / "my project"


def test_makes_a_registered_environment_without_the_checker(tmp_path: Path) -> None:
    env = make_env(Env(id="CartPole-v1"), root=tmp_path)
    assert "PassiveEnvChecker" not in str(env)
    env.close()


def test_an_old_registered_version_is_made_without_a_word(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_env(Env(id="CartPole-v0"), root=tmp_path).close()


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "CartPole-v0", "LunarLander-v3"])
def test_making_prints_nothing_and_leaves_nothing_behind(tmp_path: Path, env_id: str) -> None:
    program = f"""
from pathlib import Path
from rlx.config.schema import Env
from rlx.envs.make import make_env
env = make_env(Env(id={env_id!r}), root=Path("."))
env.reset(seed=0)
env.step(env.action_space.sample())
env.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("", "", [])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("CartPol-v1", "CartPole-v1"),
        ("cartpole-v1", "CartPole-v1"),
        ("CartPole", "CartPole-v1"),
        ("CartPole-v7", "CartPole-v1"),
        ("LunarLander-v2", "LunarLander-v3"),
        ("HalfCheetah-v1", "HalfCheetah-v5"),
        ("Reach", "envs/reach.py:Reach"),
    ],
)
def test_an_unknown_id_names_the_one_that_was_meant(root: Path, wrong: str, meant: str) -> None:
    with pytest.raises(NotFound) as caught:
        make_env(Env(id=wrong), root=root)
    assert caught.value.hint == f"did you mean `{meant}`?"
    assert wrong in caught.value.message


def test_an_id_like_nothing_points_at_the_list(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        make_env(Env(id="Zzzzqqq-v0"), root=tmp_path)
    assert caught.value.hint == "rlx envs"


def test_atari_without_its_package_says_what_to_install(tmp_path: Path) -> None:
    for env_id in ("ALE/Pong-v5", "ale_py:ALE/Pong-v5"):
        with pytest.raises(MissingExtra) as caught:
            make_env(Env(id=env_id), root=tmp_path)
        assert caught.value.hint == "pip install 'ale-py'"


@pytest.mark.parametrize(
    ("env_id", "module", "extra"), [("LunarLander-v3", "Box2D", "box2d"), ("Hopper-v5", "mujoco", "mujoco")]
)
def test_a_missing_package_names_its_extra(tmp_path: Path, env_id: str, module: str, extra: str) -> None:
    program = f"""
import sys
sys.modules[{module!r}] = None
from pathlib import Path
from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.errors import MissingExtra
try:
    make_env(Env(id={env_id!r}), root=Path("."))
except MissingExtra as error:
    print(error.message, "|", error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip().endswith(f"| pip install 'rlx[{extra}]'")
    assert env_id in done.stdout
    assert done.stderr == ""


def test_makes_a_class_from_a_file_with_a_sibling_import_and_kwargs(root: Path) -> None:
    before = list(sys.path)
    env = make_env(Env(id="envs/reach.py:Reach", kwargs={"size": 2.0}), root=root)
    env.reset(seed=0)
    assert env.step(np.zeros(2, np.float32))[1] < 0
    assert env.unwrapped.size == 2.0  # type: ignore[attr-defined]
    assert sys.path == before


def test_two_environments_of_one_file_have_one_class(root: Path) -> None:
    one, other = (make_env(Env(id="envs/reach.py:Reach"), root=root) for _ in range(2))
    assert type(one.unwrapped) is type(other.unwrapped)


def test_siblings_of_the_same_name_in_two_projects_do_not_mix(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "envs").mkdir(parents=True)
    (other / "envs" / "reach.py").write_text(REACH)
    (other / "envs" / "rewards.py").write_text("def distance(position):\n    return 42.0\n")
    rewards = []
    for project in (root, other, root):
        env = make_env(Env(id="envs/reach.py:Reach"), root=project)
        env.reset(seed=0)
        rewards.append(env.step(np.zeros(2, np.float32))[1])
    assert rewards[1] == 42.0
    assert rewards[0] == rewards[2] != 42.0


def test_an_import_inside_a_method_finds_the_sibling_later(root: Path) -> None:
    (root / "envs" / "late.py").write_text(
        REACH.replace("import rewards\n", "").replace(
            "        self.position = self.position +",
            "        import late_rewards as rewards\n        self.position = self.position +",
        )
    )
    (root / "envs" / "late_rewards.py").write_text("def distance(position):\n    return 7.0\n")
    env = make_env(Env(id="envs/late.py:Reach"), root=root)
    env.reset(seed=0)
    assert env.step(np.zeros(2, np.float32))[1] == 7.0


def test_imports_relative_to_the_file_and_from_the_root_work(root: Path) -> None:
    (root / "shared_rewards.py").write_text("BONUS = 5.0\n")
    (root / "envs" / "relative.py").write_text(
        REACH.replace(
            "import rewards\n",
            "from . import rewards\nfrom .rewards import distance\nfrom envs import rewards as again\n"
            "from shared_rewards import BONUS\n",
        )
    )
    env = make_env(Env(id="envs/relative.py:Reach"), root=root)
    env.reset(seed=0)
    assert env.step(np.zeros(2, np.float32))[1] < 0


def test_an_edit_of_equal_size_is_seen_by_the_next_process(root: Path) -> None:
    file = root / "envs" / "reach.py"
    program = """
from pathlib import Path
from rlx.config.schema import Env
from rlx.envs.make import make_env
print(make_env(Env(id="envs/reach.py:Reach"), root=Path(".")).unwrapped.size)
"""
    sizes = []
    for size in ("1.0", "2.0"):
        file.write_text(REACH.replace("size: float = 1.0", f"size: float = {size}"))
        done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
        sizes.append(done.stdout.strip())
    assert sizes == ["1.0", "2.0"]
    assert not (root / "envs" / "__pycache__").exists()


def test_makes_from_a_module_a_factory_and_a_registered_id_behind_a_module(root: Path) -> None:
    (root / "package_of_mine.py").write_text(
        REACH.replace("import rewards", "import envs.rewards as rewards")
        + "\ngymnasium.register('Mine/Reach-v0', entry_point=Reach, max_episode_steps=7)\n"
    )
    assert make_env(Env(id="package_of_mine:Reach"), root=root).unwrapped.size == 1.0  # type: ignore[attr-defined]
    assert make_env(Env(id="package_of_mine:make_small"), root=root).unwrapped.size == 0.5  # type: ignore[attr-defined]
    registered = make_env(Env(id="package_of_mine:Mine/Reach-v0"), root=root)
    assert facts_of(registered, source="").horizon == 7
    gymnasium.registry.pop("Mine/Reach-v0")


def test_a_wrong_argument_is_named_with_those_that_are_taken(root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="envs/reach.py:Reach", kwargs={"sise": 2.0}), root=root)
    assert caught.value.message == "`envs/reach.py:Reach` takes no argument `sise`"
    assert caught.value.hint == "did you mean `size`? it takes size"


def test_an_environment_whose_name_begins_like_a_wrapper_is_quoted(root: Path) -> None:
    (root / "wrapper_task.py").write_text(REACH.replace("import rewards", "import envs.rewards as rewards"))
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="wrapper_task.py:Reach", kwargs={"sise": 2.0}), root=root)
    assert caught.value.message == "`wrapper_task.py:Reach` takes no argument `sise`"


@pytest.mark.parametrize(("env_id", "taken"), [("Pendulum-v1", "g"), ("Hopper-v5", "forward_reward_weight")])
def test_a_wrong_argument_of_a_registered_environment_is_named(tmp_path: Path, env_id: str, taken: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id=env_id, kwargs={"gravitation": 1}), root=tmp_path)
    assert caught.value.message == f"`{env_id}` takes no argument `gravitation`"
    assert taken in (caught.value.hint or "")


def test_a_missing_argument_is_named(root: Path) -> None:
    (root / "envs" / "needs.py").write_text(REACH.replace("size: float = 1.0", "size: float"))
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="envs/needs.py:Reach"), root=root)
    assert caught.value.message == "`envs/needs.py:Reach` needs the argument `size`"


def test_a_constructor_that_raises_says_where_in_the_file(root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="envs/reach.py:Reach", kwargs={"size": -1}), root=root)
    line = 1 + REACH.splitlines().index('            raise ValueError("size must be positive")')
    assert caught.value.message == (
        f"envs/reach.py:{line}: making `envs/reach.py:Reach` raised ValueError: size must be positive"
    )


def test_a_bad_value_for_a_registered_environment_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="FrozenLake-v1", kwargs={"map_name": "9x9"}), root=tmp_path)
    assert "making `FrozenLake-v1` raised KeyError: '9x9'" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n", "envs/bad.py:1: invalid syntax"),
        ("import not_there_at_all\n", "envs/bad.py:1: importing `envs/bad.py` raised ModuleNotFoundError"),
        ("x = 1\n\nraise SystemExit(3)\n", "envs/bad.py:3: importing `envs/bad.py` raised SystemExit: 3"),
    ],
)
def test_a_file_that_cannot_be_imported_says_where(root: Path, source: str, message: str) -> None:
    (root / "envs" / "bad.py").write_text(source)
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="envs/bad.py:Thing"), root=root)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("env_id", "message", "hint"),
    [
        ("envs/reech.py:Reach", "no file `envs/reech.py`", "did you mean `envs/reach.py`?"),
        ("env/reach.py:Reach", "no file `env/reach.py`", "not a folder"),
        ("envs/reach.py:Reech", "`envs/reach.py` has no `Reech`", "did you mean `envs/reach.py:Reach`?"),
        ("nothing_like_it:Reach", "no module `nothing_like_it`", "path/file.py:Name"),
    ],
)
def test_a_name_that_is_not_there_is_not_found(root: Path, env_id: str, message: str, hint: str) -> None:
    with pytest.raises(NotFound) as caught:
        make_env(Env(id=env_id), root=root)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("envs/reach.py", "`envs/reach.py` does not say which class"),
        ("envs/reach.py:NotAnEnv", "`envs/reach.py:NotAnEnv` is not a gymnasium.Env"),
        ("envs/reach.py:Bare", "`envs/reach.py:Bare` has no `observation_space`"),
        ("envs/reach.py:wrong", "`envs/reach.py:wrong` made a int, not a gymnasium.Env"),
        ("envs/reach.py:spaces", "`envs/reach.py:spaces` is a module, not a class or a function that makes one"),
    ],
)
def test_what_is_not_an_environment_is_refused(root: Path, env_id: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id=env_id), root=root)
    assert caught.value.message == message
    assert caught.value.hint or "module" in message


@pytest.mark.parametrize("env_id", ["CartPole-v1", "envs/reach.py:Reach", "envs/reach.py:make_small", "FrozenLake-v1"])
def test_renders_without_a_display(root: Path, env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    env = make_env(Env(id=env_id), root=root, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert isinstance(frame, np.ndarray)
    assert frame.ndim == 3
    assert frame.dtype == np.uint8
    env.close()


def test_an_environment_that_cannot_render_says_so(root: Path) -> None:
    (root / "envs" / "blind.py").write_text(
        REACH.replace('["rgb_array"]', "[]")
        .replace(", render_mode=None", "")
        .replace("        self.render_mode = render_mode\n", "")
    )
    with pytest.raises(ConfigError) as caught:
        make_env(Env(id="envs/blind.py:Reach"), root=root, render_mode="rgb_array")
    assert caught.value.message == "`envs/blind.py:Reach` cannot render as rgb_array"


def test_facts_of_a_registered_environment(tmp_path: Path) -> None:
    facts = inspect(Env(id="CartPole-v1"), root=tmp_path)
    assert facts.horizon == 500
    assert facts.reward_threshold == 475.0
    assert facts.action_space == gymnasium.spaces.Discrete(2)
    assert not facts.has_masks
    assert facts.source == "gymnasium.envs.classic_control.cartpole:CartPoleEnv"


def test_a_class_that_declares_its_horizon_is_cut_there(root: Path) -> None:
    (root / "envs" / "short.py").write_text(
        REACH.replace("    metadata =", "    max_episode_steps = 5\n    reward_threshold = -1\n    metadata =")
    )
    facts = inspect(Env(id="envs/short.py:Reach"), root=root)
    assert facts.horizon == 5
    assert facts.reward_threshold == -1.0
    env = make_env(Env(id="envs/short.py:Reach"), root=root)
    env.reset(seed=0)
    cuts = [env.step(np.zeros(2, np.float32))[3] for _ in range(5)]
    assert cuts == [False, False, False, False, True]


def test_max_episode_steps_in_kwargs_works_for_ids_and_classes(root: Path) -> None:
    for env_id in ("CartPole-v1", "envs/reach.py:Reach"):
        assert inspect(Env(id=env_id, kwargs={"max_episode_steps": 9}), root=root).horizon == 9


def test_action_masks_are_noticed_through_wrappers(root: Path) -> None:
    masked = REACH.replace(
        "    def render(self):", "    def action_masks(self):\n        return [True]\n\n    def render(self):"
    )
    (root / "envs" / "masked.py").write_text(masked)
    assert inspect(Env(id="envs/masked.py:Reach", wrappers=[{"time_limit": {"max_steps": 3}}]), root=root).has_masks


def test_kwargs_are_not_shared_between_environments(root: Path) -> None:
    (root / "envs" / "greedy.py").write_text(
        REACH.replace("size: float = 1.0, render_mode=None", "goals, render_mode=None").replace(
            'if size <= 0:\n            raise ValueError("size must be positive")', "size = goals.pop()"
        )
    )
    env = Env(id="envs/greedy.py:Reach", kwargs={"goals": [3.0]})
    assert [make_env(env, root=root).unwrapped.size for _ in range(2)] == [3.0, 3.0]  # type: ignore[attr-defined]
