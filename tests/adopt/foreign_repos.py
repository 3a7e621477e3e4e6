"""Small repositories in the form of well-known ones, written for the tests."""

from __future__ import annotations

from pathlib import Path

ONE_FILE = {
    "agent/walk.py": '''"""One file per algorithm."""
import random
from dataclasses import dataclass

import gymnasium as gym
import torch
import tyro
from torch.utils.tensorboard import SummaryWriter


@dataclass
class Args:
    seed: int = 7
    """the seed"""
    env_id: str = "Walk-v1"
    total_timesteps: int = 400 * 100
    learning_rate: float = 1e-3
    track: bool = False


def main():
    args = tyro.cli(Args)
    random.seed(args.seed)
    writer = SummaryWriter(f"runs/{args.env_id}__{args.seed}")
    envs = gym.vector.SyncVectorEnv([lambda: gym.make(args.env_id)])
    observations, infos = envs.reset(seed=args.seed)
    loss = torch.zeros(1, requires_grad=True)
    loss.backward()
    if "final_info" in infos:
        writer.add_scalar("charts/episodic_return", 1.0, 10)
    writer.add_scalar("losses/value_loss", loss.item(), 10)
    torch.save({}, f"runs/{args.env_id}/walk.pt")


if __name__ == "__main__":
    main()
''',
    "requirements.txt": "gymnasium>=1.0\ntyro==0.9\ntorch\n",
    "README.md": "```\npython agent/walk.py --seed 3\n```\n",
}
TERMS = {
    "robot/tasks/env_cfg.py": """from isaaclab.managers import RewardTermCfg as Rew
from isaaclab.managers import TerminationTermCfg as DoneTerm
from isaaclab.managers import EventTermCfg
from isaaclab.managers import CurriculumTermCfg

from . import mdp


class RewardsCfg:
    forward = Rew(func=mdp.forward, weight=1.5)
    effort = Rew(func=mdp.effort, weight=-0.01)


class TerminationsCfg:
    time_out = DoneTerm(func=mdp.time_out, time_out=True)
    late = DoneTerm(func=mdp.timeout_of_goal)
    fell = DoneTerm(func=mdp.fell)


class EventsCfg:
    friction = EventTermCfg(func=mdp.randomize_friction, mode="startup")


class CurriculumCfg:
    terrain = CurriculumTermCfg(func=mdp.levels)
""",
    "scripts/train.py": """import argparse
import os
from datetime import datetime

parser = argparse.ArgumentParser()
parser.add_argument("--task", required=True)
parser.add_argument("--seed", type=int, default=None)
parser.add_argument("--max_iterations", type=int, default=None)


def main(args):
    from rsl_rl.runners import OnPolicyRunner

    log_dir = os.path.join("logs", "rsl_rl", args.task, datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    runner = OnPolicyRunner(None, {}, log_dir)
    runner.learn(num_learning_iterations=args.max_iterations)


if __name__ == "__main__":
    main(parser.parse_args())
""",
    "scripts/play.py": 'import torch\nif __name__ == "__main__":\n    torch.load("model_1.pt")\n',
    "isaaclab.sh": "#!/bin/sh\n",
    "slurm/run.sbatch": "#!/bin/sh\n#SBATCH --gres=gpu:1\npython scripts/train.py\n",
}
NESTED = {
    "legs/config.py": """class Config:
    class rewards:
        class scales:
            speed = 1.0
            ghost = -2.0
            off = 0.0

    class domain_rand:
        push_robots = True
""",
    "legs/env.py": """class LegsEnv:
    def step(self, action):
        self.t += 1
        done = self.t >= self.max_steps
        return self.obs, self.reward, done, False, {}

    def _reward_speed(self):
        return 1.0
""",
    "train.py": """from rsl_rl.runners import OnPolicyRunner

if __name__ == "__main__":
    OnPolicyRunner(None, {}, "logs/x").learn(10)
""",
}
HYDRA = {
    "train.py": """import hydra
import torch
from envs import make


@hydra.main(config_path="conf", config_name="main")
def main(cfg):
    env = make(cfg.task, cfg.seed)
    eval_env = make(cfg.task, cfg.seed)
    torch.manual_seed(cfg.seed)
    with open("best.pt", "wb") as f:
        torch.save({}, f)
    logger.log("episode_return", 1.0, 5)


if __name__ == "__main__":
    main()
""",
    "envs.py": "def make(task, seed):\n    return (task, seed)\n",
    "conf/main.yaml": "defaults:\n  - algo: ppo\n  - _self_\nseed: 2\ntotal_steps: 5000\ntask: hop\n",
    "conf/algo/ppo.yaml": "lr: 0.001\n",
    "environment.yml": "name: hop\ndependencies:\n  - pip:\n    - hydra-core==1.3\n",
}


def write_repo(root: Path, files: dict[str, str]) -> Path:
    """Write a repository and return its folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
