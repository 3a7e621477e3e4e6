"""Measure a trained courier: python eval.py --checkpoint logs/0/policy.npz --episodes 200 --seed 1000"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from courier import policy
from courier.env import Courier


def episode(network, seed: int) -> dict[str, float]:
    """Play one episode and say how it went."""
    env = Courier()
    observation, _ = env.reset(seed=seed)
    length, terminated, truncated = 0, False, False
    while not (terminated or truncated):
        observation, _, terminated, truncated, info = env.step(network(observation))
        length += 1
    success = float(info["is_success"])
    return {"seed": seed, "success": success, "length": length, "drowned": float(terminated and not success)}


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
    figures = {key: sum(one[key] for one in episodes) / len(episodes) for key in ("success", "length", "drowned")}
    print(json.dumps(figures))
    if args.out:
        args.out.write_text(json.dumps({**figures, "episodes": episodes}))


if __name__ == "__main__":
    main()
