"""The marked block in AGENTS.md: insert it, update it, remove it without a trace."""

import re
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
    """A file's text with the block in it; `gap` is the separator that was inserted before the block."""

    text: str
    gap: str


def upsert(text: str, block: str, *, name: str = "AGENTS.md") -> Placed:
    """Replace the block, or append it; the file keeps its line ends."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    place = _find(text, name)
    if place is not None:
        return Placed(text[: place[0]] + block + text[place[1] :], "")
    gap = ""
    if text:
        gap = newline if text.endswith("\n") else newline * 2
    return Placed(text + gap + block, gap)


def remove(text: str, *, gap: str = "", name: str = "AGENTS.md") -> str:
    """Remove the block and the gap before it."""
    place = _find(text, name)
    if place is None:
        return text
    before = text[: place[0]]
    if gap and before.endswith(gap):
        before = before[: len(before) - len(gap)]
    return before + text[place[1] :]


def _find(text: str, name: str) -> tuple[int, int] | None:
    """Return the start and the end of the block, including its line end."""
    starts = text.count(BEGIN)
    ends = text.count(END)
    if not starts and not ends:
        return None
    block = re.search(f"{BEGIN}.*?{END}(\r?\n)?", text, flags=re.S)
    if starts != 1 or ends != 1 or block is None:
        raise UsageError(
            f"{name}: rlx's block is damaged ({starts} x `{BEGIN}`, {ends} x `{END}`)",
            hint=f"delete these marks and the text between them from {name}, then run it again",
        )
    return block.span()
