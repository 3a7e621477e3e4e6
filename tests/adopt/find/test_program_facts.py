"""The finders read the forms in which programs name their metrics, checkpoints, options and trainings."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.adopt.scan import Scan, scan
from tests.adopt.foreign_repos import write_repo

LEARNER = """import torch


class Learner:
    def update(self, batch):
        loss = torch.zeros(1, requires_grad=True)
        loss.backward()
"""


def tags(tmp_path: Path, body: str) -> set[str]:
    lines = ["import torch, wandb", "def train(logger):", *(f"    {line}" for line in body.splitlines())]
    lines += ["    torch.ones(1).backward()", "train(0)", ""]
    return set(scan(write_repo(tmp_path, {"train.py": "\n".join(lines)})).facts.names("metric tag"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("logger.log('eval/return', 1.0, 3)", {"eval/return"}),
        ("with logger.at(3, ty='eval') as log:\n    log('return', 1.0)", {"eval/return"}),
        ("found = dict(reward=1)\nfound.update(step=3)\nlogger.log(found, 'eval')", {"eval/reward", "eval/step"}),
        ("logger.log_metrics(agent.update(), 3, ty='train')", {"train/*"}),
        ("logs = {'loss': 1.0}\nlogs['score'] = 2.0\nwandb.log({'speed': 1, **logs})", {"speed", "loss", "score"}),
        ("wandb.log({'film': wandb.Video('a.mp4'), 'loss': 1.0})", {"loss"}),
        ("wandb.log({f'train/{k}': v for k, v in found.items()})", {"train/*"}),
        ("import math\nmath.log(3.0)\nprint('speed', 1.0)", set()),
        (
            "rows = [('frame', 1, '%d'), ('score', 2.0, '%.2f')]\n"
            "writer.write(OrderedDict((n, v) for n, v, _ in rows))",
            {"frame", "score"},
        ),
        ("wandb.log(dict([('loss', 1.0), ('speed', 2)]))", {"loss", "speed"}),
        ("rows = [('loss', 1.0)]\nlogger.log_dict({name: value for name, value in rows})", {"loss"}),
        ("logger.scalar('episode/score', 1.0)\ntf.summary.scalar('loss', 1.0, 3)", {"episode/score", "loss"}),
        ("stats = {'loss': 1.0, 'kl': 2}\nfor k, v in stats.items():\n    writer.add_scalar(k, v, 3)", {"loss", "kl"}),
        (
            "stats = {'loss': 1.0, 'kl': 2}\nfor k, v in stats.items():\n    writer.add_scalar(f'train/{k}', v, 3)",
            {"train/loss", "train/kl"},
        ),
        ("stats = {'kl': 2}\nfor k in stats.keys():\n    writer.add_scalar('train/' + k, 1.0, 3)", {"train/kl"}),
        ("stats = {'kl': 2}\nwandb.log({f'train/{k}': v for k, v in stats.items()})", {"train/kl"}),
        ("stats = {f'env/{k}': v for k, v in stats.items()}\nwandb.log(stats)", {"env/*"}),
        ("for k, v in found.items():\n    writer.add_scalar(f'train/{k}', v, 3)", {"train/*"}),
        ("for name in ('loss', 'kl'):\n    writer.add_scalar(name, 1.0, 3)", {"loss", "kl"}),
        ("SCORE = 'train/score'\nwriter.add_scalar(SCORE, 1.0, 3)", {"train/score"}),
        ("table.write('episode,step,reward\\n')\ntable.write('{},{}\\n'.format(1, 2))", {"episode", "step", "reward"}),
        ("csv.writer(open('a.csv', 'w')).writerow(['step', 'return'])", {"step", "return"}),
        ("csv.DictWriter(open('a.csv', 'w'), fieldnames=['step', 'return'])", {"step", "return"}),
        ("writer.add_scalar('Max. Q', 1.0, 3)\nlogger.log('a remark', 1.0)", {"Max. Q"}),
        ("model.write_value_to_summary('eval/reward', 1.0, 3)\nlog_value_error('no file', 1.0)", {"eval/reward"}),
        ("L.log('train/loss', loss, 3)\nlogging.log(20, 'done')", {"train/loss"}),
        ("logger.store_metrics(loss=1.0, kl=2.0)\nlogger.store_metrics(**found)", {"loss", "kl"}),
        ("writer.add_scalar('train/%s' % name, 1.0, 3)", {"train/*"}),
        ("print('loss, done\\n')\nout.write('hello, world\\n')", set()),
    ],
)  # fmt: skip
def test_metric_tags(tmp_path: Path, body: str, expected: set[str]) -> None:
    assert tags(tmp_path, body) == expected


def test_tags_named_by_constants_of_another_module(tmp_path: Path) -> None:
    names = "LOSS = 'losses/total'\nclass Tags:\n    SCORE = 'eval/score'\n"
    source = """from names import LOSS, Tags
