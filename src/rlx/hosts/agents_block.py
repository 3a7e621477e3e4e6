"""The marked block in AGENTS.md: put in, brought up to date, taken out again to the byte."""

from __future__ import annotations

from dataclasses import dataclass

from rlx.errors import UsageError

BEGIN = "<!-- rlx:begin -->"
END = "<!-- rlx:end -->"
TEXT = f"""{BEGIN}
## Reinforcement-learning experiments: rlx

- Skills are in `SKILLS`; `rlx docs` lists them and their references, `rlx docs TOPIC` prints one.
- A governed study (there is `.rlx/active.json`): `rlx next --json` says what to do, from the state on disk alone.
- Train only with `rlx launch` (in a study) or `rlx train` (plain runs), never by calling a training script.
- Approving a contract is for a person. Scores come from rlx, never from training logs.
- Long work: start it with `--detach`, then `rlx wait RUN --timeout 300` as often as it takes.
{END}
"""


@dataclass(frozen=True)
class Placed:
    """A file's text with the block in it; `gap` is what was put before the block to set it apart."""

    text: str
    gap: str


def upsert(text: str, block: str, *, name: str = "AGENTS.md") -> Placed:
    """Put the block where it already stands, else at the end, in the file's own line ends."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    place = _find(text, name)
    if place is not None:
        return Placed(text[: place[0]] + block + text[place[1] :], "")
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return Placed(text + gap + block, gap)


def remove(text: str, *, gap: str = "", name: str = "AGENTS.md") -> str:
    """Take the block out, and the gap that was put before it."""
    place = _find(text, name)
    if place is None:
        return text
    before = text[: place[0]]
    if gap and before.endswith(gap):
        before = before[: len(before) - len(gap)]
    return before + text[place[1] :]


def _find(text: str, name: str) -> tuple[int, int] | None:
    """Return where the block begins and ends, with the line end behind it."""
    starts, ends = text.count(BEGIN), text.count(END)
    if not starts and not ends:
        return None
    start, end = text.find(BEGIN), text.find(END)
    if starts != 1 or ends != 1 or end < start:
        raise UsageError(
            f"{name}: the block of rlx is not whole ({starts} x `{BEGIN}`, {ends} x `{END}`)",
            hint=f"delete these marks and what is between them from {name}, then run it again",
        )
    end += len(END)
    for newline in ("\r\n", "\n"):
        if text.startswith(newline, end):
            end += len(newline)
            break
    return start, end
