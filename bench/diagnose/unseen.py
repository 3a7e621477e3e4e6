"""Is the diagnosis right where nothing was tuned? Unseen environment families, and curves with a known shape.

    python bench/diagnose/unseen.py [--make] [--runs TEXT]

It judges stored trainings (families.jsonl.xz; `--make` trains the missing ones, about 80 CPU minutes) and writes
bench/diagnose/unseen.md. `--runs` prints the findings of the development runs whose names contain a text.

Fixed before the first training was judged:

- *Families*: ten worlds with reward terms, costs and success flags, three for development and seven unseen. A family is
  wholly in one split. Trainings have three seeds and are judged as one run.
- *Healthy*: the tuned config, the same with 40 % of the steps (many still rise), and with half the learning rate. All
  of them count, also those with an unlucky seed.
- *Fault*: ten operators. A fault counts only if the success rates of its seeds are significantly below those of the
  two full-length healthy runs of its family (one-sided permutation test, p < .05).
- *Flagged*: at least one finding of severity high or medium.
- *Shapes*: curves by formula in four kinds of noise, one seed or five, judged by `analyze`.

Fixed before the second look:

- *Fresh families*: seven more (PPO, DQN, SAC, TD3), with faults of off-policy training. *Fresh shapes*: other formulas
  and noises. *Real curves*: 44 stored trainings of one seed, drawn in one line and labelled by eye. Two labels mean
  that the eye could not tell them apart. rlx judged all three once; `FIRST_LOOK` keeps those figures. Changes followed.
"""

from __future__ import annotations

import argparse
import lzma
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from families import fresh_shapes
from families.cases import FamilyCase, cases
from families.shapes import curve_cases
from labelled.pack import pack, unpack
from labelled.train import train

from rlx import files
from rlx.compare.permutation import permutation_p
from rlx.diagnose.analyze import analyze
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.load_case import read_case
from rlx.diagnose.run_case import RETURN, RunCase, SeedCase
from rlx.runs.metrics import Series

HERE = Path(__file__).parent
PACKED = HERE / "families.jsonl.xz"
LOOSE = HERE / ".families.jsonl"
TABLE = HERE / "unseen.md"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
HARM = 0.05
FIRST_LOOK = (
    "precision 95.7%, recall 91.8%, false alarms 2 of 21 (both 40 % of the steps of SAC and TD3), hacking alarms 0, "
    "fresh shapes 91.9% (a slow loss was called a collapse), real curves 35 of 44."
)


@dataclass(frozen=True)
class Judged:
    """One run: its findings without remarks, what `analyze` says, and the success rate of every seed."""

    case: FamilyCase
    found: tuple[str, ...]
    answer: str
    success: tuple[float, ...]


def rows() -> dict[FamilyCase, dict[str, Any]]:
    """Return the stored line of every case that has one of its present plan."""
    lines = lzma.decompress(PACKED.read_bytes()) if PACKED.is_file() else b""
    stored = {(row["case"], row["plan"]): row for row in (*files.rows_in(lines), *files.read_rows(LOOSE))}
    return {case: stored[case.name, case.plan] for case in cases() if (case.name, case.plan) in stored}


def make(text: str) -> None:
    """Train the missing cases whose names contain a text, one after the other."""
    done = rows()
    missing = [case for case in cases() if case not in done and text in case.name]
    for number, case in enumerate(missing, start=1):
        with tempfile.TemporaryDirectory() as folder:
            run = train(_Training(case), Path(folder))
            files.append_line(LOOSE, files.encode(pack(case, run, score=_success(run.evaluations()))))
        print(f"{number} of {len(missing)}: {case.name} {run.status}", flush=True)


def pack_all() -> None:
    """Put all stored trainings into one compressed file."""
    kept = sorted(rows().values(), key=lambda row: str(row["case"]))
    files.write_atomic(PACKED, lzma.compress(b"".join(files.encode(row) + b"\n" for row in kept), preset=9))
    LOOSE.unlink(missing_ok=True)


class _Training:
    """A case as `labelled.train` takes it: these faults are in the config and the world, never in the algorithm."""

    operator = None

    def __init__(self, case: FamilyCase) -> None:
        self.config = case.config
        self.seed = case.seed


def _success(evaluations: Sequence[Mapping[str, Any]]) -> float:
    """Return the success rate of the final policy, 0 if training failed before it was measured."""
    last = [row for row in evaluations if row.get("purpose") == "report" and str(row["name"]).endswith("latest")]
    return float(last[-1].get("success_rate") or 0.0) if last else 0.0


def judge(stored: Mapping[FamilyCase, Mapping[str, Any]]) -> list[Judged]:
    """Diagnose every run, with all its seeds."""
    by_run: dict[str, list[FamilyCase]] = defaultdict(list)
    for case in stored:
        by_run[case.run_name].append(case)
    found = []
    for members in by_run.values():
        with tempfile.TemporaryDirectory() as folder:
            for case in members:
                run = unpack(stored[case], case, Path(folder))
            read = read_case(run)
        rules = tuple(finding.rule for finding in diagnose(read).findings if finding.severity != "low")
        success = tuple(float(stored[case]["score"]) for case in members)
        found.append(Judged(members[0], rules, analyze(read).answer, success))
    return found


def counts(run: Judged, runs: Sequence[Judged]) -> bool:
    """Say whether a fault lowers the success rate of its family significantly."""
    good: list[float] = []
    for one in runs:
        if one.case.family == run.case.family and one.case.variant in ("tuned", "slower"):
            good += one.success
    return bool(permutation_p(run.success, good, alternative="greater") < HARM)


