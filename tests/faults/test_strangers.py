"""A stranger's project, sweep, campaign and study: no command that reads them starts a program without --trust."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from rlx import files
from rlx.config.load import parse, read
from rlx.launch import launch
from rlx.launch.executors.executor import JOB, SUBMITTED, Job
from rlx.loop.research.run_research import FOLDER as RESEARCH
from rlx.loop.sweep import sweep_log
from rlx.loop.sweep.sweep_file import SweepRequest, plan_for, read_parameters
from rlx.loop.sweep.sweep_plan import SweepBudget
from rlx.runs import project
from rlx.study.task import task as tasks
from rlx.study.task.task import Launcher
from tests.evaluate.linear import GOOD, make_run
from tests.faults.lab import CONFIG, LINE, PATCH, PAY, PROPOSAL, Lab, commit

READS_PROJECT = (
    ("ls",), ("ls", "--all"), ("summarize", "--all"), ("watch", "--all", "--timeout", "1"), ("envs",), ("status",),
    ("next",), ("next", "--full"), ("config", "show", "configs/line.yaml"),
    ("config", "check", "configs/line.yaml", "--no-env"),
    ("task", "ls"), ("task", "show"), ("sweep", "ls"), ("research", "ls"), ("study", "ls"), ("doctor", "--quick"),
    ("adopt",), ("report", "queued_001"), ("import", "runs"),
)  # fmt: skip
READS_RUN = (
    ("info", "queued_001"), ("wait", "queued_001", "--timeout", "1"), ("stop", "queued_001"), ("logs", "queued_001"),
    ("rm", "queued_001", "--dry-run"), ("eval", "theirs_001"), ("video", "theirs_001"), ("stress", "theirs_001"),
    ("replay", "theirs_001"), ("explain", "theirs_001"), ("probe", "theirs_001", "gravity=1,2"),
    ("review", "theirs_001"), ("resume", "theirs_001"), ("resume", "theirs_001", "--prove"),
    ("train", "--more", "theirs_001", "--seeds", "1"), ("noise", "theirs_001", "--aa"),
    ("settle", "theirs_001", "theirs_001"), ("advisor", "theirs_001", "--execute"), ("check", "env", "theirs_001"),
    ("suggest", "theirs_001"), ("diagnose", "theirs_001"), ("recommend", "theirs_001"),
)  # fmt: skip
READS_SWEEP = (
    ("sweep", "show", "hunt"), ("sweep", "show", "hunt", "--plot"), ("sweep", "stop", "hunt"),
    ("sweep", "resume", "hunt"), ("research", "show", "quest"), ("research", "resume", "quest"),
)  # fmt: skip
READS_STUDY = (
    ("study", "show"), ("study", "log"), ("study", "report"), ("study", "verify"), ("study", "audit"),
    ("study", "queue"), ("study", "queue", "--work"), ("study", "loop"), ("study", "baseline"), ("study", "rehearse"),
    ("check", "contract"), ("check", "candidate", "c001"), ("launch", "c001", "--plan", "0" * 16),
    ("launch", "baseline"), ("try", "c001"), ("verdict", "c001"), ("decide", "c001"), ("propose", "--withdraw", "c001"),
)  # fmt: skip


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose environment, scheduler and planners leave a trace wherever they are started."""
    for name in [name for name in sys.modules if name.split(".")[0] == "envs"]:
        del sys.modules[name]  # another test's package of the same name
    place = tmp_path_factory.mktemp("stranger")
    root = place / "theirs"
    trace = place / "PWNED"
    touch = f"import pathlib; pathlib.Path({str(trace)!r}).touch()\n"
    lab = Lab(root)
    for name, text in {
        "envs/__init__.py": "", "envs/line.py": touch + LINE, "envs/pay.py": PAY, "configs/line.yaml": CONFIG,
        "rlx.toml": "", ".gitignore": "/runs/\n/.rlx/\n", "guide.patch": PATCH,
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    commit(root)
    lab.types(
        "study", "new", "walk", "--config", "configs/line.yaml", "--metric", "success_rate", "--edit",
        "envs/pay.py::reward", "--seeds", "200", "--hours", "4", "-s", "metric.seeds=2",
        "-s", "budget.per_seed_minutes=1",
    )  # fmt: skip
    task = lab.study.task()
    launcher = Launcher(
        executor="custom", submit=("true", "{script}"), poll=("touch", str(trace)), cancel=("touch", str(trace))
    )
    adapter = task.adapter.model_copy(update={"launcher": launcher})
    lab.study.task_path.write_text(tasks.dump(task.model_copy(update={"adapter": adapter})))
    lab.types("task", "refresh")
    lab.types("study", "approve", "--yes", "--by", "mallory")
    lab.types(*PROPOSAL)
    _queued_run(root)
    _run_of_their_environment(root)
    _sweeps(root, planner=f"cmd:{shlex.join([sys.executable, '-c', touch.strip()])}")
    return root


def _queued_run(root: Path) -> None:
    """Write a study's run whose job waits at a scheduler, so that its state is asked for."""
    lineage = {"task": "line", "study": "walk", "job": "j001", "candidate": "baseline", "executor": "custom"}
    config = {**read(root / "configs/line.yaml").model_dump(mode="json", by_alias=True), "run_name": "queued"}
    experiment = parse({**config, "backend": "fast"})
    run = launch.create(experiment, root=root, lineage=lineage)
    job = Job(id="line.walk.j001", argv=("true",), folder=run.path)
    place = root / ".rlx" / "jobs" / job.id
    place.mkdir(parents=True)
    files.write_json(place / JOB, job.document())
    files.write_json(place / SUBMITTED, {"schema": 1, "id": "7"})
    files.write_json(run.path / "jobs.json", {"schema": 1, "executor": "custom", "jobs": {"0": job.id}})


def _run_of_their_environment(root: Path) -> None:
    run = make_run(root, "theirs", {0: GOOD})
    path = run.path / "config_snapshot.yaml"
    path.write_text(path.read_text().replace("CartPole-v1", "envs/line.py:Line"))


def _sweeps(root: Path, *, planner: str) -> None:
    space = read_parameters(["algo.learning_rate=log:1e-5:1e-2"])
    request = SweepRequest(str(root / "configs/line.yaml"), space, name="hunt", budget=SweepBudget(trials=2))
    plan = plan_for(request, root=root)
    sweep_log.create(plan.__class__(**{**vars(plan), "planner": planner}), root=root)
    folder = root / RESEARCH / "quest"
    folder.mkdir(parents=True)
    log = sweep_log.SweepLog(folder)
    asked = {"rounds": 1, "budget": 80, "planner": "llm", "endpoint": planner, "is_strict": False}
    log.append("planned", key="1", plan=plan.document(), run="theirs_001", request=asked)


@pytest.fixture
def mail(theirs: Path, tmp_path: Path) -> Lab:
    """Return the project as it arrives by mail, and nothing that it names was started yet."""
    root = tmp_path / "mail"
    shutil.copytree(theirs, root, symlinks=True)
    (theirs.parent / "PWNED").unlink(missing_ok=True)
    return Lab(root)


@pytest.mark.slow
@pytest.mark.parametrize("table", [READS_PROJECT, READS_RUN, READS_SWEEP, READS_STUDY])
def test_no_command_starts_what_a_strangers_files_name(
    mail: Lab, theirs: Path, table: tuple[tuple[str, ...], ...]
) -> None:
    trace = theirs.parent / "PWNED"
    for words in table:
        code, told, errors = mail._called(list(words))
        assert not trace.exists(), words
        assert "Traceback" not in errors, (words, errors)
        assert (mail.root / "runs").is_dir()
        assert not project.is_own(mail.root), words
        del code, told


@pytest.mark.slow
def test_trust_starts_it_and_so_does_the_projects_own_user(mail: Lab, theirs: Path) -> None:
    trace = theirs.parent / "PWNED"
    code, _, errors = mail._called(["eval", "theirs_001"])
    assert (code, "nobody has trained in this folder yet" in errors, "--trust" in errors) == (4, True, True)
    mail._called(["eval", "theirs_001", "--trust"])
    assert trace.exists()
    trace.unlink()
    mail._called(["wait", "queued_001", "--timeout", "1"])
    assert not trace.exists()
    Lab(theirs)._called(["wait", "queued_001", "--timeout", "1"])  # its own user asks the scheduler
    assert trace.exists()


def test_a_project_is_ones_own_after_something_was_made_in_it_and_a_copy_is_not(tmp_path: Path) -> None:
    root = tmp_path / "own"
    root.mkdir()
    assert not project.is_own(root)
    project.mark_own(root)
    assert project.is_own(root)
    os.rename(root, tmp_path / "moved")
    assert project.is_own(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")
    assert not project.is_own(tmp_path / "copy")
