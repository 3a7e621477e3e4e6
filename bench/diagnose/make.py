"""Train the labelled runs of the diagnosis benchmark: real trainings through rlx, resumable, for hours.

    python bench/diagnose/make.py [--only TEXT ...] [--list] [--pack]

It appends one line per finished training to bench/diagnose/.runs.jsonl, on one thread. Several processes can work on
it at the same time. `--only` trains the cases whose names (`task/fault or variant/place`) contain a text. A line
whose plan differs from the one in `labelled/` is trained again. `--pack` puts all lines into runs.jsonl.xz, which is
committed; `python bench/diagnose/run.py` judges them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from labelled import runs
from labelled.cases import Case, cases
from labelled.pack import pack
from labelled.train import train, true_score

from rlx import files

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
CLAIMS = Path(tempfile.gettempdir()) / "rlx_labelled_claims"


def missing(only: list[str]) -> Iterator[Case]:
    """Yield the cases that are not trained yet."""
    done = runs.rows()
    for case in cases():
        if (not only or any(text in case.name for text in only)) and case not in done:
            yield case


def make(case: Case) -> str:
    """Train a case, append its line, and print the result."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = train(case, Path(folder))
        row = pack(case, run, score=true_score(case, run))
    took = time.process_time() - began
    runs.add({**row, "cpu_seconds": round(took, 1)})
    return f"{case.name}: {row['score']} ({run.status}, {took:.0f} CPU s)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT")
    parser.add_argument("--list", action="store_true", help="list the missing cases, train nothing")
    parser.add_argument("--pack", action="store_true", help="pack the stored lines, train nothing")
    args = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # to be set before NumPy is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    if args.pack:
        print(f"{runs.pack()} trainings in {runs.PACKED.name}")
        return 0
    if args.list:
        print("\n".join(case.name for case in missing(args.only)))
        return 0
    CLAIMS.mkdir(exist_ok=True)
    for case in missing(args.only):
        try:
            with files.locked(CLAIMS / case.name.replace("/", "_"), wait=False):
                if case not in runs.rows():  # by now
                    print(make(case), flush=True)
        except BlockingIOError:  # another process is at it
            continue
    return 0


if __name__ == "__main__":
    sys.exit(main())
