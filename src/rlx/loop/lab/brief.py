"""The brief of a lab: everything that an agent with an empty memory needs, in at most 8 kB.

The texts are cut until the brief fits. The ten largest effects always stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlx.loop.lab.attempt import Attempt, attempts
from rlx.loop.lab.lab_folder import SURFACE, Lab
from rlx.loop.study.agent.compact import scores
from rlx.loop.study.agent.history import shortened
from rlx.loop.study.agent.ideas import Idea, best_ideas
from rlx.loop.study.step_commands import situation_of
from rlx.number_format import counted, figure
from rlx.study.candidate.candidate import BASELINE
from rlx.study.situation import Situation

MOST_BYTES = 8_000
LARGEST_EFFECTS = 10
NEWEST = 6
MISSION_LENGTHS = (3000, 1500, 800, 300)
TEXT_LENGTHS = (220, 140, 90, 60, 40)
TRY = (
    "## How to try\n"
    '- `rlx lab try --description "what changes, and why it helps" --predicts GAIN` trains and measures your change.\n'
    '- `rlx lab lesson CANDIDATE --text "what the result taught"` stores what you learned.'
)
"""How a person or an agent without a driver makes an attempt."""


def brief(lab: Lab, *, ending: str = TRY, picture: str = "") -> str:
    """Return the brief as Markdown: mission, rules, the state of the search, attempts and open ideas.

    `ending` says how an attempt is made: by hand, or in a session of the driver. `picture` is the path of the head's
    contact sheet.
    """
    study = lab.study
    at = situation_of(study)
    tried = attempts(lab)
    for mission in MISSION_LENGTHS:
        for text in TEXT_LENGTHS:
            whole = "\n\n".join(
                (
                    f"# Brief of lab {lab.name} ({lab.config.kind})",
                    _mission(lab, mission),
                    _rules(lab),
                    ending,
                    _standing(lab, at, tried, picture),
                    _effects(tried, text),
                    _newest(tried, text),
                    _open(lab, at, text),
                )
            )
            if len(whole.encode()) <= MOST_BYTES:
                return whole + "\n"
    return whole.encode()[: MOST_BYTES - 1].decode(errors="ignore") + "\n"


def _mission(lab: Lab, most: int) -> str:
    text = lab.program_path.read_text(encoding="utf-8", errors="replace").strip()
    return "## Mission (program.md)\n" + shortened(text, most)


def _rules(lab: Lab) -> str:
    caps = lab.config.caps
    return (
        "## Rules\n"
        f"- Change only {SURFACE[0]} and {SURFACE[1]}. Other edits are refused.\n"
        "- One idea per attempt. Siblings train on the same seeds; two ideas in one diff are labelled combined.\n"
        f"- TRAINING in {SURFACE[1]} is a literal; its length is fixed by the rung. At most {caps.diff_lines} lines.\n"
        f"- rlx trains and measures; a higher `{lab.config.metric.name}` is better. "
        "A file, print or info of the candidate never changes its score."
    )


def _standing(lab: Lab, at: Situation, tried: Sequence[Attempt], picture: str) -> str:
    lines = [
        f"- Rung {lab.rung.name} (train/eval episodes) of {', '.join(rung.name for rung in lab.config.ladder)}. "
        "Scores of different rungs are not comparable.",
        f"- {_scores(at)}",
        f"- {counted(len(tried), 'attempt')}: {_counts(tried)}. Left at this rung: {at.seeds_left} seeds, "
        f"{at.candidates_left} candidates.",
    ]
    if at.state.incumbent:
        lines.append(f"- Confirmed: {at.state.incumbent}.")
    if picture:
        lines.append(f"- Worst and median episode of {at.state.head}: {picture}")
    return "## Where we stand\n" + "\n".join(lines)


def _scores(at: Situation) -> str:
    """Return the scores of the baseline and the head, which can be the same."""
    known = scores(at)
    if known["baseline"] is None:
        return f"{known['metric']}: nothing is measured yet. The first attempt trains the baseline, too."
    if at.state.head == BASELINE:
        return f"{known['metric']}: baseline {figure(known['baseline'])}. It is the head: nothing has beaten it."
    head = "not measured" if known["head"] is None else figure(known["head"])
    return f"{known['metric']}: baseline {figure(known['baseline'])}, head {at.state.head} {head}."


def _counts(tried: Sequence[Attempt]) -> str:
    counts: dict[str, int] = {}
    for attempt in tried:
        counts[attempt.status] = counts.get(attempt.status, 0) + 1
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "none yet"


def largest_effects(tried: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts with the largest effects, up or down, the largest first."""
    measured = [attempt for attempt in tried if attempt.effect is not None]
    return sorted(measured, key=lambda attempt: -abs(attempt.effect or 0.0))[:LARGEST_EFFECTS]


def _effects(tried: Sequence[Attempt], most: int) -> str:
    lines = [_line(attempt, most) for attempt in largest_effects(tried)] or ["- none measured yet"]
    return "## Largest effects\n" + "\n".join(lines)


def _newest(tried: Sequence[Attempt], most: int) -> str:
    shown = {attempt.row for attempt in largest_effects(tried)}
    others = [attempt for attempt in tried if attempt.row not in shown]
    lines = [_line(attempt, most) for attempt in others[-NEWEST:]] or ["- none"]
    return "## Newest attempts that are not listed above\n" + "\n".join(lines)


def _line(attempt: Attempt, most: int) -> str:
    name = f"{attempt.candidate or attempt.row.rpartition('/')[2]} at {attempt.rung.name}"
    words = [f"- {name}: {attempt.status}"]
    if attempt.effect is not None:
        words.append(f"{attempt.effect_text} v {attempt.against}")
    if attempt.is_combined:
        words.append("(combined)")
    words.append(shortened(" ".join(attempt.description.split()), most))
    if attempt.lesson:
        words.append(f"Lesson: {shortened(attempt.lesson, most)}")
    elif attempt.reasons:
        reason = attempt.reasons[0]
        words.append(f"[{reason.get('code')}] {shortened(str(reason.get('says')), most)}")
    return " ".join(words)


def _open(lab: Lab, at: Situation, most: int) -> str:
    """Return the ideas that findings suggest and that are still open."""
    ideas = best_ideas(lab.study, at) if at.state.approval is not None else []
    still_open = [idea for idea in ideas if not idea.has_failed]
    lines = [f"- {_deed(idea)}: {shortened(idea.because, most)}" for idea in still_open[:5]]
    return "## Open ideas, from diagnose and reflect\n" + ("\n".join(lines) or "- no finding; think of your own")


def _deed(idea: Idea) -> str:
    """Return what an idea does: the settings with their whole keys, as `candidate/train.py` nests them."""
    return ", ".join(f"{key} = {value!r}" for key, value in idea.changes.items()) or idea.text
