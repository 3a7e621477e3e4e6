"""A contact sheet of a policy's worst and median episode, drawn by a process of its own: environments are not trusted.

The request on stdin has the experiment, the checkpoint's folder and the number of episodes. The last line on stdout is
the answer: the PNG in base64, or why there is none.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import parse
from rlx.errors import RlxError, UsageError
from rlx.evaluate.foreign_code import ForeignCode, one_line
from rlx.evaluate.measure import rebuild_fitting
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator
from rlx.evaluate.stored_code import trust_stored_code
from rlx.evaluate.video.contact_sheet import ContactSheet
from rlx.evaluate.video.film import fill_sheet
from rlx.evaluate.video.pick_episode import Which, pick
from rlx.runs.checkpoints import checkpoint as checkpoints

SHOWN: tuple[Which, ...] = ("worst", "median")
MOST_BYTES = 700_000
"""The largest picture that fits into an answer."""


def draw_sheet(root: Path, request: Mapping[str, Any]) -> bytes:
    """Play report episodes, which no study is judged by, and return the PNG of the worst and the median one."""
    experiment = parse(request["experiment"])
    protocol = Protocol.of(experiment, root=root, purpose="report", episodes=int(request["episodes"]))
    with Evaluator(protocol) as evaluator:
        policy, _ = rebuild_fitting(evaluator, checkpoints.read(Path(request["checkpoint"]), with_replay=False))
        episodes = list(evaluator.evaluate(policy).episodes)
    seeds = list(dict.fromkeys(pick(episodes, which).seed for which in SHOWN))
    sheet = ContactSheet(f"{request['title']}: {' and '.join(SHOWN)} of {len(episodes)} episodes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.png"
        fill_sheet(policy, protocol, sheet, seeds=seeds)
        sheet.save(path)
        png = path.read_bytes()
    if len(png) > MOST_BYTES:
        raise UsageError(f"its frames are too large for a sheet: {len(png):,} bytes")
    return png


def _as_rlx_error(error: Exception) -> RlxError:
    return error if isinstance(error, RlxError) else UsageError(f"the environment raises {one_line(error)}")


def main(argv: list[str]) -> int:
    """Draw the sheet for the tree `argv[0]`."""
    stdout = os.dup(1)
    os.dup2(2, 1)  # the project's own prints do not belong to the answer
    request = files.decode(sys.stdin.buffer.read())
    trust_stored_code(is_trusted=True)  # the sandbox around this process is what protects the account
    try:
        with ForeignCode(_as_rlx_error):
            answer = {"png": base64.b64encode(draw_sheet(Path(argv[0]), request)).decode()}
    except RlxError as error:
        answer = {"problem": error.message}
    with os.fdopen(stdout, "wb") as stream:
        stream.write(files.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
