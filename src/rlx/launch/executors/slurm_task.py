"""The process of one array task: run the task's job; if Slurm interrupts it, queue it again from inside.

It runs as `python -P -m rlx.launch.executors.slurm_task ARRAY`, in the place of the sbatch script's shell, so that it
gets Slurm's signals.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rlx import files
from rlx.launch.executors.executor import PAUSED, PAUSED_EXIT, read_document
from rlx.launch.executors.job_runner import run_to_end
from rlx.launch.executors.slurm import FOLDERS, SCRIPT, array_id, run_command
from rlx.runs.job_folder import SUBMITTED


def main(argv: list[str]) -> int:
    """Run the job of this task, and queue it again if it was paused."""
    array = Path(argv[0])
    index = int(os.environ["SLURM_ARRAY_TASK_ID"])
    folder = Path((array / FOLDERS).read_text().splitlines()[index])
    code = run_to_end(folder, catches_signals=True)
    if code != PAUSED_EXIT:
        return code
    paused = read_document(folder / PAUSED) or {}
    array_job = os.environ.get("SLURM_ARRAY_JOB_ID", "")
    is_warned = paused.get("signal") == "SIGUSR1"  # the time is nearly up, or a person asked
    if is_warned and _is_requeued(f"{array_job}_{index}", array):
        return 0
    if is_warned or _is_preempted(os.environ.get("SLURM_JOB_ID", "")):
        done = run_command(["sbatch", "--parsable", f"--array={index}", str(array / SCRIPT)])
        print(f"queued again: {done.stdout.strip()}{done.stderr.strip()}", flush=True)
        if array_id(done.stdout):  # `rlx stop` ends it by this id
            document = {"schema": 1, "id": f"{array_id(done.stdout)}_{index}", "printed": done.stdout[:2000]}
            files.write_json(folder / SUBMITTED, document)
    return 0


def _is_requeued(task: str, array: Path) -> bool:
    """Ask Slurm to put this task back into the queue; it refuses if the job or the site does not allow it."""
    if "--no-requeue" in (array / SCRIPT).read_text():
        return False
    done = run_command(["scontrol", "requeue", task])
    print(f"requeue {task}: {done.stderr.strip() or 'accepted'}", flush=True)
    return done.returncode == 0


def _is_preempted(job: str) -> bool:
    """Say whether Slurm ends this job to run another one; SIGTERM alone may also be a person's scancel."""
    done = run_command(["scontrol", "show", "job", job])
    words = dict(word.partition("=")[::2] for word in done.stdout.split() if "=" in word)
    return words.get("PreemptTime", "None") not in ("None", "") or words.get("JobState") in ("PREEMPTED", "TIMEOUT")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
