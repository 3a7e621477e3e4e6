"""The scan reads the ways in which people write settings, seeds, trainings and rewards, one small repository each."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.adopt.scan import scan
from tests.adopt.foreign_repos import write_repo

AGENT = """import torch
class Agent:
    def update(self, batch):
        torch.zeros(1, requires_grad=True).backward()
    def train(self, steps=10):
        self.update(None)
    def act(self, state):
        return 0
"""
TYPER = """import torch, typer
app = typer.Typer()
@app.command()
def train(task: str, steps: int = 1000, random_seed: int = typer.Option(3, "--random-seed", help="seed")):
    torch.ones(1).backward()
if __name__ == "__main__":
    app()
"""
FIRE = """import fire, torch
def train(env="Walker", steps=1000, seed=0):
    torch.ones(1).backward()
if __name__ == "__main__":
    fire.Fire(train)
"""
SACRED = """import torch
from sacred import Experiment
ex = Experiment("walk")
@ex.config
def defaults():
    gamma = 0.99
    seed = 4
@ex.automain
def main(gamma, seed):
    torch.ones(1).backward()
"""
ML_COLLECTIONS = """import torch
from absl import app
from ml_collections import config_flags
config_flags.DEFINE_config_file("config", "configs/walk.py", "The settings.", lock_config=False)
def main(_):
    torch.ones(1).backward()
if __name__ == "__main__":
    app.run(main)
"""
CONFIG_DICT = """import ml_collections
def get_config():
    config = ml_collections.ConfigDict()
    config.seed = 42
    config.optimizer = ml_collections.ConfigDict()
    config.optimizer.rate = 1e-3
    return config
"""
TAP = """import torch
from tap import Tap
class Settings(Tap):
    seed: int = 5
    rate: float = 1e-3
if __name__ == "__main__":
    settings = Settings().parse_args()
    torch.ones(1).backward()
"""
OPTPARSE = """import optparse, torch
if __name__ == "__main__":
    parser = optparse.OptionParser()
    parser.add_option("-s", "--seed", type="int", default=1)
    options, _ = parser.parse_args()
    torch.ones(1).backward()
"""
PLAIN = """import numpy as np
import torch
def train():
    random_seed = 7
    np.random.seed(random_seed)
    learning_rate = 1e-3
    torch.ones(1).backward()
if __name__ == "__main__":
    train()
"""
MODULE_LEVEL = """import torch
seed = 3
num_steps = 1000
torch.manual_seed(seed)
for step in range(num_steps):
    torch.ones(1).backward()
"""
OMEGACONF = """import torch
from omegaconf import OmegaConf
if __name__ == "__main__":
    config = OmegaConf.merge(OmegaConf.load("walk.yaml"), OmegaConf.from_cli())
    torch.ones(1).backward()
"""
JSON_FILE = """import json, torch
if __name__ == "__main__":
    with open("config.json") as file:
        config = json.load(file)
    torch.manual_seed(config["seed"])
    torch.ones(1).backward()
"""
BY_USE = """import argparse, random
import torch
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--manualSeed", type=int)
    parser.add_argument("--rng", type=int)
    parser.add_argument("--env", default="Walker")
    args = parser.parse_args()
    random.seed(args.manualSeed)
    torch.manual_seed(args.rng)
    torch.ones(1).backward()
"""
TF_FLAGS = """import tensorflow as tf
tf.app.flags.DEFINE_integer("seed", 1, "the seed")
FLAGS = tf.app.flags.FLAGS
def main(_):
    with tf.GradientTape() as tape:
        loss = 0
    tape.gradient(loss, [])
if __name__ == "__main__":
    tf.app.run()
"""
LIGHTNING = """import torch
from jsonargparse import CLI
def main(rate: float = 1e-3, seed: int = 2):
    torch.ones(1).backward()
if __name__ == "__main__":
    CLI(main)
"""
CLASS_CONSTANTS = """class Config:
    seed = 11
    gamma = 0.99
    batch_size = 64
"""
USES_CLASS = """from config import Config
import torch
if __name__ == "__main__":
    config = Config()
    torch.manual_seed(config.seed)
    torch.ones(1).backward()
