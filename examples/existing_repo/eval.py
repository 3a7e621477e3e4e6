"""Measure a trained courier: python eval.py --checkpoint logs/0/policy.npz --episodes 200 --seed 1000"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from courier import policy
from courier.env import Courier


def episode(network: Callable[[np.ndarray], np.ndarray], seed: int) -> dict[str, Any]:
    """Play one episode and say how it went."""
    env = Courier()
    observation, _ = env.reset(seed=seed)
    total, length, terminated, truncated = 0.0, 0, False, False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, info = env.step(network(observation))
        total, length = total + reward, length + 1
    success = info["is_success"]
    return {"seed": seed, "return": total, "length": length, "success": success, "drowned": terminated and not success}


def main() -> None:
    """Play the episodes, print the figures, and write them with every episode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    network = policy.load(args.checkpoint)
    episodes = [episode(network, args.seed + number) for number in range(args.episodes)]
    figures = {
        key: sum(one[key] for one in episodes) / len(episodes) for key in ("success", "return", "length", "drowned")
    }
    print(json.dumps(figures))
    if args.out:
        args.out.write_text(json.dumps({**figures, "episodes": episodes}))


if __name__ == "__main__":
    main()
