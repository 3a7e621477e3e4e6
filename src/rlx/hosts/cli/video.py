"""Film a policy, without a display: mp4, or gif for places that show no video.

Example: rlx video cartpole_ppo_001
         rlx video cartpole_ppo_001:latest --seed 3 --episodes 2 --format gif --out run.gif
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli.output import say
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (best), RUN:latest, or a folder")
    parser.add_argument("--episodes", type=int, default=1, metavar="N", help="how many episodes (1)")
    parser.add_argument("--seed", type=int, metavar="K", help="which training seed (the run's first)")
    parser.add_argument("--format", choices=("mp4", "gif"), help="(mp4, or what the file's name ends in)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (the run's videos folder)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.evaluate.measure import protocol_for
    from rlx.evaluate.policy import load
    from rlx.evaluate.video import film
    from rlx.runs.reference import Reference, resolve

    if args.episodes < 1:
        raise UsageError(f"--episodes {args.episodes}: at least one episode")
    root = project.root()
    reference: Reference = resolve(args.reference, root)
    seed, checkpoint = next(iter(reference.checkpoints(default="best", seed=_seed(reference, args.seed)).items()))
    protocol = protocol_for(reference, root=root, episodes=args.episodes)
    target = _target(args, reference.run.path if reference.run else None, seed, checkpoint)
    say(f"filming {args.episodes} episodes of {protocol.env.id} with {checkpoint} …")
    made = film(load(checkpoint), protocol, target)
    return {
        "file": str(made.path),
        "run": reference.run.name if reference.run else None,
        "seed": seed,
        "checkpoint": checkpoint.name,
        "frames": made.frames,
        "fps": made.fps,
        "episodes": [episode.document() for episode in made.episodes],
    }


def _seed(reference: Any, wanted: int | None) -> int | None:
    """Return the seed to film: the one asked for, else the run's first."""
    if wanted is not None or reference.run is None or reference.path is not None or not reference.run.seeds:
        return wanted
    return int(reference.run.seeds[0].number)


def _target(args: argparse.Namespace, run_path: Path | None, seed: int | None, checkpoint: Path) -> Path:
    if args.out:
        suffix = args.out.suffix.lower().removeprefix(".")
        if args.format and suffix and suffix != args.format:
            raise UsageError(f"--out {args.out} is not a {args.format}", hint="leave --format out, or rename the file")
        out: Path = args.out if suffix else args.out.with_suffix(f".{args.format or 'mp4'}")
        return out
    name = f"{checkpoint.name}.{args.format or 'mp4'}"
    return run_path / "videos" / f"seed_{seed}_{name}" if run_path else Path(name)


def render(data: dict[str, Any]) -> str:
    returns = ", ".join(f"{episode['return']:.4g} in {episode['length']} steps" for episode in data["episodes"])
    of = f"{data['run']}, seed {data['seed']}, {data['checkpoint']}" if data["run"] else data["checkpoint"]
    return "\n".join([
        f"video: {data['file']}",
        f"policy: {of}",
        f"return: {returns}",
        f"frames: {data['frames']} at {data['fps']} a second",
    ])  # fmt: skip