def figures(runs: Sequence[Judged], split: str) -> dict[str, float]:
    """Return the figures of one split."""
    own = [run for run in runs if run.case.split == split]
    healthy = [run for run in own if run.case.is_healthy]
    faults = [run for run in own if not run.case.is_healthy and counts(run, runs)]
    alarms = sum(bool(run.found) for run in healthy)
    flagged = sum(bool(run.found) for run in faults)
    return {
        "healthy": len(healthy), "alarms": alarms, "faults": len(faults), "flagged": flagged,
        "precision": flagged / max(1, flagged + alarms), "recall": flagged / max(1, len(faults)),
        "hacking_alarms": sum("reward_hacking" in run.found for run in healthy),
        "hacking_found": sum("reward_hacking" in run.found for run in faults if run.case.variant == "bribe"),
        "hacking": sum(run.case.variant == "bribe" for run in faults),
    }  # fmt: skip


def shape_accuracy(
    *, repeats: int = 2, seed: int = 2026, make_curves: Any = curve_cases
) -> tuple[float, Counter[tuple[str, str]], int]:
    """Return the share of curves whose shape is named right, the confusions, and how many curves there were."""
    wrong: Counter[tuple[str, str]] = Counter()
    made = make_curves(repeats=repeats, seed=seed)
    for truth, _, case in made:
        answer = analyze(case).answer
        if answer != truth:
            wrong[truth, answer] += 1
    return 1 - sum(wrong.values()) / len(made), wrong, len(made)


def real_curves() -> list[tuple[str, list[str], str]]:
    """Return the name, the labels and rlx's answer of every real curve that was labelled by eye."""
    stored: dict[str, Mapping[str, Any]] = {}
    for name in ("runs", "families"):
        for row in files.rows_in(lzma.decompress((HERE / f"{name}.jsonl.xz").read_bytes())):
            stored[f"{name}:{row['case']}"] = row["rows"]
    found = []
    for name, labels in files.read_json(HERE / "families" / "real_curves.json").items():
        pairs = zip(stored[name]["step"], stored[name][RETURN], strict=True)
        known = np.array([(step, float(value)) for step, value in pairs if value is not None])
        last = int(known[-1, 0])
        seed = SeedCase(0, step=last, series={RETURN: Series(known[:, 0], known[:, 1])})
        found.append((name, labels, analyze(RunCase("curve_001", "ppo", {}, last, (seed,))).answer))
    return found


def _shape_lines(title: str, result: tuple[float, Counter[tuple[str, str]], int]) -> list[str]:
    accuracy, wrong, total = result
    lines = ["", f"{title}: {accuracy:.1%} of {total} are named right.", ""]
    return lines + [f"- {truth} called {answer}: {count}" for (truth, answer), count in wrong.most_common(8)]


def table(runs: Sequence[Judged]) -> str:
    """Return the page."""
    lines = [
        "# Is the diagnosis right where nothing was tuned?", "",
        "For anyone who asks how far to trust `rlx diagnose` in their own environment. Written by",
        "`python bench/diagnose/unseen.py`, which defines the terms.", "",
        "| split | faulty runs | precision | recall | healthy runs | false alarms | hacking alarms | bribes found |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for split in ("dev", "unseen", "fresh"):
        got = figures(runs, split)
        share = got["alarms"] / max(1, got["healthy"])
        lines.append(
            f"| {split} | {got['faults']:.0f} | {got['precision']:.1%} | {got['recall']:.1%} | {got['healthy']:.0f} | "
            f"{share:.1%} ({got['alarms']:.0f}) | {got['hacking_alarms']:.0f} | "
            f"{got['hacking_found']:.0f} of {got['hacking']:.0f} |"
        )
    lines += ["", f"The first look at `fresh`, before anything was changed because of it: {FIRST_LOOK}"]
    lines += _shape_lines("Shapes of curves with a known truth", shape_accuracy())
    fresh = shape_accuracy(seed=7, make_curves=fresh_shapes.curve_cases)
    lines += _shape_lines("Fresh shapes, with other formulas and noises", fresh)
    real = real_curves()
    agreed = sum(answer in labels for _, labels, answer in real)
    lines += ["", f"Real curves that were labelled by eye: rlx agrees on {agreed} of {len(real)}.", ""]
    lines += [f"- {name}: {' or '.join(labels)} by eye, {answer} by rlx" for name, labels, answer in real
              if answer not in labels]  # fmt: skip
    answers = Counter((run.case.variant, run.answer) for run in runs if run.case.is_healthy)
    lines += ["", "Shapes of the healthy trainings: " + ", ".join(
        f"{variant} {answer} {count}" for (variant, answer), count in sorted(answers.items())) + "."]  # fmt: skip
    by_fault = defaultdict(list)
    for run in runs:
        if not run.case.is_healthy and counts(run, runs):
            by_fault[run.case.variant].append(bool(run.found))
    lines += ["", "| fault | counts in | flagged |", "|---|---|---|"]
    lines += [f"| {name} | {len(found)} families | {sum(found)} |" for name, found in by_fault.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--make", nargs="?", const="", metavar="TEXT", help="train the missing cases with a text in their name"
    )
    parser.add_argument(
        "--runs", metavar="TEXT", help="print the findings of development runs with a text in their name"
    )
    args = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # to be set before NumPy is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    if args.make is not None:
        make(args.make)
        return 0
    if LOOSE.is_file():
        pack_all()
    runs = judge(rows())
    if args.runs is not None:
        for run in runs:
            if run.case.split == "dev" and args.runs in run.case.run_name:
                print(f"{run.case.run_name}: {run.answer}, success {np.mean(run.success):.2f}: {', '.join(run.found)}")
        return 0
    page = table(runs)
    TABLE.write_text(page, encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
