"""Episode seeds and fingerprints."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from rlx.config.load import parse
from rlx.config.schema import Env, Experiment
from rlx.errors import UsageError
from rlx.evaluate.protocol import DRAWN, EPISODE_SEEDS, Protocol, Purpose, draw_first_episode, episode_seeds
from rlx.evaluate.rollout import Evaluator

from .conftest import MakeProtocol


def experiment_protocol(root: Path, **changes: object) -> Protocol:
    config = {"run_name": "a", "env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"}, **changes}
    return Protocol.of(parse(config), root=root, purpose="report")


def test_reserved_ranges_do_not_overlap() -> None:
    for one, other in combinations(EPISODE_SEEDS.values(), 2):
        assert one.stop <= other.start or other.stop <= one.start


def test_training_never_uses_a_reserved_episode_seed() -> None:
    from rlx.envs.vector import env_seeds

    used = {seed for training_seed in range(300) for seed in env_seeds(training_seed, 16)}
    for reserved in EPISODE_SEEDS.values():
        assert not [seed for seed in used if seed in reserved]


def test_episodes_of_a_study_begin_at_a_drawn_place_inside_their_range() -> None:
    for purpose in DRAWN:
        firsts = {draw_first_episode(purpose, 50) for _ in range(20)}
        assert len(firsts) > 15
        assert all(0 <= first <= len(EPISODE_SEEDS[purpose]) - 50 for first in firsts)


def test_episode_seeds_are_a_prefix_of_the_purposes_range(protocol: MakeProtocol) -> None:
    few, many = protocol("Lengths", episodes=3).episode_seeds(), protocol("Lengths", episodes=10).episode_seeds()
    assert list(many[:3]) == list(few)
    selection = protocol("Lengths", episodes=10, purpose="selection").episode_seeds()
    assert not set(selection) & set(many)


def test_more_episodes_than_are_reserved_is_a_usage_error(protocol: MakeProtocol) -> None:
    with pytest.raises(UsageError, match="1000000 episodes"):
        protocol("Lengths", episodes=1_000_000).episode_seeds()


def test_selection_takes_the_configs_episodes_and_a_report_always_twenty(tmp_path: Path) -> None:
    experiment = parse({
        "run_name": "a", "env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"},
        "eval": {"episodes": 3, "deterministic": False},
    })  # fmt: skip
    selection = Protocol.of(experiment, root=tmp_path, purpose="selection")
    report = Protocol.of(experiment, root=tmp_path, purpose="report")
    assert (selection.episodes, report.episodes) == (3, 20)
    assert Protocol.of(experiment, root=tmp_path, purpose="report", episodes=7).episodes == 7
    assert not report.deterministic


def test_the_fingerprint_ignores_what_does_not_touch_the_measurement(tmp_path: Path) -> None:
    plain = experiment_protocol(tmp_path).fingerprint()
    assert len(plain) == 12
    assert plain == experiment_protocol(tmp_path, seed=7, run_name="b").fingerprint()
    assert plain == experiment_protocol(tmp_path, algo={"name": "ppo", "learning_rate": 1e-3}).fingerprint()
    trained_otherwise = {"id": "CartPole-v1", "num_envs": 3, "normalize": {"obs": True}}
    assert plain == experiment_protocol(tmp_path, env=trained_otherwise).fingerprint()


def test_a_policy_is_measured_in_the_environments_own_reward(tmp_path: Path) -> None:
    scaled = {"id": "CartPole-v1", "wrappers": ["clip_reward", {"scale_reward": {"scale": 0.01}}, "flatten"]}
    plain = {"id": "CartPole-v1", "wrappers": ["flatten"]}
    one, other = experiment_protocol(tmp_path, env=scaled), experiment_protocol(tmp_path, env=plain)
    assert one.fingerprint() == other.fingerprint()
    with Evaluator(one) as evaluator:
        episode = evaluator.evaluate_random().episodes[0]
    assert episode.episode_return == episode.length


def test_the_fingerprint_changes_with_everything_that_does(protocol: MakeProtocol) -> None:
    changed = [
        protocol("Lengths"),
        protocol("Lengths", episodes=19),
        protocol("Lengths", purpose="selection"),
        protocol("Lengths", deterministic=False),
        protocol("Lengths", kwargs={"long": 100}),
        protocol("Lengths", wrappers=["flatten"]),
        protocol("Reporting"),
    ]
    assert len({one.fingerprint() for one in changed}) == len(changed)


def test_an_edited_environment_file_changes_the_fingerprint_and_a_moved_project_does_not(
    project: Path, protocol: MakeProtocol, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = protocol("Lengths").fingerprint()
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "moved"
    elsewhere.joinpath("envs").mkdir(parents=True)
    worlds = (project / "envs/worlds.py").read_text()
    (elsewhere / "envs/worlds.py").write_text(worlds)
    env = Env(id="envs/worlds.py:Lengths")
    assert Protocol(env, 20, True, "report", elsewhere).fingerprint() == before
    (project / "envs/worlds.py").write_text(worlds + "\n# edited\n")
    assert protocol("Lengths").fingerprint() != before


def test_the_content_names_files_packages_and_seeds(protocol: MakeProtocol) -> None:
    content = protocol("Lengths", episodes=4).content
    assert list(content["files"]) == ["envs/worlds.py"]
    assert "gymnasium" in content["packages"]
    assert content["seeds"] == [200_000, 200_003]


SHAPING = """
import gymnasium

