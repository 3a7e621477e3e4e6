"""Measure training steps per second on a torch grid world: rlx's learner on the adapter, and the original lab.

    python bench/batched.py [--original DIR]

The original is autoRL with simverse: `git clone https://github.com/harshbhatt7585/autoRL DIR`, at the parent of commit
8290e9d, the last one with its example mission (a 5 × 5 world with a key and a door). With --original, its own evaluator
trains that mission, and rlx trains the same class with the same settings. Without it, a plain torch loop stands for it,
on the torch template of `rlx lab new`; it does less than the original's trainer, so it is faster.

The machine may be busy, so the figure is steps per CPU-second, with one thread per side. For rlx, that is the
difference of a long and a short training, so that its start does not count; its environment process counts. rlx also
trains several seeds side by side, the original one after another; that gain is left out. The script writes
bench/batched.md and exits with 1 below 5×.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_suffix(".md")
PROMISED = 5.0
WORLDS = (32, 256, 1024)
ORIGINAL_WORLDS = 32
ROLLOUT = 20
EPOCHS = 2
BATCH_PER_WORLD = 4
HIDDEN = 128
LIMIT = 20
EPISODES = 16
PLAIN_STEPS = 20_000
LENGTHS = {32: (20_000, 100_000), 256: (60_000, 300_000), 1024: (200_000, 800_000)}
"""The short and the long training of rlx by the number of worlds."""
ADAPTED = """\
import sys
from types import SimpleNamespace

sys.path[:0] = {paths!r}
from candidate.env import CandidateEnv


class TrainingEnv(CandidateEnv):
    def __init__(self, num_envs=1, max_steps=20):
        super().__init__(SimpleNamespace(max_steps=max_steps, num_envs=num_envs), num_envs=num_envs)
"""


def original_paths(folder: Path) -> list[str]:
    return [str(folder), str(folder / "vendor" / "simverse" / "src")]


def train_original(folder: Path) -> None:
    """Let the original train and evaluate its mission; print its training's steps and CPU-seconds."""
    sys.path[:0] = original_paths(folder)
    import framework
    import torch

    torch.set_num_threads(1)
    train = framework.Simulator.train
    steps = seconds = 0.0

    def timed(simulator: Any, *given: Any, **named: Any) -> Any:
        nonlocal steps, seconds
        step = simulator.env.step

        def counted(actions: Any) -> Any:
            nonlocal steps
            steps += simulator.env.num_envs
            return step(actions)

        simulator.env.step = counted
        began = time.process_time()
        try:
            return train(simulator, *given, **named)
        finally:
            seconds += time.process_time() - began

    framework.Simulator.train = timed
    with contextlib.redirect_stdout(sys.stderr):
        framework.evaluate_candidate(train_episodes=EPISODES, eval_episodes=8)
    print(json.dumps({"steps": steps, "seconds": seconds}))


def train_plain(file: Path) -> None:
    """Train by a plain torch PPO loop; print its steps and CPU-seconds."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location("grid", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    env = module.TrainingEnv(num_envs=ORIGINAL_WORLDS, max_steps=LIMIT)
    size = int(torch.tensor(env.observation_space.shape).prod())
    body = nn.Sequential(nn.Flatten(), nn.Linear(size, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
    actor, critic = nn.Linear(HIDDEN, 4), nn.Linear(HIDDEN, 1)
    weights = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(weights, lr=3e-4)
    obs = env.reset(seed=0)["obs"]
    began, done_steps = time.process_time(), 0
    while done_steps < PLAIN_STEPS:
        rows = []
        for _ in range(ROLLOUT):
            with torch.no_grad():
                features = body(obs)
                policy = torch.distributions.Categorical(logits=actor(features))
                action = policy.sample()
                value = critic(features)[:, 0]
                log_prob = policy.log_prob(action)
            following, reward, done, _ = env.step(action)
            rows.append((obs, action, log_prob, value, reward, done))
            obs = following["obs"]
        done_steps += ROLLOUT * ORIGINAL_WORLDS
        update(rows, obs, (body, actor, critic), optimizer, weights)
    print(json.dumps({"steps": done_steps, "seconds": time.process_time() - began}))


def update(rows: list[Any], obs: Any, nets: tuple[Any, ...], optimizer: Any, weights: list[Any]) -> None:
    """Make one PPO update on a rollout."""
    import torch

    body, actor, critic = nets
    with torch.no_grad():
        following = critic(body(obs))[:, 0]
    advantage, advantages = torch.zeros(ORIGINAL_WORLDS), []
    for _, _, _, value, reward, done in reversed(rows):
        alive = 1.0 - done.float()
        delta = reward + 0.99 * following * alive - value
        advantage = delta + 0.99 * 0.95 * alive * advantage
        advantages.append(advantage)
        following = value
    advantages.reverse()
    observations, actions, log_probs, values = (torch.cat([row[index] for row in rows]) for index in range(4))
    gains = torch.cat(advantages)
    returns = gains + values
    for _ in range(EPOCHS):
        for part in torch.randperm(len(gains)).split(BATCH_PER_WORLD * ORIGINAL_WORLDS):
            features = body(observations[part])
            policy = torch.distributions.Categorical(logits=actor(features))
            ratio = (policy.log_prob(actions[part]) - log_probs[part]).exp()
            gain = gains[part]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            value_loss = (critic(features)[:, 0] - returns[part]).pow(2).mean()
            loss = 0.5 * value_loss - surrogate - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 0.5)
            optimizer.step()


def train_rlx(worlds: int, steps: int) -> None:
    """Train the class of `env.py` in this folder by rlx."""
    import yaml

    import rlx

    config = {
        "run_name": f"worlds_{worlds}",
        "env": {"id": "env.py:TrainingEnv", "num_envs": worlds, "kwargs": {"max_steps": LIMIT}},
        "algo": {"name": "ppo", "total_timesteps": steps, "rollout_steps": ROLLOUT, "update_epochs": EPOCHS,
                 "batch_size": BATCH_PER_WORLD * worlds, "learning_rate": 3e-4, "entropy_coef": 0.01},
        "policy": {"hidden_sizes": [HIDDEN, HIDDEN]},
        "eval": {"every": 10 * steps, "episodes": 1},
    }  # fmt: skip
    path = Path(f"worlds_{worlds}.yaml")
    path.write_text(yaml.safe_dump(config))
    rlx.run(path, seeds=1)


def child(folder: Path, *words: str) -> str:
    """Run this script for one side with one thread; return what it prints last."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), *words], cwd=folder, env=environment, stdout=subprocess.PIPE,
        text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def one_process(folder: Path, *words: str) -> float:
    """Return the steps per CPU-second that a side prints."""
    told = json.loads(child(folder, *words))
    return float(told["steps"] / told["seconds"])


