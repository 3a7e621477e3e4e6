"""Measure the statistics: exact tests, and bootstrap intervals next to rliable's algorithm; about a minute.

    python bench/stats.py [--peers VENV] [--rounds 5]

Shown are CPU seconds of this process, best of some rounds. rliable itself is measured if the peers' environment can
import it (1.2.0 cannot with pandas 3). Its algorithm is always measured: for each of 20,000 repetitions, redraw the
runs of every task and take the interquartile mean; at the end, take the percentiles (Agarwal et al. 2021). Exits with
1 if a promise is broken. (Not named `statistics`: scripts here would then hide Python's own module from their
imports.)
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from rig import measure, peers

from rlx.compare import bootstrap_interval, iqm, permutation_interval, permutation_p, permutation_p_over_tasks

REPETITIONS = 20_000
RLIABLE = """
import sys, time, numpy as np
from rliable import library, metrics
scores = np.array(eval(sys.argv[1]))
start = time.process_time()
_, bounds = library.get_interval_estimates({"a": scores}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=20_000)
print(time.process_time() - start, *bounds["a"].ravel())
"""


def best(call: Callable[[], object], rounds: int) -> float:
    """Return the CPU milliseconds of the best round."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def loop_interval(scores: np.ndarray) -> tuple[float, float]:
    """rliable's algorithm: one repetition after the other."""
    runs, tasks = scores.shape
    columns = np.arange(tasks)
    values = np.empty(REPETITIONS)
    cut = scores.size // 4
    state = np.random.RandomState(0)
    for repetition in range(REPETITIONS):
        drawn = scores[state.choice(runs, size=(runs, tasks), replace=True), columns]
        values[repetition] = np.partition(drawn.ravel(), (cut, scores.size - cut - 1))[cut : scores.size - cut].mean()
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def rliable_interval(scores: np.ndarray, python: str) -> tuple[float, float, float] | None:
    """Return milliseconds and interval of rliable itself; None if it cannot be imported."""
    done = subprocess.run([python, "-c", RLIABLE, repr(scores.tolist())], capture_output=True, text=True)
    if done.returncode:
        return None
    seconds, low, high = map(float, done.stdout.split())
    return 1000 * seconds, low, high


def main() -> None:
    parser = peers.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 10))
    tasks = generator.normal(size=(2, 5, 4))
    large = generator.normal(size=(2, 24))
    first = best(lambda: permutation_p(a, b), 1)
    gate = best(lambda: permutation_p(a, b), args.rounds)
    rows = [
        ["exact test 10 v 10, first call", f"{first:.1f} ms", "≤ 60 ms"],
        ["exact test 10 v 10", f"{gate:.1f} ms", "≤ 60 ms"],
        ["its interval", f"{best(lambda: permutation_interval(a, b), args.rounds):.1f} ms", ""],
        ["24 v 24, 20,000 random splits", f"{best(lambda: permutation_p(*large), args.rounds):.1f} ms", ""],
        ["exact, 5 v 5 on 4 tasks", f"{best(lambda: permutation_p_over_tasks(*tasks), args.rounds):.1f} ms", ""],
    ]
    measure.show("permutation tests (CPU)", ["", "time", "promise"], rows)
    kept = [max(first, gate) <= 60]
    shown = []
    for runs, columns in ((10, 1), (10, 26)):
        scores = generator.normal(size=(runs, columns))
        kept.append(_intervals(scores, args, shown))
    measure.show(
        "95 % interval of the IQM, 20,000 repetitions (CPU)",
        ["runs × tasks", "by", "time", "× rlx", "low", "high"],
        shown,
    )
    sys.exit(0 if all(kept) else 1)


def _intervals(scores: np.ndarray, args: object, shown: list[list[str]]) -> bool:
    """Measure one matrix; say whether ours is the same interval and, on one task, a hundred times as fast."""
    size = f"{scores.shape[0]} × {scores.shape[1]}"
    ours = bootstrap_interval(iqm, scores)
    fast = best(lambda: bootstrap_interval(iqm, scores), args.rounds)  # type: ignore[attr-defined]
    others = {"its algorithm, re-measured": (best(lambda: loop_interval(scores), 1), *loop_interval(scores))}
    real = rliable_interval(scores, str(peers.Peers(args.peers).python)) if args.peers.exists() else None  # type: ignore[attr-defined]
    others |= {"rliable": real} if real else {}
    shown.append([size, "rlx", f"{fast:.1f} ms", "1", f"{ours.low:.4f}", f"{ours.high:.4f}"])
    error = 0.05 * (ours.high - ours.low)  # ends of two bootstraps of 20,000 differ by about 1 % of the width
    same = True
    for name, (slow, low, high) in others.items():
        shown.append([size, name, f"{slow:,.0f} ms", f"{slow / fast:.0f}", f"{low:.4f}", f"{high:.4f}"])
        same &= abs(low - ours.low) <= error and abs(high - ours.high) <= error
    return same and (scores.shape[1] > 1 or max(slow for slow, *_ in others.values()) >= 100 * fast)


if __name__ == "__main__":
    main()
