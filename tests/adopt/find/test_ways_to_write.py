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


SELF_INFO = """import wandb
class Agent:
    def __init__(self):
        self.stats = {"best": 0.0}
    def update(self):
        self.stats["actor_loss"] = 1.0
        self.stats.update(critic_loss=2.0)
    def train(self):
        wandb.log(self.stats, step=1)
        wandb.log(self.collect() | {"fps": 3})
    def collect(self):
        return dict(episode_return=1.0)
"""
TUPLE_RETURN = """import wandb
from update import update
def train():
    state, info = update(state)
    state, (more, _) = update(state)
    wandb.log({f"train/{k}": v for k, v in info.items()})
"""
UPDATE = """def update(state):
    loss = 1.0
    return state, {"loss": loss, "kl": 0.1}
"""
DEFAULT_DICT = """import wandb
from collections import defaultdict
def train():
    metrics = defaultdict(list)
    metrics["loss"].append(1.0)
    metrics["entropy"] += [2.0]
    means = {name: sum(values) for name, values in metrics.items()}
    wandb.log(means)
"""
AS_DICT = """import wandb
from dataclasses import asdict, dataclass
@dataclass
class Stats:
    loss: float
    kl: float = 0.0
def train():
    stats = Stats(loss=1.0)
    wandb.log(asdict(stats))
"""
OWN_SCALAR = """class Log:
    def put(self, name, value, step):
        self.writer.add_scalar(name, value, step)
    def put_all(self, values, prefix=""):
        for key, value in values.items():
            self.writer.add_scalar(f"{prefix}/{key}", value)
def train(log):
    log.put("actor_loss", 0.1, 2)
    log.put_all({"speed": 1.0}, "eval")
"""
LOGGERS = """def train(self):
    self.logger.store(EpRet=1.0, EpLen=2)
    self.logger.log_tabular("AverageQ", 3.0)
    logger.record_tabular("Steps", 3)
    self._logger.add("train/loss", 1.0)
    logger.put("train/kl", 1.0)
    self.summary_writer.write({"speed": 1.0})
    logger.add({"slip": 2.0})
"""
TF_SUMMARIES = """import tensorflow as tf
def train():
    tf.summary.scalar("q_loss", loss, step=1)
    tf.compat.v1.summary.scalar("entropy", h)
    summary = tf.Summary(value=[tf.Summary.Value(tag="return", simple_value=3.0)])
    summary.value.add(tag="length", simple_value=1.0)
    tf.contrib.summary.scalar(name="kl", tensor=x)
"""
LIGHTNING_LOG = """import pytorch_lightning as pl
class Model(pl.LightningModule):
    def training_step(self, batch, index):
        self.log("train/loss", 1.0, prog_bar=True)
        self.log(name="kl", value=1.0)
        self.log_dict({"reward": 1.0})
        loss.backward()
"""
BY_KEYWORD = """from torch.utils.tensorboard import SummaryWriter
def train(writer):
    writer.add_scalar(tag="loss", scalar_value=1.0, global_step=3)
    writer.add_scalars("losses", {"actor": 1.0, "critic": 2.0}, 3)
    wandb.log(data={"return": 1.0})
"""
CSV_ROWS = """import csv, pandas as pd
def train():
    rows = []
    rows.append({"episode": 1, "score": 2.0})
    pd.DataFrame(rows).to_csv("progress.csv")
    pd.DataFrame({"length": [1]}).to_csv("eval.csv")
    pd.DataFrame({"pixel": [1]}).to_csv("map.csv")
"""
JAX_METRICS = """import jax, wandb
def loss_fn(params, batch):
    return loss, {"actor_loss": loss, "entropy": 0.1}
def update(state, batch):
    (loss, aux), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params, batch)
    return state, aux
def train(writer):
    state, info = update(state, batch)
    for name, value in info.items():
        writer.add_scalar(f"training/{name}", value, 3)
"""
MERGED = """import wandb
def train(trainer):
    metrics = {"loss": 1.0}
    metrics |= {"kl": 1.0}
    metrics.setdefault("steps", 3)
    logs = {"train": metrics, **metrics}
    logs = {**metrics, "fps": 2}
    wandb.log(logs)
"""