def adapted(folder: Path, worlds: int) -> float:
    """Return rlx's steps per CPU-second, of all its processes."""
    seconds = []
    for steps in LENGTHS[worlds]:
        before = _child_seconds()
        child(folder, "--train-rlx", str(worlds), str(steps))
        seconds.append(_child_seconds() - before)
    short, long = LENGTHS[worlds]
    return (long - short) / (seconds[1] - seconds[0])


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(original: Path | None) -> dict[str, tuple[int, float]]:
    """Return the worlds and the steps per CPU-second of every side; the first is what the others are compared with."""
    from rlx.loop.lab.new_lab import TEMPLATES

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rlx.toml").touch()
        text = (TEMPLATES / "simverse" / "candidate_env.txt").read_text().replace("@STEPS@", str(LIMIT))
        if original is None:
            (folder / "env.py").write_text(text)
            first = "plain torch loop"
            speed = one_process(folder, "--train-plain", str(folder / "env.py"))
        else:
            (folder / "env.py").write_text(ADAPTED.format(paths=original_paths(original)))
            first = "the original's evaluator and trainer"
            speed = one_process(folder, "--train-original", str(original))
        figures = {first: (ORIGINAL_WORLDS, speed)}
        for worlds in WORLDS:
            figures[f"rlx on the adapter, {worlds} worlds"] = (worlds, adapted(folder, worlds))
    return figures


def write_page(figures: dict[str, tuple[int, float]], *, mission: str) -> float:
    """Write the page; return the best ratio."""
    base = next(iter(figures.values()))[1]
    same = next(speed for worlds, speed in list(figures.values())[1:] if worlds == ORIGINAL_WORLDS)
    rows = [
        f"| {name} | {worlds:,} | {speed:,.0f} | {speed / base:.1f}× |" for name, (worlds, speed) in figures.items()
    ]
    page = [
        "# Batched worlds", "",
        "For anyone with environments in simverse's style: what the adapter costs and gains. Written by "
        "`python bench/batched.py`, which explains the sides.", "",
        f"Mission: {mission}. Both sides have the same network, rollout, batch and epochs per step.", "",
        "| training | worlds | steps per CPU-second | ratio |", "|---|---|---|---|", *rows, "",
        f"The original always has {ORIGINAL_WORLDS} worlds. With as many, rlx reaches {same / base:.1f}×; more worlds "
        "per batch bring the rest. `worlds.count` in `lab.yaml` sets them.", "",
        f"One core per side, at a load of {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores.", "",
    ]  # fmt: skip
    PAGE.write_text("\n".join(page))
    print("\n".join(page))
    return max(speed / base for _, speed in figures.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--original", type=Path, metavar="DIR", help="a checkout of the original lab")
    parser.add_argument("--train-original", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--train-plain", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--train-rlx", nargs=2, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train_original:
        train_original(args.train_original)
    elif args.train_plain:
        train_plain(args.train_plain)
    elif args.train_rlx:
        train_rlx(*args.train_rlx)
    else:
        original = args.original.resolve() if args.original else None
        mission = "the original's key and door world" if original else "the grid world of `--template simverse`"
        best = write_page(measure(original), mission=mission)
        print(f"promise: at least {PROMISED:g}×: {'kept' if best >= PROMISED else 'BROKEN'} ({best:.1f}×)")
        return int(best < PROMISED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
