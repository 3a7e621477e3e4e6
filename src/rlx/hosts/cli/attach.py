"""Stay with a run that this command started: show its progress, and stop it cleanly when the terminal closes."""

import signal
from types import FrameType

from rlx.errors import Interrupted
from rlx.hosts.cli.arguments import Data
from rlx.hosts.cli.format import counted, spread
from rlx.hosts.cli.output import labelled, paint_state, say
from rlx.hosts.cli.progress import follow
from rlx.launch import launch
from rlx.runs import summary
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, INTERRUPTED, RUNNING, tally

QUEUED = "queued"


def attach(run: Run) -> Run:
    """Follow a run to its end; Ctrl-C, SIGTERM and SIGHUP (unless ignored) save `latest` and stop it."""
    hear_signals()
    try:
        ended = follow(run)
    except KeyboardInterrupt:
        say(f"stopping {run.name}: its seeds save `latest` …")
        ended = launch.stop(run)
    if ended.status == INTERRUPTED:
        states = tally([seed.status.state for seed in ended.seeds])
        raise Interrupted(f"{run.name} was interrupted: {states}", hint=f"rlx resume {run.name}")
    error = launch.failure(ended)
    if error:
        raise error
    return ended


def hear_signals() -> None:
    """Treat SIGTERM and SIGHUP (unless ignored) like Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def outcome(run: Run) -> Data:
    """Describe a run for `--json` and for `render`."""
    scores = summary.final_returns(run)
    values = [scores.of(seed) for seed in run.seeds]
    queue = launch.queue_status(run)
    state = run.status
    if queue and state != RUNNING:
        state = QUEUED
    return {
        "run": run.name,
        "path": str(run.path),
        "state": state,
        "queue": queue or None,
        "study": run.study or None,
        "return": summary.spread(values, source=scores.source, metric=scores.metric),
        "seeds": [
            {
                "seed": seed.number,
                "state": seed.status.state,
                "step": seed.step,
                "return": seed.last("rollout/return_mean"),
                "reason": seed.status.reason,
            }
            for seed in run.seeds
        ],
    }


def fields(data: Data) -> dict[str, object]:
    """Return the lines that describe an outcome, with the command to run next."""
    name = data["run"]
    commands = {COMPLETED: f"rlx plot {name}", RUNNING: f"rlx watch {name}", QUEUED: f"rlx wait {name}"}
    following = commands.get(data["state"], f"rlx resume {name}")
    if data["study"]:
        following = "rlx next"
    score = data["return"] or {"metric": "return"}
    return {
        "run": name,
        "path": data["path"],
        "state": paint_state(data["state"]),
        "queue": data["queue"],
        score["metric"]: _score(data),
        "reason": [f"seed {row['seed']}: {row['state']}: {row['reason']}" for row in data["seeds"] if row["reason"]],
        "next": following,
    }


def _score(data: Data) -> str:
    score = data["return"]
    if not score:
        return ""
    kind = "report evaluation" if score["source"] == summary.REPORT else "training"
    seeds = counted(len(data["seeds"]), "seed")
    if score["n"] != len(data["seeds"]):
        seeds = f"{score['n']} of {seeds}"
    return f"{spread(score)} ({kind}, {seeds})"


def render(data: Data) -> str:
    """Spell an outcome."""
    return labelled(fields(data))
