"""The picture of a brief: a contact sheet of the head's worst and median episode, made once per head.

The episodes are those of reports. No score of the lab rests on them, so the picture shows no hidden one. The
policy plays in a sandbox: in a build lab, the environment is the candidate's.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.config.load import document, parse
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch.study_jobs.check_in_sandbox import ask_in_sandbox
from rlx.launch.study_jobs.checkpoint_hashes import final_checkpoint
from rlx.loop.lab.lab_folder import APPROVE_HINT, Lab
from rlx.loop.lab.staged_change import head_tree
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED
from rlx.study.candidate.candidate import BASELINE

EPISODES = 9
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class HeadSheet:
    """The picture of the head, or why there is none."""

    path: Path | None
    problem: str = ""


def head_sheet(lab: Lab) -> HeadSheet:
    """Return the contact sheet of the head at the current rung; it is drawn if it is not there yet."""
    study = lab.study
    refuse_foreign_program("the environment of the lab", root=lab.root, item=lab.study.folder, hint=APPROVE_HINT)
    head = study.state().head
    path = lab.folder / "media" / f"{study.name}_{head}.png"
    if path.is_file():
        return HeadSheet(path)
    seed = _trained(lab, head)
    if seed is None:
        return HeadSheet(None, f"{head} is not trained at {lab.rung.name} yet")
    checkpoint = final_checkpoint(seed)
    run = Run(seed.folder.parent)
    request = {
        "experiment": document(parse(run.config)), "checkpoint": str(checkpoint), "episodes": EPISODES,
        "title": f"{head} at {lab.rung.name}, training seed {seed.number}",
    }  # fmt: skip
    with head_tree(study) as tree:
        asked = ask_in_sandbox("rlx.evaluate.video.episode_sheet", request, tree=tree, reads=(checkpoint,))
    if asked.answer is None:
        return HeadSheet(None, asked.problem)
    try:
        png = base64.b64decode(str(asked.answer.get("png", "")), validate=True)
    except (binascii.Error, ValueError):
        png = b""
    if not png.startswith(PNG):
        return HeadSheet(None, str(asked.answer.get("problem", "the environment changed the answer"))[:300])
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, png)
    return HeadSheet(path)


def _trained(lab: Lab, head: str) -> Seed | None:
    """Return a completed training seed of the head, the first one."""
    state = lab.study.state()
    for job in state.ended_jobs(head, "baseline" if head == BASELINE else "trial"):
        for seed in Run(lab.root / "runs" / str(job.run)).seeds:
            if seed.status.state == COMPLETED:
                return seed
    return None