import torch
def train(writer):
    torch.ones(1).backward()
    writer.add_scalar(LOSS, 1.0, 0)
    writer.add_scalar(Tags.SCORE, 1.0, 0)
if __name__ == "__main__":
    train(0)
"""
    found = scan(write_repo(tmp_path, {"train.py": source, "names.py": names}))
    assert found.facts.names("metric tag") == ["losses/total", "eval/score"]


def test_a_dict_that_a_function_returns_is_followed(tmp_path: Path) -> None:
    source = """import torch
class Trainer:
    def eval(self):
        return dict(reward=1.0)
    def train(self):
        torch.ones(1).backward()
        metrics = self.eval()
        self.logger.log(metrics, "eval")
if __name__ == "__main__":
    Trainer().train()
"""
    assert scan(write_repo(tmp_path, {"train.py": source})).facts.names("metric tag") == ["eval/reward"]


def test_a_dict_that_a_method_of_another_file_returns_is_followed(tmp_path: Path) -> None:
    agent = """import torch
class Agent:
    def update(self, batch):
        torch.ones(1).backward()
        return {"loss": 1.0, "return": 2.0}
"""
    train = """from agent import Agent
import torch
def train(writer):
    agent = Agent()
    stats = agent.update(None)
    for key, value in stats.items():
        writer.add_scalar(f"train/{key}", value, 0)
    writer.add_scalars(torch.load("other"))
if __name__ == "__main__":
    train(0)
"""
    found = scan(write_repo(tmp_path, {"train.py": train, "agent.py": agent}))
    assert found.facts.names("metric tag") == ["train/loss", "train/return"]


def test_a_main_program_with_an_imported_learner_trains(tmp_path: Path) -> None:
    main = """import argparse
from learner import Learner
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    Learner().update(None)
"""
    found = scan(write_repo(tmp_path, {"main.py": main, "learner.py": LEARNER}))
    assert found.facts.names("train") == ["main.py"]
    assert found.facts.names("seed") == ["--seed"]


def test_a_main_program_that_only_starts_an_imported_learner_trains(tmp_path: Path) -> None:
    learner = LEARNER + "\n    def run(self):\n        self.update(None)\n"
    main = """import argparse
def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    from learner import Learner
    Learner().run()
if __name__ == "__main__":
    run()
"""
    found = scan(write_repo(tmp_path, {"code/main.py": main, "code/learner.py": learner, "runner.py": main}))
    assert sorted(found.facts.names("train")) == ["code/main.py", "runner.py"]


@pytest.mark.parametrize("guard", ["", 'if __name__ == "__main__":\n    pass\n'])
def test_a_main_program_that_steps_an_environment_with_a_learner_trains(tmp_path: Path, guard: str) -> None:
    main = """import gym
from learner import Learner
from torch.utils.tensorboard import SummaryWriter
env = gym.make("Walker")
writer = SummaryWriter()
agent = Learner()
for step in range(1000):
    state, reward, done, info = env.step(agent.act(None))
    agent.step(reward)
    writer.add_scalar("reward", reward, step)
