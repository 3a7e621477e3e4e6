"""Measure training steps per second on a torch grid world: rlx's learner on the adapter, and a plain torch loop.

    python bench/batched.py [--steps 40000]

The plain loop works like the original lab: a torch policy, 32 worlds in one module, a buffer, PPO epochs, everything in
torch. rlx trains the same module through `rlx.envs.batched_worlds` with the NumPy backend, on 32 and on more worlds.
Both sides use the same network, rollout length, batch size and epochs. The machine may be busy, so only the ratio
counts. The script writes bench/batched.md and exits with 1 below 5×.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
PROMISED = 5.0
WORLDS = 32
MANY_WORLDS = 1024
ROLLOUT = 16
EPOCHS = 4
BATCH = 256
HIDDEN = 64
LIMIT = 20


def plain_loop(env_class: type, steps: int) -> float:
    """Train by a plain torch PPO loop on 32 worlds; return its environment steps per second."""
    import torch
    from torch import nn

    torch.set_num_threads(1)  # as rlx's worker does; more threads only wait for each other here
    torch.manual_seed(0)
    env = env_class(num_envs=WORLDS, max_steps=LIMIT)
    size = int(torch.tensor(env.observation_space.shape).prod())
    body = nn.Sequential(nn.Flatten(), nn.Linear(size, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
    actor, critic = nn.Linear(HIDDEN, 4), nn.Linear(HIDDEN, 1)
    weights = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(weights, lr=3e-4)
    obs = env.reset(seed=0)["obs"]
    began, done_steps = time.perf_counter(), 0
    while done_steps < steps:
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
        done_steps += ROLLOUT * WORLDS
        update(rows, obs, (body, actor, critic), optimizer, weights)
    return done_steps / (time.perf_counter() - began)


def update(rows: list, obs: object, nets: tuple, optimizer: object, weights: list) -> None:
    """Make one PPO update on a rollout."""
    import torch

    body, actor, critic = nets
    with torch.no_grad():
        following = critic(body(obs))[:, 0]
    advantage, advantages = torch.zeros(WORLDS), []
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
        for part in torch.randperm(len(gains)).split(BATCH):
            features = body(observations[part])
            policy = torch.distributions.Categorical(logits=actor(features))
            ratio = (policy.log_prob(actions[part]) - log_probs[part]).exp()
            gain = gains[part]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            value_loss = (critic(features)[:, 0] - returns[part]).pow(2).mean()
            loss = 0.5 * value_loss - surrogate
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 0.5)
            optimizer.step()


def adapted(root: Path, steps: int, worlds: int) -> float:
    """Train the same module by rlx on the adapter; return the environment steps per second of the training itself."""
    import rlx

    batch = BATCH * worlds // WORLDS
    config = {
        "run_name": f"worlds_{worlds}",
        "env": {"id": "env.py:TrainingEnv", "num_envs": worlds, "kwargs": {"max_steps": LIMIT}},
        "algo": {"name": "ppo", "total_timesteps": steps, "rollout_steps": ROLLOUT, "batch_size": batch,
                 "update_epochs": EPOCHS, "learning_rate": 3e-4},
        "policy": {"hidden_sizes": [HIDDEN, HIDDEN]},
        "eval": {"every": 10 * steps, "episodes": 1},
    }  # fmt: skip
    import yaml

    path = root / f"worlds_{worlds}.yaml"
    path.write_text(yaml.safe_dump(config))
    run = rlx.run(path, seeds=1)
    series = run.series("time/steps_per_second")
    values = next(iter(series.values())).values
    return float(sorted(values)[len(values) // 2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40_000)
    steps = parser.parse_args().steps
    import importlib.util

    from rlx.loop.lab.new_lab import TEMPLATES

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        root = Path(folder)
        (root / "rlx.toml").touch()
        text = (TEMPLATES / "simverse" / "candidate_env.txt").read_text().replace("@STEPS@", str(LIMIT))
        (root / "env.py").write_text(text)
        spec = importlib.util.spec_from_file_location("grid", root / "env.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        figures = {
            f"plain torch loop, {WORLDS} worlds": plain_loop(module.TrainingEnv, steps),
            f"rlx on the adapter, {WORLDS} worlds": adapted(root, steps, WORLDS),
            f"rlx on the adapter, {MANY_WORLDS} worlds": adapted(root, 20 * steps, MANY_WORLDS),
        }
    plain = next(iter(figures.values()))
    rows = [f"| {name} | {value:,.0f} | {value / plain:.1f}× |" for name, value in figures.items()]
    page = [
        "# Batched worlds", "", "For anyone with environments in simverse's style: what the adapter costs and gains. "
        "Written by `python bench/batched.py`, which explains the two sides.", "",
        "| training | steps per second | ratio |", "|---|---|---|", *rows, "",
    ]  # fmt: skip
    PAGE.write_text("\n".join(page))
    print("\n".join(page))
    best = max(value / plain for value in figures.values())
    print(f"promise: at least {PROMISED:g}×: {'kept' if best >= PROMISED else 'BROKEN'} ({best:.1f}×)")
    return int(best < PROMISED)


if __name__ == "__main__":
    sys.exit(main())
