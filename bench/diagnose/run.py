"""Is the diagnosis right? Judge labelled trainings, most with a planted fault: found, missed, false alarms.

    python bench/diagnose/run.py [--cases TEXT] [--stops]

It judges the stored trainings (runs.jsonl.xz, made by make.py) in under a minute and writes bench/diagnose/table.md,
next to the rules of earlier tools on the same files. `--cases` shows the findings in the development cases whose names
contain a text (`""` for all). `--stops` shows the healthy trainings to each rule at every row, as a `stop` section does
while a run trains, and counts those that the rule would have ended.

Fixed before any limit of a rule was set:

- *Cells*: 39 fault operators (config, reward, world, algorithm) in five worlds under PPO, DQN and SAC, not the full
  product: 75 cells, five seeds each, every training with its own seed. There are as many healthy runs: sane variants of
  each task's tuned config. The first plan had 118 cells and 1,078 trainings. It was cut for lack of time, by cost
  alone, twice: before anything was diagnosed, and (TD3 and five costly cells) after the first seeds of the development
  split had been.
- *Split*: by a hash of operator × world (variant × world for healthy runs): `labelled.cases.split`. Limits may be
  chosen only on `dev`; of `test`, only the totals are shown.
- *Fault*: counts only if the final returns of its seeds, in the correct task, are significantly below those of all
  healthy runs of the same task (one-sided permutation test, p < .05).
- *Healthy*: a tuned config that learned: at least 60 % of the way from the random policy's return to a good one.
- *Flagged*: at least one finding that is more than a remark (severity high or medium). *Top-1*: the first of these is
  one of the rules that the operator names as right (`labelled.operators`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labelled import earlier, runs
from labelled.cases import Case, cases
from labelled.judge import Cell, Figures, Judged, counts, effects, figures
from labelled.pack import unpack
from labelled.replay import stopped_by

from rlx import files
from rlx.diagnose import load_case
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.run_case import RunCase

TABLE = Path(__file__).parent / "table.md"
SPLITS = ("dev", "test")
HEADER = """\
# Is the diagnosis right?

For anyone who asks how far to trust `rlx diagnose`. Written by `python bench/diagnose/run.py`, which defines the terms.
*Top-1* is the share of flagged faults whose first finding is right; *of all* also counts the missed ones.

| rules | split | faults | precision | recall | top-1 (of all) | healthy | false alarms |
|---|---|---|---|---|---|---|---|
"""
Rules = Callable[[RunCase], Sequence[str]]


def ours(case: RunCase) -> list[str]:
    """Return the rules of rlx that find something, without remarks."""
    return [finding.rule for finding in diagnose(case).findings if finding.severity != "low"]


RULES: dict[str, Rules] = {"rlx": ours, "earlier tools": earlier.findings}


def read(case: Case, row: Mapping[str, Any]) -> RunCase:
    """Read a stored training as a diagnosis reads a run's folder."""
    with tempfile.TemporaryDirectory() as folder:
        return load_case.read_case(unpack(row, case, Path(folder)))


def judged(stored: Mapping[Case, Mapping[str, Any]]) -> dict[str, list[Judged]]:
    """Return every run as each set of rules judges it."""
    found: dict[str, list[Judged]] = {name: [] for name in RULES}
    for case, row in stored.items():
        run = read(case, row)
        random = run.random.mean if run.random else float("-inf")
        for name, rules in RULES.items():
            found[name].append(Judged(case, files.number(row["score"]), random, tuple(rules(run))))
    return found


def table(found: Mapping[str, Sequence[Judged]], effect: Mapping[Cell, float]) -> str:
    """Return the figures of both splits, then the findings in each cell of the development split."""
    lines = [_row(name, side, _figures(some, side, effect)) for side in SPLITS for name, some in found.items()]
    mine = found["rlx"]
    beside = [
        f"- {side}: not counted are {got.ineffective} trainings whose fault does no significant harm, and "
        f"{got.unlucky} of tuned configs that did not learn"
        for side, got in ((side, _figures(mine, side, effect)) for side in SPLITS)
    ]
    cells = [_cell(cell, mine, p) for cell, p in sorted(effect.items()) if _split(cell, mine) == "dev"]
    title = "## Development cells\n\n| fault | task | p | flagged | right | first findings |\n|---|---|---|---|---|---|"
    return "\n".join([HEADER + "\n".join(lines), "", *beside, "", title, *cells]) + "\n"