"""
    play = main.replace("writer.add_scalar", "print").replace("agent = Learner()", "agent = Learner()\nagent.load('a')")
    learner = LEARNER + "\n    def step(self, reward):\n        self.update(reward)\n"
    files = {"main.py": main + guard, "play/main.py": play + guard, "learner.py": learner}
    assert scan(write_repo(tmp_path, files)).facts.names("train") == ["main.py"]


def test_a_stored_replay_buffer_is_not_a_checkpoint(tmp_path: Path) -> None:
    source = """import pickle
def save(buffer, name):
    with open("checkpoints/buffer_{}.pkl".format(name), "wb") as file:
        pickle.dump(buffer, file)
"""
    assert not checkpoints(tmp_path, {"train.py": source}).facts.names("checkpoint")


def test_a_main_program_that_builds_no_learner_does_not_train(tmp_path: Path) -> None:
    main = "import learner\nif __name__ == '__main__':\n    print(learner.__doc__)\n"
    assert not scan(write_repo(tmp_path, {"main.py": main, "learner.py": LEARNER})).facts.names("train")


def test_a_test_program_that_loads_a_policy_and_steps_evaluates(tmp_path: Path) -> None:
    test = """import gym, torch
from learner import Learner
def test():
    env = gym.make("Walker")
    policy = Learner()
    policy.load("policy.pth")
    state, reward, done, info = env.step(policy.act(env.reset()))
if __name__ == "__main__":
    test()
"""
    unit = "import learner\nif __name__ == '__main__':\n    assert learner.Learner()\n"
    found = scan(write_repo(tmp_path, {"test.py": test, "learner.py": LEARNER, "parts/test.py": unit}))
    assert found.facts.names("eval") == ["test.py"]


def test_options_of_a_docopt_program_and_its_yaml_file(tmp_path: Path) -> None:
    source = '''"""Train.

Usage:
    train.py [options]

Options:
    --config=<path>     The config file [default: ./configs/cart.yaml].
    --seed=<number>     The seed [default: 3].
    --cpu               Use no GPU.
"""
from docopt import docopt
import torch, yaml

def main():
    options = docopt(__doc__)
    config = yaml.safe_load(open(options["--config"]))
    torch.ones(1).backward()

if __name__ == "__main__":
    main()
'''
    found = scan(write_repo(tmp_path, {"train.py": source, "configs/cart.yaml": "gamma: 0.99\n"}))
    assert found.facts.names("config system") == ["docopt", "yaml"]
    assert found.facts.names("seed") == ["--seed="]
    rows = [(row.key, row.default, row.is_switch) for row in found.programs["train.py"].options]
    assert rows == [("config", "./configs/cart.yaml", False), ("seed", 3, False), ("cpu", None, True)]


def test_a_table_of_finetuning_scores_is_not_a_training(tmp_path: Path) -> None:
    table = "import pandas\nif __name__ == '__main__':\n    print(1)\n"
    found = scan(write_repo(tmp_path, {"get_finetune_scores.py": table, "learner.py": LEARNER}))
    assert not found.facts.names("train")


def checkpoints(tmp_path: Path, files: dict[str, str]) -> Scan:
    return scan(write_repo(tmp_path, files))


def test_a_checkpoint_path_is_found_at_the_callers(tmp_path: Path) -> None:
    files = {
        "store.py": "import torch\ndef save_all(step, path):\n    torch.save({}, path)\n",
        "train.py": "from store import save_all\nimport torch\ntorch.ones(1).backward()\n"
        "for step in range(3):\n    save_all(step, f'models/{step}_final.pt')\n",
    }
    assert checkpoints(tmp_path, files).facts.names("checkpoint") == ["*_final.pt"]


def test_a_checkpoint_whose_name_is_completed_where_it_is_saved(tmp_path: Path) -> None:
    save = "import torch\ndef save_checkpoint(name, state):\n    torch.save(state, name + '.pth')\n"
    main = "from save import save_checkpoint\nif __name__ == '__main__':\n    save_checkpoint('last', {})\n"
    found = checkpoints(tmp_path, {"train.py": main, "save.py": save})
    assert found.facts.names("checkpoint") == ["*.pth"]


def test_a_checkpoint_that_another_function_saves_by_torch(tmp_path: Path) -> None:
    source = """import torch