@pytest.mark.parametrize(
    ("files", "tags"),
    [
        ({"a.py": SELF_INFO}, {"best", "actor_loss", "critic_loss", "fps", "episode_return"}),
        ({"a.py": TUPLE_RETURN, "update.py": UPDATE}, {"train/loss", "train/kl"}),
        ({"a.py": DEFAULT_DICT}, {"loss", "entropy"}),
        ({"a.py": AS_DICT}, {"loss", "kl"}),
        ({"a.py": OWN_SCALAR}, {"actor_loss", "eval/speed"}),
        ({"a.py": LOGGERS}, {"EpRet", "EpLen", "AverageQ", "Steps", "train/loss", "train/kl", "speed", "slip"}),
        ({"a.py": TF_SUMMARIES}, {"q_loss", "entropy", "return", "length", "kl"}),
        ({"a.py": LIGHTNING_LOG}, {"train/loss", "kl", "reward"}),
        ({"a.py": BY_KEYWORD}, {"loss", "losses/actor", "losses/critic", "return"}),
        ({"a.py": CSV_ROWS}, {"episode", "score", "length"}),
        ({"a.py": JAX_METRICS}, {"training/actor_loss", "training/entropy"}),
        ({"a.py": MERGED}, {"loss", "kl", "steps", "train", "fps"}),
    ],
    ids=["attribute", "tuple", "defaultdict", "asdict", "own method", "loggers", "tensorflow", "lightning", "keywords",
         "csv", "jax", "merged"],
)  # fmt: skip
def test_metric_tags(tmp_path: Path, files: dict[str, str], tags: set[str]) -> None:
    found = scan(write_repo(tmp_path, {**files, "train.py": AGENT}))
    assert set(found.facts.names("metric tag")) == tags


SAVES = """import torch, pickle, joblib, os
import numpy as np
from pathlib import Path
from flax.training import checkpoints
import orbax.checkpoint as ocp
from stable_baselines3.common.callbacks import CheckpointCallback
{code}
"""


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('def save(model, step):\n    torch.save(model, f"{folder}/agent-{step}.pt")', ["agent-*.pt"]),
        ('def save(self, name):\n    torch.save(1, name + "_actor")\n    torch.save(2, name + "_critic")',
         ["*_actor", "*_critic"]),
        ('def save(self):\n    path = Path(self.folder)\n    torch.save(1, path / "last.pth")', ["last.pth"]),
        ('model.save_pretrained("policy_final")', ["policy_final"]),
        ('self.actor.save_weights(self.folder + "/actor.h5")', ["actor.h5"]),
        ('saver = tf.train.Saver()\nsaver.save(sess, os.path.join(folder, "walk"), global_step=3)', ["walk-*"]),
        ('checkpoint = tf.train.Checkpoint(a=1)\nsaves = tf.train.CheckpointManager(checkpoint, folder)\nsaves.save()',
         ["ckpt-*"]),
        ('checkpoints.save_checkpoint(ckpt_dir=folder, target=state, step=3)', ["checkpoint_*"]),
        ('checkpoints.save_checkpoint(folder, state, 3, prefix="walk_")', ["walk_*"]),
        ('np.savez("weights.npz", **params)', ["weights.npz"]),
        ('np.savez(folder + "/best_agent", w=params)', ["best_agent.npz"]),
        ('np.save("q_table.npy", q_table)', ["q_table.npy"]),
        ('with open("q_table.pkl", "wb") as file:\n    pickle.dump(q_table, file)', ["q_table.pkl"]),
        ('with open(f"agent_{1}.pkl", "wb") as file:\n    pickle.dump(agent, file)', ["agent_*.pkl"]),
        ('joblib.dump(policy, "policy.joblib")', ["policy.joblib"]),
        ('CheckpointCallback(save_freq=10, save_path="logs", name_prefix="walk")', ["walk_*_steps.zip"]),
        ('CheckpointCallback(10, "logs")', ["rl_model_*_steps.zip"]),
        ('class Actor:\n    def __init__(self, name, folder="tmp"):\n'
         '        self.checkpoint_file = os.path.join(folder, name + "_ddpg")\n'
         '    def save(self):\n        torch.save(self.state_dict(), self.checkpoint_file)', ["*_ddpg"]),
        ('import argparse\nparser = argparse.ArgumentParser()\n'
         'parser.add_argument("--save_path", default="models/walk.pt")\nargs = parser.parse_args()\n'
         'torch.save(1, args.save_path)', ["walk.pt"]),
        ('PATH = "walk.pt"\ndef save():\n    torch.save(1, PATH)', ["walk.pt"]),
        ('def save(name):\n    torch.save(1, "{}/{}_best.pt".format(folder, name))', ["*_best.pt"]),
        ('def save(self, path):\n    torch.save(1, os.path.join(path, "actor.pth"))\nagent.save("out")', ["actor.pth"]),
        ('from flax import serialization\nwith open("walk.msgpack", "wb") as f:\n  f.write(serialization.to_bytes(p))',
         ["walk.msgpack"]),
        ('trainer.save_checkpoint("walk.ckpt")\nfig.save("walk.png")', ["walk.ckpt"]),
        ('df.to_pickle("data.pkl")\npickle.dump(replay_buffer, open("buffer.pkl", "wb"))', []),
    ],
)  # fmt: skip
def test_checkpoints(tmp_path: Path, code: str, names: list[str]) -> None:
    found = scan(write_repo(tmp_path, {"learn.py": SAVES.replace("{code}", code), "train.py": AGENT}))
    assert list(found.facts.names("checkpoint")) == names


