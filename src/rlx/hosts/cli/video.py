"""Film a policy without a display, as mp4, or as gif for pages that cannot show videos.

The episodes are those of the report protocol. `--which` first compares all of them, stored by `rlx eval` or played now,
and films the best, median or worst one on the same episode seed.

Example: rlx video cartpole_ppo_001
         rlx video cartpole_ppo_001:latest --seed 3 --episodes 2 --gif --out run.gif
         rlx video cartpole_ppo_001 --which all --overlay --sheet
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, obey_trust, refuse_below_one
from rlx.hosts.cli.format import counted, figure
from rlx.hosts.cli.output import labelled, say
from rlx.hosts.cli.progress import Count
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.evaluate.episode import Episode
    from rlx.evaluate.video.subject import PolicySubject


def arguments(parser: Parser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (best), RUN:latest, or a folder")
    parser.add_argument("--which", choices=("best", "median", "worst", "all"), help="the episode to film, by return")
    parser.add_argument("--episodes", type=int, metavar="N", help="episodes to film (1), or to choose from (20)")
    parser.add_argument("--seed", type=int, metavar="K", help="the training seed (default: the best)")
    parser.add_argument("--steps", type=int, default=3000, metavar="N", help="film at most N steps (default: 3000)")
    parser.add_argument("--overlay", action="store_true", help="draw step, reward, return and reward terms on it")
    parser.add_argument("--sheet", action="store_true", help="also write a PNG of evenly spaced frames")
    parser.add_argument("--format", choices=("mp4", "gif"), help="(default: the ending of the file, or mp4)")
    parser.add_argument("--gif", action="store_const", const="gif", dest="format", help="the same as --format gif")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="the film (default: in the run's videos folder)")
    add_trust(parser)


@dataclass(frozen=True)
class _Film:
    """One film to make: its file, its episode seeds, and the episode that `which` chose."""

    target: Path
    seeds: Sequence[int]
    which: str | None = None
    chosen: Episode | None = None


def run(args: Args) -> Data:
    obey_trust(args)
    refuse_below_one(args, "episodes", "steps")
    subject = _subject(args)
    return {
        "run": subject.run and subject.run.name,
        "seed": subject.seed,
        "checkpoint": subject.checkpoint.name,
        "env": subject.protocol.env.id,
        "films": [_make(args, subject, film) for film in _films(args, subject)],
    }


def _subject(args: Args) -> PolicySubject:
    from rlx.evaluate.video.film import choose_writer
    from rlx.evaluate.video.subject import find_subject

    if args.out and args.out.suffix:
        choose_writer(args.out)
    root = project.root()
    episodes = args.episodes if args.which else None
    subject = find_subject(args.reference, root=root, seed=args.seed, episodes=episodes)
    if args.episodes is not None and args.episodes > subject.protocol.episodes:
        subject = find_subject(args.reference, root=root, seed=args.seed, episodes=args.episodes)
    for text in subject.notes:
        say(f"note: {text}")
    return subject


def _films(args: Args, subject: PolicySubject) -> list[_Film]:
    from rlx.evaluate.video.pick_episode import EVERY, pick, play_episodes, stored_episodes

    target = _target(args, subject)
    seed = subject.seed or 0
    if args.which is None:
        return [_Film(target, subject.protocol.episode_seeds(seed=seed)[: args.episodes or 1])]
    episodes = stored_episodes(subject.run, subject.protocol, subject.checkpoint, seed=subject.seed)
    if not episodes:
        say(f"playing {subject.protocol.episodes} episodes to choose from …")
        episodes = play_episodes(subject.policy, subject.protocol, seed=seed)
    films = []
    for which in EVERY if args.which == "all" else (args.which,):
        chosen = pick(episodes, which)
        path = target
        if not args.out or args.which == "all":
            path = target.with_stem(f"{target.stem}_{which}_episode")
        films.append(_Film(path, [chosen.seed], which, chosen))
    return films


def _target(args: Args, subject: PolicySubject) -> Path:
    ending = args.format or "mp4"
    if not args.out:
        folder = subject.run.path / "videos" if subject.run else Path()
        name = subject.title.replace(", ", "_").replace(" ", "_")
        return folder / f"{name}.{ending}"
    out: Path = args.out
    suffix = out.suffix.lower().removeprefix(".")
    if not suffix:
        return out.with_suffix(f".{ending}")
    if args.format and suffix != args.format:
        raise UsageError(f"--out {out} is not a {args.format}", hint="leave out --format, or rename the file")
    return out


def _make(args: Args, subject: PolicySubject, film: _Film) -> Data:
    from rlx.evaluate.video.contact_sheet import ContactSheet
    from rlx.evaluate.video.film import FilmStyle
    from rlx.evaluate.video.film import film as make_film

    episodes = f"the {film.which} episode" if film.which else counted(len(film.seeds), "episode")
    env_id = subject.protocol.env.id
    say(f"filming {episodes} of {env_id} with {subject.title} …")
    sheet = ContactSheet(f"{subject.title}, {env_id}: {episodes}") if args.sheet else None
    made = make_film(
        subject.policy, subject.protocol, film.target, seeds=film.seeds,
        style=FilmStyle(args.steps, args.overlay, sheet), progress=Count("frames"),
    )  # fmt: skip
    return {
        "file": str(made.path),
        "sheet": made.sheet and str(made.sheet),
        "which": film.which,
        "among": subject.protocol.episodes if film.which else None,
        "frames": made.frames,
        "fps": made.fps,
        "unfilmed_steps": made.unfilmed_steps,
        "episodes": [episode.document() for episode in made.episodes],
        "chosen": film.chosen and film.chosen.document(),
    }


def render(data: Data) -> str:
    policy = data["checkpoint"]
    if data["run"]:
        policy = f"{data['run']}, seed {data['seed']}, {policy}"
    return "\n\n".join(_film_text(film, policy) for film in data["films"])


def _film_text(film: Data, policy: str) -> str:
    returns = [f"{figure(row['return'])} in {counted(row['length'], 'step')}" for row in film["episodes"]]
    chosen = film["chosen"]
    episode = chosen and f"the {film['which']} of {film['among']} by return (seed {chosen['seed']})"
    notes = []
    if film["unfilmed_steps"]:
        notes.append(f"the last {counted(film['unfilmed_steps'], 'step')} are not in the film; --steps sets the limit")
    if chosen and chosen != film["episodes"][0]:
        notes.append(f"it returned {figure(chosen['return'])} before: this environment or policy is not deterministic")
    return labelled({
        "video": film["file"],
        "sheet": film["sheet"],
        "policy": policy,
        "episode": episode,
        "return": ", ".join(returns),
        "frames": f"{film['frames']:,} at {film['fps']} per second",
        "note": notes,
    })  # fmt: skip
