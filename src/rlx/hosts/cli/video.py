"""Film a policy, without a display: mp4, or gif for places that show no video.

The episodes are those of the report protocol. `--which` looks at all of them first, as `rlx eval` has kept them or by
playing them, and films the best, median or worst one again, on the same episode seed.

Example: rlx video cartpole_ppo_001
         rlx video cartpole_ppo_001:latest --seed 3 --episodes 2 --gif --out run.gif
         rlx video cartpole_ppo_001 --which all --overlay --sheet
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import UsageError
from rlx.hosts.cli import words
from rlx.hosts.cli.count import Count
from rlx.hosts.cli.output import say
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.evaluate.episode import Episode
    from rlx.evaluate.policy import Policy
    from rlx.evaluate.protocol import Protocol
    from rlx.runs.reference import Reference
    from rlx.runs.run import Run


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (best), RUN:latest, or a folder")
    parser.add_argument("--which", choices=("best", "median", "worst", "all"), help="the episode to film, by return")
    parser.add_argument("--episodes", type=int, metavar="N", help="how many to film (1); to choose among (20)")
    parser.add_argument("--seed", type=int, metavar="K", help="which training seed (the run's first)")
    parser.add_argument("--steps", type=int, default=3000, metavar="N", help="film at most so much of one (3000)")
    parser.add_argument("--overlay", action="store_true", help="write step, reward, return and reward terms on it")
    parser.add_argument("--sheet", action="store_true", help="also a PNG of evenly spaced frames, beside the film")
    parser.add_argument("--format", choices=("mp4", "gif"), help="(mp4, or what the file's name ends in)")
    parser.add_argument("--gif", action="store_const", const="gif", dest="format", help="the same as --format gif")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="where to (the run's videos folder)")


@dataclass(frozen=True)
class _Subject:
    """The policy to film, the episodes it is filmed on, and how the files are called."""

    run: Run | None
    seed: int | None
    checkpoint: Path
    protocol: Protocol
    policy: Policy

    @property
    def name(self) -> str:
        return f"{self.run.name}_seed_{self.seed}_{self.checkpoint.name}" if self.run else self.checkpoint.name

    @property
    def words(self) -> str:
        """The same for people."""
        return f"{self.run.name}, seed {self.seed}, {self.checkpoint.name}" if self.run else self.checkpoint.name


@dataclass(frozen=True)
class _Take:
    """One film to make: where to, on which episode seeds; `chosen` is the episode that `which` picked."""

    target: Path
    seeds: Sequence[int]
    which: str | None = None
    chosen: Episode | None = None


def run(args: argparse.Namespace) -> dict[str, Any]:
    for option in ("episodes", "steps"):
        if getattr(args, option) is not None and getattr(args, option) < 1:
            raise UsageError(f"--{option} {getattr(args, option)}: at least one {option[:-1]}")
    subject = _subject(args)
    films = [_film(args, subject, take) for take in _takes(args, subject)]
    return {
        "run": subject.run.name if subject.run else None,
        "seed": subject.seed,
        "checkpoint": subject.checkpoint.name,
        "env": subject.protocol.env.id,
        "films": films,
    }


def _subject(args: argparse.Namespace) -> _Subject:
    from rlx.evaluate.measure import changed_since_training, fitting, protocol_for
    from rlx.evaluate.rollout import Evaluator
    from rlx.evaluate.video import writer_of
    from rlx.runs import checkpoint as checkpoints
    from rlx.runs.reference import resolve

    if args.out and args.out.suffix:
        writer_of(args.out)

    root = project.root()
    reference = resolve(args.reference, root)
    protocol = protocol_for(reference, root=root, episodes=args.episodes if args.which else None)
    seed, checkpoint = next(iter(reference.checkpoints(default="best", seed=_seed(reference, args.seed)).items()))
    if args.episodes is not None and args.episodes > protocol.episodes:
        protocol = protocol_for(reference, root=root, episodes=args.episodes)
    with Evaluator(protocol) as evaluator:
        policy, shown = fitting(evaluator, checkpoints.read(checkpoint, with_replay=False))
    changed = changed_since_training(reference.run, seed, protocol) if reference.run else None
    for note in filter(None, (changed, shown)):
        say(f"note: {note}")
    return _Subject(reference.run, seed, checkpoint, protocol, policy)


def _seed(reference: Reference, wanted: int | None) -> int | None:
    """Return the seed to film: the one asked for, else the run's first."""
    if wanted is not None or reference.run is None or reference.path is not None or not reference.run.seeds:
        return wanted
    return reference.run.seeds[0].number


