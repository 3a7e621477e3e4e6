"""Train a courier: python train.py --seed 0 --out logs/0 [key=value ...]"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from courier import policy
from courier.learn import learn
from courier.reward import RewardWeights
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

HERE = Path(__file__).resolve().parent


def settings(config: Path, overrides: list[str]) -> dict[str, Any]:
    """Read the config, with keys such as reward.effort=0.1 on top."""
    values = yaml.safe_load(config.read_text())
    for override in overrides:
        key, _, value = override.partition("=")
        section, _, name = key.partition(".")
        if name not in values.get(section, {}):
            raise SystemExit(f"unknown key {key}")
        values[section][name] = yaml.safe_load(value)
    return values


def main() -> None:
    """Train, log to TensorBoard, save the network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2_500_000)
    parser.add_argument("--config", type=Path, default=HERE / "configs" / "courier.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    args = parser.parse_args()
    values = settings(args.config, args.overrides)
    writer = EventFileWriter(str(args.out / "tb"), flush_secs=1)

    def report(step: int, figures: Mapping[str, float]) -> None:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in figures.items()])
        writer.add_event(Event(step=step, summary=summary))

    weights = RewardWeights(**values["reward"])
    network = learn(values["learning"], weights, seed=args.seed, steps=args.steps, report=report)
    writer.close()
    policy.save(args.out / "policy.npz", network, int(values["learning"]["hidden"]))


if __name__ == "__main__":
    main()
