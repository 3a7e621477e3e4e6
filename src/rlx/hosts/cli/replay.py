"""Replay one episode of a policy step by step: pictures with a scrubber, rewards, values and action distributions.

The page is one file that opens without a network. The JSON file next to it holds the same steps. Frame i is step i of
the episode: what the policy saw and expected, what it chose, and the reward that followed. An environment without
`render` is drawn as bars. EPISODE is best, median or worst of the report's episodes, or the number of an episode.

Example: rlx replay cartpole_ppo_001
         rlx replay cartpole_ppo_001:latest --episode worst --seed 3
         rlx replay cartpole_ppo_001 --episode 4 --out fourth.html
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, obey_trust, refuse_below_one
from rlx.hosts.cli.format import NOTHING, counted, figure
from rlx.hosts.cli.output import labelled, say
from rlx.hosts.cli.progress import Count
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.evaluate.video.subject import PolicySubject


def arguments(parser: Parser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (best), RUN:latest, or a folder")
    parser.add_argument(
        "--episode", default="median", metavar="EPISODE", help="best, median (default), worst, or a number"
    )
    parser.add_argument("--seed", type=int, metavar="K", help="the training seed (default: the best)")
    parser.add_argument("--steps", type=int, default=600, metavar="N", help="keep at most N steps (default: 600)")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="the page (default: in the run's folder)")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx import files
    from rlx.evaluate.video.episode_replay import replay
    from rlx.evaluate.video.subject import find_subject
    from rlx.hosts.ui.replay_view import replay_file

    obey_trust(args)
    refuse_below_one(args, "steps")
    if args.out and args.out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--out {args.out}: a replay is an HTML page", hint="end the name in .html")
    subject = find_subject(args.reference, root=project.root(), seed=args.seed)
    for text in subject.notes:
        say(f"note: {text}")
    chosen = _episode_seed(subject, args.episode)
    title = f"episode {args.episode}" if args.episode.isdecimal() else f"the {args.episode} episode"
    say(f"replaying {title} (seed {chosen}) of {subject.protocol.env.id} with {subject.title} …")
    made = replay(subject, chosen, most_steps=args.steps, progress=Count("steps"))
    document = made.document()
    target = args.out or _default_path(subject, args.episode)
    target.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(target, replay_file(document).encode())
    data_path = target.with_suffix(".json")
    files.write_atomic(data_path, files.encode(document))
    values = [row.value for row in made.rows if row.value is not None]
    return {
        "run": subject.run and subject.run.name, "seed": subject.seed, "checkpoint": subject.checkpoint.name,
        "env": made.env, "which": args.episode, "episode": made.episode.document(), "end": made.end,
        "steps": len(made.rows) - 1, "frames": len(made.rows), "is_drawn": made.is_drawn,
        "unshown_steps": made.unshown_steps, "first_value": values[0] if values else None,
        "file": str(target), "data": str(data_path), "bytes": target.stat().st_size,
    }  # fmt: skip


def _episode_seed(subject: PolicySubject, word: str) -> int:
    """Return the seed of the episode that a word or a number names."""
    from rlx.evaluate.video.pick_episode import EVERY, pick, play_episodes, stored_episodes

    if word in EVERY:
        episodes = stored_episodes(subject.run, subject.protocol, subject.checkpoint, seed=subject.seed)
        if not episodes:
            say(f"playing {subject.protocol.episodes} episodes to choose from …")
            episodes = play_episodes(subject.policy, subject.protocol, seed=subject.seed or 0)
        return pick(episodes, word).seed
    seeds = subject.protocol.episode_seeds(seed=subject.seed or 0)
    if not word.isascii() or not word.isdigit() or int(word) >= len(seeds):
        raise UsageError(f"--episode {word}: not an episode", hint=f"best, median, worst, or 0 to {len(seeds) - 1}")
    return seeds[int(word)]


def _default_path(subject: PolicySubject, episode: str) -> Path:
    folder = subject.run.path / "replays" if subject.run else Path()
    name = subject.title.replace(", ", "_").replace(" ", "_")
    return folder / f"{name}_{episode}_episode.html"


def render(data: Data) -> str:
    policy = data["checkpoint"]
    if data["run"]:
        policy = f"{data['run']}, seed {data['seed']}, {policy}"
    note = None
    if data["unshown_steps"]:
        note = f"the last {counted(data['unshown_steps'], 'step')} are not in the replay; --steps sets the limit"
    value = NOTHING
    if data["first_value"] is not None:
        value = f"{figure(data['first_value'])} (the return was {figure(data['episode']['return'])}, undiscounted)"
    return labelled({
        "replay": data["file"],
        "data": data["data"],
        "policy": policy,
        "episode": f"{data['which']} (seed {data['episode']['seed']})",
        "return": f"{figure(data['episode']['return'])} in {counted(data['episode']['length'], 'step')}",
        "end": data["end"],
        "value at the start": value,
        "frames": f"{data['frames']:,}" + (" (drawings of the state: no render)" if data["is_drawn"] else ""),
        "note": note,
    })  # fmt: skip