"""


@pytest.mark.parametrize(
    ("files", "systems", "seeds"),
    [
        ({"train.py": TYPER}, ["typer"], {"--random-seed": 3}),
        ({"train.py": FIRE}, ["fire"], {"--seed": 0}),
        ({"train.py": SACRED}, ["sacred"], {"seed=": 4}),
        ({"train.py": ML_COLLECTIONS, "configs/walk.py": CONFIG_DICT}, ["ml_collections"], {"--config.seed": 42}),
        ({"train.py": TAP}, ["tap"], {"--seed": 5}),
        ({"train.py": OPTPARSE}, ["optparse"], {"--seed": 1}),
        ({"train.py": PLAIN}, ["constants"], {"random_seed": 7}),
        ({"train.py": MODULE_LEVEL}, ["constants"], {"seed": 3}),
        ({"train.py": OMEGACONF, "walk.yaml": "seed: 3\n"}, ["omegaconf", "yaml"], {"seed=": 3}),
        ({"train.py": JSON_FILE, "config.json": '{\n  "gamma": 0.9,\n  "seed": 8\n}\n'}, ["json"], {"seed": 8}),
        ({"train.py": BY_USE}, ["argparse"], {"--manualSeed": None, "--rng": None}),
        ({"train.py": TF_FLAGS}, ["absl"], {"--seed": 1}),
        ({"train.py": LIGHTNING}, ["jsonargparse"], {"--seed": 2}),
        ({"train.py": USES_CLASS, "config.py": CLASS_CONSTANTS}, ["constants"], {"Config.seed": 11}),
    ],
    ids=["typer", "fire", "sacred", "ml_collections", "tap", "optparse", "function", "module", "omegaconf", "json",
         "use", "tensorflow", "jsonargparse", "class"],
)  # fmt: skip
def test_config_systems_and_seeds(
    tmp_path: Path, files: dict[str, str], systems: list[str], seeds: dict[str, object]
) -> None:
    found = scan(write_repo(tmp_path, files))
    assert found.facts.names("config system") == systems
    assert {fact.name: fact.value for fact in found.facts.of("seed")} == seeds


MAIN = 'if __name__ == "__main__":\n    '
TABULAR = """import gymnasium as gym
import numpy as np
env = gym.make("Taxi-v3")
q_table = np.zeros((10, 4))
state, _ = env.reset(seed=0)
for step in range(100):
    action = int(q_table[state].argmax())
    new, reward, *_ = env.step(action)
    q_table[state, action] += 0.1 * (reward + 0.9 * q_table[new].max() - q_table[state, action])
"""
KERAS = """import gym, tensorflow as tf
env = gym.make("CartPole-v1")
for step in range(3):
    model.train_on_batch(x, y)
    env.step(0)
"""
TENSORFLOW = """import tensorflow as tf
def main(env):
    with tf.GradientTape() as tape:
        loss = 0.0
    optimizer.apply_gradients(zip(tape.gradient(loss, v), v))
    env.step(0)
if __name__ == "__main__":
    main(None)
"""
BRAX = """from brax.training.agents.ppo import train as ppo
def main():
    ppo.train(environment=env, num_timesteps=1000)
if __name__ == "__main__":
    main()
"""
TIANSHOU = "from tianshou.trainer import OnpolicyTrainer\n" + MAIN + "OnpolicyTrainer(policy=p, max_epoch=3).run()\n"
LIGHTNING_FIT = "import pytorch_lightning as pl\nimport gym\n" + MAIN + "pl.Trainer(max_epochs=3).fit(model)\n"
IMPORTED = "from agents.core import Agent\nimport gym\n" + MAIN + "agent = Agent()\n    agent.train(steps=10)\n"
TOP_LEVEL = """from stable_baselines3 import DQN
model = DQN("MlpPolicy", "CartPole-v1")
model.learn(100)
"""
FACTORY = """import json
from agents.runner import Runner
if __name__ == "__main__":
    Runner(json.load(open("agent.json"))).train()
"""
RUNNER = """import importlib
class Runner:
    def train(self):
        self.agent = importlib.import_module("agents.core").Agent()
        self.env.step(self.agent.act(0))
"""
GRADIENT_STEP = """from core.ppo import ppo_step
def update(batch):
    ppo_step(batch)
def main_loop():
    update(agent.collect_samples(10))
