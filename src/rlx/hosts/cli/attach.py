"""Stay with a run that this command started: show it, and end it cleanly when the terminal does."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from rlx.errors import Interrupted
from rlx.hosts.cli import words
from rlx.hosts.cli.output import paint_state, say
from rlx.hosts.cli.progress import follow
from rlx.launch import launch
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, INTERRUPTED, tally
from rlx.runs.summary import REPORT, final_returns, spread


def attach(run: Run) -> Run:
    """Follow a run to its end; Ctrl-C, SIGTERM and SIGHUP (unless ignored) stop it with `latest` saved."""
    hear_signals()
    try:
        ended = follow(run)
    except KeyboardInterrupt:
        say(f"stopping {run.name}: its seeds save `latest` …")
        ended = launch.stop(run)
    if ended.status == INTERRUPTED:
        raise Interrupted(f"{run.name} was interrupted: {_states(ended)}", hint=f"rlx resume {run.name}")
    error = launch.failure(ended)
    if error:
        raise error
    return ended


def hear_signals() -> None:
    """Take SIGTERM and SIGHUP (unless ignored) as Ctrl-C."""
    for caught in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(caught) is not signal.SIG_IGN:
            signal.signal(caught, _raise)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _states(run: Run) -> str:
    return tally([seed.status.state for seed in run.seeds])


def outcome(run: Run) -> dict[str, Any]:
    """Describe a run for `--json` and for `render`."""
    scores = final_returns(run)
    return {
        "run": run.name,
        "path": str(run.path),
        "state": run.status,
        "study": run.study or None,
        "return": spread((scores.of(seed) for seed in run.seeds), source=scores.source, metric=scores.metric),
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


def render(data: dict[str, Any]) -> str:
    """Spell an outcome, with the command to run next."""
    lines = [f"run: {data['run']}", f"path: {data['path']}", f"state: {paint_state(data['state'])}"]
    score = data["return"]
    if score:
        kind = "report evaluation" if score["source"] == REPORT else "training"
        seeds = words.plural(len(data["seeds"]), "seed")
        counted = seeds if score["n"] == len(data["seeds"]) else f"{score['n']} of {seeds}"
        lines.append(f"{score['metric']}: {words.spread(score)} ({kind}, {counted})")
    lines += [f"seed {one['seed']}: {one['state']}: {one['reason']}" for one in data["seeds"] if one["reason"]]
    name = data["run"]
    following = {COMPLETED: f"rlx plot {name}", "running": f"rlx watch {name}"}
    command = "rlx next" if data["study"] else following.get(data["state"], f"rlx resume {name}")
    return "\n".join([*lines, f"next: {command}"])