def safe_save(state, filename):
    return retried(torch.save, state, filename)
def save(name, state):
    safe_save(state, name + ".pth")
"""
    assert checkpoints(tmp_path, {"train.py": source}).facts.names("checkpoint") == ["*.pth"]


def test_a_pickled_model_is_a_checkpoint(tmp_path: Path) -> None:
    source = """import pickle
class Trainer:
    def save(self):
        pickle.dump((self.model.state_dict(), self.config), open("./models/" + self.run_id + ".nn", "wb"))
        pickle.dump(self.buffer, open("replay.bin", "wb"))
"""
    assert checkpoints(tmp_path, {"train.py": source}).facts.names("checkpoint") == ["*.nn"]


@pytest.mark.parametrize(
    ("save", "expected"),
    [
        ("torch.save({}, '%s/actor_%03d.pt' % (folder, step))", ["actor_*.pt"]),
        ("logger.torch_save({}, f'checkpoints/weights_{step:06d}.pt')", ["weights_*.pt"]),
        ("path = Path(path) if path else Path('policy.pt')\n    torch.save({}, path)", ["policy.pt"]),
        ("model.learn(10, callback=EvalCallback(env, best_model_save_path=folder))", ["best_model.zip"]),
        ("name = f'{step}.pt'\n    path = folder / name\n    torch.save({}, path)", ["*.pt"]),
        ("agent.save_policy(f'models/{step}/level/')", []),
        ("pickle.dump(params, open('run/log.pkl', 'wb'))", []),
        ("data.save_table('scores.csv')", []),
    ],
)
def test_ways_to_save_a_checkpoint(tmp_path: Path, save: str, expected: list[str]) -> None:
    source = f"import torch\ndef save(step, folder, path=None):\n    {save}\n"
    assert checkpoints(tmp_path, {"train.py": source}).facts.names("checkpoint") == expected


def test_a_checkpoint_path_that_another_method_sets(tmp_path: Path) -> None:
    source = """import os, torch
class Encoder:
    def __init__(self):
        self.model_file = os.path.join("models", "encoder.pth")
    def save(self):
        torch.save(self.state_dict(), self.model_file)
class Decoder:
    def __init__(self):
        self.model_file = os.path.join("models", "decoder.pth")
    def save(self):
        torch.save(self.state_dict(), self.model_file)
"""
    found = checkpoints(tmp_path, {"train.py": source})
    assert found.facts.names("checkpoint") == ["encoder.pth", "decoder.pth"]


def test_films_and_tables_are_not_checkpoints(tmp_path: Path) -> None:
    source = "import torch\nfor i in range(3):\n    torch.ones(1).backward()\n    recorder.save(f'{i}_policy.mp4')\n"
    assert not checkpoints(tmp_path, {"train.py": source}).facts.names("checkpoint")


def test_options_of_a_parsed_dataclass(tmp_path: Path) -> None:
    source = """from dataclasses import dataclass
import pyrallis, torch
@dataclass
class TrainConfig:
    train_seed: int = 3
    learning_rate: float = 1e-3
@pyrallis.wrap()
def train(config: TrainConfig):
    torch.ones(1).backward()
if __name__ == "__main__":
    train()
"""
    found = scan(write_repo(tmp_path, {"train.py": source}))
    assert found.facts.names("config system") == ["dataclass"]
    assert [(fact.name, fact.value) for fact in found.facts.of("seed")] == [("--train_seed", 3)]


def test_hydra_before_version_one_names_the_file_in_its_path(tmp_path: Path) -> None:
    source = """import hydra, torch
@hydra.main(config_path="config/train.yaml", strict=True)
def main(cfg):
    torch.ones(1).backward()
if __name__ == "__main__":
    main()