main_loop()
"""
STEP = "def ppo_step(batch):\n    loss = batch.sum()\n    loss.backward()\n"
PLAYS = """import gym
from agents.core import Agent
def main():
    env = gym.make("Walker")
    agent = Agent()
    agent.load("best.pt")
    state, done = env.reset(), False
    while not done:
        state, reward, done, info = env.step(agent.act(state))
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("files", "train", "evaluation"),
    [
        ({"taxi.py": TABULAR}, ["taxi.py"], []),
        ({"dqn_cartpole.py": KERAS}, ["dqn_cartpole.py"], []),
        ({"ppo_tf2.py": TENSORFLOW}, ["ppo_tf2.py"], []),
        ({"walker.py": BRAX}, ["walker.py"], []),
        ({"mujoco_ppo.py": TIANSHOU}, ["mujoco_ppo.py"], []),
        ({"walker.py": LIGHTNING_FIT}, ["walker.py"], []),
        ({"experiments/walker.py": IMPORTED, "agents/core.py": AGENT}, ["experiments/walker.py"], []),
        ({"cartpole.py": TOP_LEVEL}, ["cartpole.py"], []),
        ({"examples/ppo_gym.py": GRADIENT_STEP, "core/ppo.py": STEP}, ["examples/ppo_gym.py"], []),
        (
            {"scripts/experiments.py": FACTORY, "agents/runner.py": RUNNER, "agents/core.py": AGENT},
            ["scripts/experiments.py"],
            [],
        ),
        ({"show_agent.py": PLAYS, "agents/core.py": AGENT}, [], ["show_agent.py"]),
        ({"test_walker.py": PLAYS, "agents/core.py": AGENT}, [], ["test_walker.py"]),
        ({"tests/test_walker.py": PLAYS, "agents/core.py": AGENT}, [], []),
        ({"test_core.py": "def test_agent():\n    assert env.step(load(0))\n", "agents/core.py": AGENT}, [], []),
        (
            {
                "walk/cli.py": "from agents.core import Agent\ndef train():\n    Agent().train()\n",
                "agents/core.py": AGENT,
                "setup.py": "from setuptools import setup\n"
                "setup(entry_points={'console_scripts': ['walk-train = walk.cli:train']})\n",
            },
            ["walk/cli.py"],
            [],
        ),
        (
            {
                "walk/learner.py": "from agents.core import Agent\nAgent().train()\n",
                "agents/core.py": AGENT,
                "Makefile": "train:\n\tpython -m walk.learner --steps 3\n",
            },
            ["walk/learner.py"],
            [],
        ),
        (
            {
                "walk/learner.py": "from agents.core import Agent\nAgent().train()\n",
                "agents/core.py": AGENT,
                "scripts/go.sh": "set -e\nCUDA_VISIBLE_DEVICES=0 python walk/learner.py \\\n  --steps 3\n",
            },
            ["walk/learner.py"],
            [],
        ),
    ],
    ids=["tabular", "keras", "tensorflow", "brax", "tianshou", "lightning", "imported", "top level",
         "step", "factory", "plays", "test_file",
         "unit test folder", "unit test", "setup.py", "makefile", "shell"],
)  # fmt: skip
def test_programs(tmp_path: Path, files: dict[str, str], train: list[str], evaluation: list[str]) -> None:
    found = scan(write_repo(tmp_path, files))
    assert found.facts.names("train") == train
    assert found.facts.names("eval") == evaluation