def environment(body: str, *, name: str = "step") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"import numpy as np\nimport gym\nclass WalkEnv(gym.Env):\n    def {name}(self, action):\n{lines}\n"


@pytest.mark.parametrize(
    ("name", "body", "terms"),
    [
        ("step", "speed_rew = 1.0\nctrl = 2.0\nrew = speed_rew - 0.1 * ctrl\nreturn 0, rew, False, {}",
         {"speed_rew", "ctrl"}),
        ("step", "forward = v * 2\ncontrol = -0.1 * np.square(action).sum()\nreturn 0, forward + control, False, {}",
         {"forward", "control"}),
        ("step", "progress = 1.0\neffort = 2.0\nreward = np.where(fell, -1.0, progress - effort)\n"
         "return 0, reward, 0, {}",
         {"progress", "effort"}),
        ("_get_reward", "near = 1.0\ngrasped = 2.0\nreturn torch.where(done, 0.0, near + grasped), {}",
         {"near", "grasped"}),
        ("step", "alive = 1.0\nprogress = 2.0\nself.rewards = [alive, progress]\n"
         "return 0, sum(self.rewards), False, {}",
         {"alive", "progress"}),
        ("_reward", "near = 1.0\nlift = 2.0\nreward = np.dot([near, lift], self.weights)\n"
         "return reward", {"near", "lift"}),
        ("_compute_reward", "reward_near = 1.0\nreward_ctrl = 2.0\n"
         "reward = np.sum([reward_near, reward_ctrl])\nreturn reward",
         {"reward_near", "reward_ctrl"}),
        ("step", "a = 1\nreward = self._compute(a)\n"
         "info = dict(reward_dist=near, reward_ctrl=ctrl)\nreturn 0, reward, 0, info",
         {"reward_dist", "reward_ctrl"}),
        ("step", 'reward = self._compute(a)\ninfo["rewards"] = {"near": 1.0, "lift": 2.0}\nreturn 0, reward, 0, info',
         {"near", "lift"}),
        ("step", 'reward = 0\nself.extras["rew_near"] = near\nself.extras["rew_lift"] = lift\nreturn 0, reward, 0, {}',
         {"rew_near", "rew_lift"}),
        ("reward_function", "if collided:\n    return -10\nspeed = 1.0\nheading = 2.0\nr = speed\n"
         "r = r + heading\nreturn r",
         {"speed", "heading"}),
        ("reward", "dist_bonus = 1.0\nfall = 3.0\ntotal = dist_bonus\ntotal -= fall\n"
         "return total", {"dist_bonus", "fall"}),
        ("get_reward", "near = 1.0\nlift = 2.0\nreturn dict(reward=near + lift, near=near)", {"near", "lift"}),
    ],
)  # fmt: skip
def test_rewards_of_environments(tmp_path: Path, name: str, body: str, terms: set[str]) -> None:
    found = scan(write_repo(tmp_path, {"walk_env.py": environment(body, name=name), "train.py": AGENT}))
    assert set(found.facts.names("reward term")) == terms


def test_a_repository_that_is_itself_a_package_is_scanned(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, {"__init__.py": "", "envs/__init__.py": "", "envs/train.py": TABULAR}))
    assert found.facts.names("train") == ["envs/train.py"]