def _takes(args: argparse.Namespace, subject: _Subject) -> list[_Take]:
    from rlx.evaluate.replay import EVERY, pick, play_episodes, stored_episodes

    target = _target(args, subject)
    if args.which is None:
        return [_Take(target, subject.protocol.episode_seeds(seed=subject.seed or 0)[: args.episodes or 1])]
    episodes = stored_episodes(subject.run, subject.protocol, subject.checkpoint, seed=subject.seed)
    if not episodes:
        say(f"playing {subject.protocol.episodes} episodes to choose from …")
        episodes = play_episodes(subject.policy, subject.protocol, seed=subject.seed or 0)
    takes = []
    for which in EVERY if args.which == "all" else (args.which,):
        chosen = pick(episodes, which)
        is_named = args.out and args.which != "all"
        path = target if is_named else target.with_stem(f"{target.stem}_{which}_episode")
        takes.append(_Take(path, [chosen.seed], which, chosen))
    return takes


def _target(args: argparse.Namespace, subject: _Subject) -> Path:
    if args.out:
        suffix = args.out.suffix.lower().removeprefix(".")
        if args.format and suffix and suffix != args.format:
            raise UsageError(f"--out {args.out} is not a {args.format}", hint="leave --format out, or rename the file")
        out: Path = args.out if suffix else args.out.with_suffix(f".{args.format or 'mp4'}")
        return out
    folder = subject.run.path / "videos" if subject.run else Path()
    return folder / f"{subject.name}.{args.format or 'mp4'}"


def _film(args: argparse.Namespace, subject: _Subject, take: _Take) -> dict[str, Any]:
    from rlx.evaluate.sheet import ContactSheet
    from rlx.evaluate.video import film

    what = f"the {take.which} episode" if take.which else words.plural(len(take.seeds), "episode")
    say(f"filming {what} of {subject.protocol.env.id} with {subject.words} …")
    made = film(
        subject.policy,
        subject.protocol,
        take.target,
        seeds=take.seeds,
        most_steps=args.steps,
        is_overlaid=args.overlay,
        sheet=ContactSheet(f"{subject.words}, {subject.protocol.env.id}: {what}") if args.sheet else None,
        progress=Count("frames"),
    )
    return {
        "file": str(made.path),
        "sheet": str(made.sheet) if made.sheet else None,
        "which": take.which,
        "among": subject.protocol.episodes if take.which else None,
        "frames": made.frames,
        "fps": made.fps,
        "unfilmed_steps": made.unfilmed_steps,
        "episodes": [episode.document() for episode in made.episodes],
        "chosen": take.chosen.document() if take.chosen else None,
    }


def render(data: dict[str, Any]) -> str:
    of = f"{data['run']}, seed {data['seed']}, {data['checkpoint']}" if data["run"] else data["checkpoint"]
    return "\n\n".join("\n".join(_lines(one, of)) for one in data["films"])


def _lines(one: dict[str, Any], of: str) -> Iterator[str]:
    yield f"video: {one['file']}"
    if one["sheet"]:
        yield f"sheet: {one['sheet']}"
    yield f"policy: {of}"
    if one["which"]:
        yield f"episode: the {one['which']} of {one['among']} by return (seed {one['chosen']['seed']})"
    returns = [f"{words.figure(each['return'])} in {words.plural(each['length'], 'step')}" for each in one["episodes"]]
    yield f"return: {', '.join(returns)}"
    yield f"frames: {one['frames']:,} at {one['fps']} a second"
    if one["unfilmed_steps"]:
        yield f"note: the last {words.plural(one['unfilmed_steps'], 'step')} are not in the film: --steps sets how many"
    if one["chosen"] and one["chosen"] != one["episodes"][0]:
        first = words.figure(one["chosen"]["return"])
        yield f"note: it returned {first} when it was chosen: this environment or policy does not repeat itself"