def _figures(some: Sequence[Judged], side: str, effect: Mapping[Cell, float]) -> Figures:
    return figures([run for run in some if run.case.split == side], effect)


def _row(name: str, side: str, got: Figures) -> str:
    cells = [
        name, side, str(got.faults), _percent(got.precision), _percent(got.recall),
        f"{_percent(got.top_one)} ({_percent(got.right_of_all)})", str(got.healthy),
        f"{_percent(got.false_alarms)} ({got.alarms})",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _split(cell: Cell, some: Sequence[Judged]) -> str:
    return _of(cell, some)[0].case.split


def _of(cell: Cell, some: Sequence[Judged]) -> list[Judged]:
    return [run for run in some if (run.case.operator_name, run.case.task_name) == cell]


def _cell(cell: Cell, some: Sequence[Judged], p: float) -> str:
    own = _of(cell, some)
    firsts = [run.found[0] if run.found else "–" for run in own]
    ordered = sorted(set(firsts), key=lambda name: (-firsts.count(name), name))
    shown = ", ".join(f"{name} {firsts.count(name)}" for name in ordered)
    flagged, right = sum(run.is_flagged for run in own), sum(run.is_right for run in own)
    return f"| {cell[0]} | {cell[1]} | {p:.3f} | {flagged}/{len(own)} | {right}/{len(own)} | {shown} |"


def show(some: Sequence[Judged], effect: Mapping[Cell, float], text: str) -> None:
    """Print the findings in the development cases whose names contain a text."""
    for run in sorted(some, key=lambda run: run.case.name):
        if run.case.split == "dev" and text in run.case.name:
            is_counted = run.has_learned if run.case.is_healthy else counts(run, effect)
            kind = "healthy" if run.case.is_healthy else "fault"
            aside = "" if is_counted else " (does not count)"
            print(f"{run.case.name}: {kind}{aside}, {run.score:.4g}: {', '.join(run.found) or '–'}")


def show_stops(stored: Mapping[Case, Mapping[str, Any]]) -> None:
    """Print how many healthy trainings each rule alone would have ended before their end."""
    healthy = {case: read(case, row) for case, row in stored.items() if case.is_healthy}
    for side in SPLITS:
        own = [(case, run) for case, run in healthy.items() if case.split == side and _has_learned(case, run, stored)]
        ended = [(case.name, stopped_by(run)) for case, run in own]
        print(f"{side}: {sum(bool(rules) for _, rules in ended)} of {len(own)} healthy trainings ended by any rule")
        counts = Counter(rule for _, rules in ended for rule in rules)
        for rule, count in counts.most_common() if side == "dev" else []:
            names = [name for name, rules in ended if rule in rules]
            print(f"  {rule}: {count} ({', '.join(names[:4])})")


def _has_learned(case: Case, run: RunCase, stored: Mapping[Case, Mapping[str, Any]]) -> bool:
    random = run.random.mean if run.random else float("-inf")
    return Judged(case, files.number(stored[case]["score"]), random, ()).has_learned


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", metavar="TEXT")
    parser.add_argument("--stops", action="store_true")
    args = parser.parse_args()
    stored = runs.rows()
    if not stored:
        print("no stored trainings: python bench/diagnose/make.py")
        return 0
    if args.stops:
        show_stops(stored)
        return 0
    found = judged(stored)
    effect = effects(found["rlx"])
    if args.cases is not None:
        show(found["rlx"], effect, args.cases)
        return 0
    TABLE.write_text(table(found, effect), encoding="utf-8")
    print(f"{len(stored)} of {len(cases())} trainings")
    for side in SPLITS:
        for name, some in found.items():
            got = _figures(some, side, effect)
            print(
                f"{side}, {name}: precision {_percent(got.precision)}, recall {_percent(got.recall)} of {got.faults}, "
                f"top-1 {_percent(got.top_one)} ({_percent(got.right_of_all)} of all), "
                f"false alarms {_percent(got.false_alarms)} of {got.healthy}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