SUM = """import gymnasium as gym
class WalkEnv(gym.Env):
    def step(self, action):
        forward_reward = 1.25 * 0.5
        ctrl_cost = self.control_cost(action)
        healthy_reward = self.healthy_reward
        reward = forward_reward + healthy_reward - ctrl_cost
        return 0, reward, False, False, {}
"""
SUM_IN_STEPS = """class WalkEnv:
    def step(self, action):
        reward = 0.0
        reward += 0.5 * self._speed_bonus()
        reward -= 0.1 * effort
        if self.fell():
            reward -= 10
        return reward
"""
SUM_METHOD = """class WalkTask(Task):
    def get_reward(self, physics):
        upright = rewards.tolerance(physics.upright(), bounds=(0.9, 1))
        small_control = rewards.tolerance(physics.control(), margin=1)
        return small_control * upright
"""
DICT_OF_TERMS = """class WalkEnv:
    def step(self, action):
        rewards = {"speed": self._reward_speed(), "effort": -effort}
        rewards["alive"] = 1.0
        reward = sum(rewards.values())
        return reward
"""
SCALE_CLASS = """class Cfg:
    class reward_scales:
        tracking = 1.0
        slip = -0.04
    class rewards:
        sigma = 0.25
def train():
    Cfg.reward_scales.jump = 10.0
    Cfg.rewards.sigma = 0.3
"""
DATACLASS_WEIGHTS = """from dataclasses import dataclass
@dataclass
class RewardWeights:
    speed: float = 1.0
    effort: float = -0.1
@dataclass
class RewardNormalizer:
    epsilon: float = 1e-8
"""
CONFIG_TREE = """from ml_collections import config_dict
def default_config():
    return config_dict.create(
        ctrl_dt=0.02,
        reward_config=config_dict.create(
            scales=config_dict.create(tracking=1.0, pose=-0.5),
            tracking_sigma=0.25,
        ),
        noise_config=config_dict.create(scales=config_dict.create(gyro=0.2)),
    )
"""
SUBSCRIPTS = """class Walk(VecTask):
    def __init__(self, cfg):
        self.rew_scales = {}
        self.rew_scales["lin_vel_xy"] = cfg["env"]["learn"]["linearVelocityXYRewardScale"]
        self.rew_scales["torque"] = cfg["env"]["learn"]["torqueRewardScale"]
    def compute_reward(self):
        total = 0
"""
METHODS_ONLY = """class WalkEnv:
    def step(self, action):
        return sum(getattr(self, name)() for name in self.names)
    def _reward_speed(self):
        return 1.0
    def _reward_effort(self):
        return -1.0
"""
YAML_TREE = """env:
  rewards:
    sigma: 0.25
    weights: {fall: -2, speed: 1.0}
  noise:
    scales:
      gyro: 0.2
  reward_weights:
    smooth: -0.1
  learn:
    torqueRewardScale: -0.001
    jump_reward_weight: 3.0
"""
WEIGHTED = """class WalkEnv:
    def compute_reward(self, obs):
        r_near = -1.0
        r_goal = 2.0
        return self.w_near * r_near + self.w_goal * r_goal
"""
NESTED_PRODUCT = """class HoverTask(VecTask):
    def compute_reward(self):
        reward = pos_reward + pos_reward * (up_reward + spin_reward)
        self.rew_buf[:] = reward
"""
PRODUCT = """class BallTask(VecTask):
    def compute_reward(self):
        reward = pos_reward * speed_reward
        self.rew_buf[:] = reward
"""
AGENT_SETTINGS = """class Planner:
    def default_config(self):
        return {"terminal_reward": 0, "constraint_penalty": 0}
"""
REWARD_DICT = """class WalkTask:
    def calc_reward(self, action):
        reward = dict(speed=0.3 * self.speed(), effort=0.1 * effort)
        return reward
    def step(self):
        pass
    def reset(self):
        pass
"""
FACTORS = """class RoadEnv:
    def step(self, action):
        centering = max(1.0 - self.distance, 0.0)
        angle = abs(self.angle)
        reward = 1.0 * centering * angle
        return reward
"""
FUNCTIONS = """def reward_centering(env):
    speed_reward = env.speed / 10
    centering = 1.0 - env.distance
    reward = speed_reward + centering
    return reward
def foot_clearance_reward(env, sigma):
    foot_error = env.height - 0.1
    foot_speed = env.speed * 2
    reward = foot_error * foot_speed
    return reward
"""
NOT_TERMS = """class Buffer:
    def step(self, reward):
        reward = reward + self.gamma * self.next_value
        total_reward += reward
        return reward
class ScaleReward(gym.RewardWrapper):
    def reward(self, reward):
        return reward * self.scale + self.shift
"""


@pytest.mark.parametrize(
    ("path", "text", "terms"),
    [
        ("env.py", SUM, {"forward_reward", "healthy_reward", "ctrl_cost"}),
        ("env.py", SUM_IN_STEPS, {"speed_bonus", "effort"}),
        ("task.py", SUM_METHOD, {"small_control", "upright"}),
        ("env.py", DICT_OF_TERMS, {"speed", "effort", "alive"}),
        ("config.py", SCALE_CLASS, {"tracking", "slip", "jump"}),
        ("config.py", DATACLASS_WEIGHTS, {"speed", "effort"}),
        ("walk.py", CONFIG_TREE, {"tracking", "pose"}),
        ("walk.py", SUBSCRIPTS, {"lin_vel_xy", "torque"}),
        ("env.py", METHODS_ONLY, {"speed", "effort"}),
        ("config.yaml", YAML_TREE, {"fall", "speed", "smooth", "torqueRewardScale", "jump_reward_weight"}),
        ("env.py", WEIGHTED, {"r_near", "r_goal"}),
        ("hover.py", NESTED_PRODUCT, {"pos_reward", "up_reward", "spin_reward"}),
        ("ball.py", PRODUCT, {"pos_reward", "speed_reward"}),
        ("walk.py", REWARD_DICT, {"speed", "effort"}),
        ("road.py", FACTORS, {"centering", "angle"}),
        ("rewards.py", FUNCTIONS, {"speed_reward", "centering"}),
        ("planner.py", AGENT_SETTINGS, set()),
        ("buffer.py", NOT_TERMS, set()),
    ],
    ids=["sum", "steps", "product", "dict", "class", "dataclass", "tree", "subscripts", "methods", "yaml", "weighted",
         "nested", "rewards", "reward dict", "factors", "functions", "settings", "none"],
)  # fmt: skip
def test_reward_terms(tmp_path: Path, path: str, text: str, terms: set[str]) -> None:
    found = scan(write_repo(tmp_path, {path: text, "train.py": AGENT}))
    assert set(found.facts.names("reward term")) == terms