class Shaping(gymnasium.RewardWrapper):
    def __init__(self, env, factor=2.0):
        super().__init__(env)
        self.factor = factor

    def reward(self, reward):
        return self.factor * reward

class Both(gymnasium.Wrapper):
    pass
"""


def experiment(**sections: object) -> Experiment:
    return parse({"run_name": "x", "env": {"id": "CartPole-v1"}, **sections})


def report(root: Path, **sections: object) -> Protocol:
    return Protocol.of(experiment(**sections), root=root, purpose="report")


def test_wrappers_that_only_change_the_reward_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SHAPING)
    wrappers = ["own.py:Shaping", "scale_reward", "clip_reward", "ClipReward", "own.py:Both", "flatten"]
    env = {"id": "CartPole-v1", "wrappers": [*wrappers[:1], {"scale_reward": {"scale": 2}}, *wrappers[2:]]}
    assert [one.name for one in report(tmp_path, env=env).env.wrappers] == ["own.py:Both", "flatten"]


def test_a_change_of_reward_in_training_leaves_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SHAPING)
    plain = report(tmp_path).fingerprint()
    for factor in (2.0, 3.0):
        shaped = {"id": "CartPole-v1", "wrappers": [{"own.py:Shaping": {"factor": factor}}]}
        assert report(tmp_path, env=shaped).fingerprint() == plain


def test_the_evaluation_env_stands_in_for_the_training_env_key_by_key(tmp_path: Path) -> None:
    env = {"id": "CartPole-v1", "kwargs": {"sutton_barto_reward": True}, "wrappers": ["flatten", "clip_reward"]}
    assert report(tmp_path, env=env, eval={"env": {}}).env == report(tmp_path, env=env).env
    own = report(tmp_path, env=env, eval={"env": {"kwargs": {}, "wrappers": ["clip_reward"]}}).env
    assert (own.id, own.kwargs, [one.name for one in own.wrappers]) == ("CartPole-v1", {}, ["clip_reward"])
    assert report(tmp_path, env=env, eval={"env": {"id": "Acrobot-v1"}}).env.id == "Acrobot-v1"


def test_training_kwargs_change_nothing_where_the_evaluation_env_has_its_own(tmp_path: Path) -> None:
    names = {
        report(
            tmp_path, env={"id": "CartPole-v1", "kwargs": {"sutton_barto_reward": shaped}}, eval={"env": {"kwargs": {}}}
        ).fingerprint()
        for shaped in (True, False)
    }
    assert names == {report(tmp_path).fingerprint()}


def test_scenarios_and_metric_are_part_of_the_fingerprint_and_left_out_of_selection(tmp_path: Path) -> None:
    scenarios = {"shaped": {"kwargs": {"sutton_barto_reward": True}, "pass": "length > 100"}}
    with_them = report(tmp_path, eval={"scenarios": scenarios})
    other = report(tmp_path, eval={"scenarios": {"shaped": {**scenarios["shaped"], "pass": "length > 9"}}})
    counted = report(tmp_path, eval={"scenarios": scenarios, "metric": "pass_rate"})
    assert len({one.fingerprint() for one in (report(tmp_path), with_them, other, counted)}) == 4
    for metric, played in (("return", {}), ("pass_rate", {"shaped"})):
        selection = Protocol.of(
            experiment(eval={"scenarios": scenarios, "metric": metric}), root=tmp_path, purpose="selection"
        )
        assert set(selection.scenarios) == set(played)


def test_training_seeds_share_no_episodes_but_where_nothing_is_compared_across_them(protocol: MakeProtocol) -> None:
    report = protocol("Lengths", episodes=20)
    blocks = [set(report.episode_seeds(seed=seed)) for seed in range(100)]
    assert len(set().union(*blocks)) == 2000
    assert all(block <= set(EPISODE_SEEDS["report"]) for block in blocks)
    assert set(report.episode_seeds(seed=2**31)) <= set(EPISODE_SEEDS["report"])
    selection = protocol("Lengths", episodes=20, purpose="selection")
    assert selection.episode_seeds(seed=0) == selection.episode_seeds(seed=7)


@pytest.mark.parametrize("purpose", DRAWN)
def test_what_is_drawn_has_room_for_every_training_seed(purpose: Purpose) -> None:
    first = draw_first_episode(purpose, 50)
    blocks = [episode_seeds(purpose, first, 50, seed=seed) for seed in (0, 999, 1000, 1999)]
    assert [block.start - EPISODE_SEEDS[purpose].start - first for block in blocks] == [0, 49_950, 50_000, 99_950]