"""
    found = scan(write_repo(tmp_path, {"train.py": source, "config/train.yaml": "seed: 4\n"}))
    assert [(fact.name, fact.value, fact.file) for fact in found.facts.of("seed")] == [
        ("seed=", 4, "config/train.yaml")
    ]


def test_vector_environments_of_sb3_alone_are_not_its_training(tmp_path: Path) -> None:
    vector = "from stable_baselines3.common.vec_env import SubprocVecEnv\nimport torch\n"
    vector += "for i in range(1):\n    torch.ones(1).backward()\n"
    assert scan(write_repo(tmp_path, {"train.py": vector})).profile.name == "generic"
    learns = "from stable_baselines3 import PPO\nfor i in range(1):\n    PPO('MlpPolicy', 'CartPole-v1').learn(100)\n"
    other = tmp_path / "other"
    assert scan(write_repo(other, {"train.py": learns})).profile.name == "Stable-Baselines3"


def test_reward_weights_of_a_plain_config_class(tmp_path: Path) -> None:
    source = """import torch
class WalkEnvCfg:
    rew_alive = 1.0
    rew_scale_effort: float = -0.1
    lin_vel_reward_scale = 2.0
    rew_clip = 5.0
    reward_scale = 0.1
    decimation = 4
class WalkEnv:
    def step(self, action):
        return 0
"""
    found = scan(write_repo(tmp_path, {"env.py": source}))
    assert {fact.name: fact.value for fact in found.facts.of("reward term")} == {
        "rew_alive": 1.0,
        "rew_scale_effort": -0.1,
        "lin_vel_reward_scale": 2.0,
    }


def test_a_term_in_a_local_variable_has_no_name_of_its_own(tmp_path: Path) -> None:
    source = """from isaaclab.managers import RewardTermCfg as RewTerm
class RewardsCfg:
    upright = RewTerm(func=mdp.upright, weight=1.0)
    def add(self, name):
        term = RewTerm(func=mdp.other, weight=1.0)
        setattr(self, name, term)
"""
    assert scan(write_repo(tmp_path, {"env.py": source})).facts.names("reward term") == ["upright"]


def test_a_library_that_can_use_a_framework_is_not_a_project_of_it(tmp_path: Path) -> None:
    wrapper = (
        "import torch\ndef make(reward):\n    from mjlab.tasks.registry import load_env_cfg\n    return load_env_cfg\n"
    )
    found = scan(
        write_repo(
            tmp_path, {"train.py": LEARNER + "\nLearner().update(0)\nfor _ in []: pass\n", "wrapper.py": wrapper}
        )
    )
    assert found.facts.names("train") == ["train.py"]
    assert found.profile.name == "generic"


def test_reward_weights_in_yaml_files(tmp_path: Path) -> None:
    text = """rewards:
  only_positive: false
  reward_scales:
      # penalty_torques: -0.1
      tracking: 1.0
      penalty_slip: -1.0e-3  # small

  tracking_sigma:
    lin_vel: 0.25
env:
  rewards:
    scales: {fall: -2}
  obs:
    scales:
      lin_vel: 2.0
"""
    found = scan(write_repo(tmp_path, {"config/rewards/walk.yaml": text, "train.py": LEARNER}))
    assert [(fact.name, fact.value, fact.line) for fact in found.facts.of("reward term")] == [
        ("tracking", 1.0, 5),
        ("penalty_slip", -0.001, 6),
        ("fall", -2.0, 12),
    ]


def test_a_program_that_reads_a_yaml_file_by_itself(tmp_path: Path) -> None:
    source = """import argparse, os, torch, yaml
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=os.path.join("config", "walk.yaml"))
    settings = yaml.load(open(parser.parse_args().config), Loader=yaml.SafeLoader)
    torch.ones(1).backward()
"""
    found = scan(write_repo(tmp_path, {"train.py": source, "config/walk.yaml": "gamma: 0.9\n"}))
    assert found.facts.names("config system") == ["argparse", "yaml"]
    assert found.programs["train.py"].options[0].default == "config/walk.yaml"
