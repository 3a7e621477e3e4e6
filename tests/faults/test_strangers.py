"""A stranger's project, sweep, campaign and study: no command that reads them starts a program without --trust."""

from __future__ import annotations

import html
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from rlx import files
from rlx.config.load import parse, read
from rlx.hosts.cli.commands import COMMANDS
from rlx.hosts.cli.parser import leaves, parser_of
from rlx.launch import launch
from rlx.launch.executors.executor import JOB, SUBMITTED, Job
from rlx.loop.lab.drive_rules import DriveOptions
from rlx.loop.lab.new_lab import LabWishes, approve_lab, new_lab
from rlx.loop.lab.session.session_record import DRIVER_EVENT
from rlx.loop.research.run_research import FOLDER as RESEARCH
from rlx.loop.sweep import sweep_log
from rlx.loop.sweep.sweep_file import SweepRequest, plan_for, read_parameters
from rlx.loop.sweep.sweep_plan import SweepBudget
from rlx.runs import project
from rlx.study.task import task as tasks
from rlx.study.task.task import Launcher
from tests.evaluate.linear import GOOD, make_run
from tests.faults.lab import CONFIG, LINE, PATCH, PAY, PROPOSAL, Lab, commit, rewrite_approvals
from tests.hosts.mcp.wire import served
from tests.hosts.ui.conftest import serving
from tests.loop.mill import Mill

READS_PROJECT = (
    ("ls",), ("ls", "--all"), ("summarize", "--all"), ("watch", "--all", "--timeout", "1"), ("envs",), ("status",),
    ("next",), ("next", "--full"), ("config", "show", "configs/line.yaml"),
    ("config", "check", "configs/line.yaml", "--no-env"),
    ("task", "ls"), ("task", "show"), ("sweep", "ls"), ("research", "ls"), ("study", "ls"), ("doctor", "--quick"),
    ("adopt",), ("report", "queued_001", "--html", "a.html"), ("import", "runs"), ("top", "--once"),
    ("check", "spec"), ("spec", "status"), ("spec", "config"), ("cards", "--for", "spec.yaml"),
    ("cards", "--for", "theirs_001"), ("completion", "bash"), ("docs", "runs"), ("schema", "contract"),
    ("skills", "list"), ("check", "env", "CartPole-v1", "--seconds", "1"),
)  # fmt: skip
READS_RUN = (
    ("info", "queued_001"), ("wait", "queued_001", "--timeout", "1"), ("stop", "queued_001"), ("logs", "queued_001"),
    ("rm", "queued_001", "--dry-run"), ("eval", "installed_001"), ("check", "env", "installed_001", "--seconds", "1"),
    ("resume", "installed_001"), ("eval", "theirs_001"), ("video", "theirs_001"), ("stress", "theirs_001"),
    ("replay", "theirs_001"), ("explain", "theirs_001"), ("probe", "theirs_001", "gravity=1,2"),
    ("review", "theirs_001"), ("resume", "theirs_001"), ("resume", "theirs_001", "--prove"),
    ("train", "--more", "theirs_001", "--seeds", "1"), ("noise", "theirs_001", "--aa"),
    ("settle", "theirs_001", "theirs_001"), ("advisor", "theirs_001", "--execute"), ("check", "env", "theirs_001"),
    ("suggest", "theirs_001"), ("diagnose", "theirs_001"), ("recommend", "theirs_001"), ("analyze", "theirs_001"),
    ("report", "theirs_001", "--html", "a.html"), ("plot", "theirs_001"), ("reflect", "theirs_001"),
    ("compare", "theirs_001", "theirs_001"), ("explain-metrics", "theirs_001"), ("note", "theirs_001", "seen"),
    ("tag", "theirs_001", "seen"), ("untag", "theirs_001", "seen"), ("watch", "theirs_001", "--timeout", "1"),
    ("config", "diff", "theirs_001", "queued_001"), ("config", "show", "theirs_001"),
    ("research", "theirs_001", "--budget", "80"), ("export", "theirs_001", "--to", "csv", "--out", "-"),
    ("export", "theirs_001:best", "--to", "sb3"), ("export", "theirs_001:best", "--to", "onnx"),
    ("export", "theirs_001:best", "--to", "dataset"), ("export", "theirs_001:best", "--to", "tensorboard"),
    ("sweep", "theirs_001", "-p", "algo.gamma=0.9,0.99", "--trials", "2"),
)  # fmt: skip
READS_SWEEP = (
    ("sweep", "show", "hunt"), ("sweep", "show", "hunt", "--plot"), ("sweep", "stop", "hunt"),
    ("sweep", "resume", "hunt"), ("research", "show", "quest"), ("research", "resume", "quest"),
)  # fmt: skip
READS_STUDY = (
    ("study", "show"), ("study", "log"), ("study", "report"), ("study", "verify"), ("study", "audit"),
    ("study", "queue"), ("study", "queue", "--work"), ("study", "loop"), ("study", "baseline"), ("study", "rehearse"),
    ("study", "use", "walk"), ("study", "revert"), ("task", "show"), ("report", "walk", "--html", "a.html"),
    ("check", "contract"), ("check", "candidate", "c001"), ("launch", "c001", "--plan", "0" * 16),
    ("launch", "baseline"), ("launch", "baseline", "--phase", "smoke", "--seeds", "1"), ("try", "c001"),
    ("verdict", "c001"), ("decide", "c001"), ("propose", "--withdraw", "c001"),
)  # fmt: skip


LAB = (
    ("lab", "show"), ("lab", "log"), ("lab", "log", "--tsv"), ("lab", "report"), ("lab", "brief"),
    ("lab", "brief", "--media"), ("lab", "status"), ("lab", "try", "--description", "faster"), ("lab", "climb"),
    ("lab", "run", "--agent", "sh evil.sh", "--iterations", "1"), ("lab", "resume"), ("lab", "stop"),
    ("lab", "lesson", "c001", "--text", "nothing"), ("report", "hop", "--html", "a.html"), ("status",), ("next",),
)  # fmt: skip
REFUSED = (
    ("launch", "baseline"), ("launch", "baseline", "--phase", "smoke", "--seeds", "1"), ("study", "baseline"),
    ("study", "rehearse"), ("check", "candidate", "c001"), ("verdict", "c001"),
    ("decide", "c001"), ("lab", "brief", "--media"), ("lab", "try", "--description", "faster"), ("lab", "climb"),
    ("lab", "run", "--agent", "sh evil.sh", "--iterations", "1"), ("lab", "resume"), ("eval", "theirs_001"),
)  # fmt: skip
"""Commands that would run code of the project, most of them in a sandbox."""
TRAPS = ("rlx", "numpy", "yaml", "gymnasium", "json", "sitecustomize", "usercustomize", "matplotlib", "mujoco")
"""Files with these names execute if Python looks for modules in the current folder."""
NAMED = {
    "train": "CONFIG", "sweep": "CONFIG", "config check": "CONFIG", "check env": "ENV", "spec new": "ENV",
    "recommend": "ENV", "init": "ENV", "lab new": "ENV", "adopt": "--smoke",
}  # fmt: skip
"""Commands whose words name what to run, and that word. The ones that also read stored files stand in a table, too."""
PERSON = {
    "study new": "makes a study", "study amend": "changes a contract", "study approve": "a person read the contract",
    "task new": "describes a repository", "task refresh": "a person looked at it", "task copy": "makes a task",
    "lab approve": "a person read the lab", "skills install": "rlx's own files", "skills uninstall": "rlx's own files",
    "skills check": "rlx's own files", "config schema": "rlx's own schema",
}  # fmt: skip
"""Commands of a person who looked at the project; they make it theirs, or read nothing of it."""
SERVERS = {"ui", "mcp"}
"""Commands with a test of their own below."""


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
    asks = ("touch", str(trace))
    launcher = Launcher(executor="custom", submit=(*asks, "{script}"), poll=asks, cancel=asks)
    adapter = task.adapter.model_copy(update={"launcher": launcher})
    lab.study.task_path.write_text(tasks.dump(task.model_copy(update={"adapter": adapter})))
    lab.types("task", "refresh")
    lab.types("study", "approve", "--yes", "--by", "mallory")
    lab.types(*PROPOSAL)
    lab.types("spec", "new", "--env", "envs/line.py:Line")
    _queued_run(root)
    _runs_of_their_environment(root)
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


def _runs_of_their_environment(root: Path) -> None:
    """Write a run of a class in the project, and one of an installed class that needs a package (see TRAPS)."""
    for name, env in (("theirs", "envs/line.py:Line"), ("installed", "gymnasium.envs.mujoco.hopper_v5:HopperEnv")):
        path = make_run(root, name, {0: GOOD}).path / "config_snapshot.yaml"
        path.write_text(path.read_text().replace("CartPole-v1", env))


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


def mailed(source: Path, root: Path, *, trace: Path) -> Path:
    """Copy a project as its author would mail it: forged marks of ownership, and traps wherever a program looks."""
    shutil.copytree(source, root, symlinks=True)
    (root / ".rlx").mkdir(exist_ok=True)
    (root / ".rlx/folder").write_text(f"{root.stat().st_ino:x}")  # as if they had guessed it
    for ledger in root.glob(".rlx/tasks/*/studies/*/ledger.jsonl"):
        rewrite_approvals(ledger, folder=None)
    touch = f"import pathlib; pathlib.Path({str(trace)!r}).touch()\n"
    for name in TRAPS:
        (root / f"{name}.py").write_text(touch)
    (root / "rlx.toml").write_text('[executor]\nname = "slurm"\n')
    with (root / ".git/config").open("a") as config:
        run = f"touch '{trace}'; cat"
        config.write(f'[core]\n\tfsmonitor = "{run}"\n[filter "evil"]\n\tclean = "{run}"\n\tsmudge = "{run}"\n')
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("* filter=evil\n")
    trace.unlink(missing_ok=True)
    return root


@pytest.fixture
def mail(theirs: Path, tmp_path: Path) -> Lab:
    """Return the project as it arrives by mail, and nothing that it names was started yet."""
    return Lab(mailed(theirs, tmp_path / "mail", trace=theirs.parent / "PWNED"))


@pytest.mark.slow
@pytest.mark.parametrize("table", [READS_PROJECT, READS_RUN, READS_SWEEP, READS_STUDY])
def test_no_command_starts_what_a_strangers_files_name(
    mail: Lab, theirs: Path, table: tuple[tuple[str, ...], ...]
) -> None:
    trace = theirs.parent / "PWNED"
    assert_starts_nothing(mail, table, trace=trace)


def assert_starts_nothing(mail: Lab, table: tuple[tuple[str, ...], ...], *, trace: Path) -> None:
    """Assert that no command of a table leaves a trace, trains, or makes the project somebody's own."""
    runs = sorted((mail.root / "runs").glob("*"))
    for words in table:
        code, told, errors = mail._called(list(words))
        assert not trace.exists(), words
        assert "Traceback" not in errors, (words, errors)
        assert "usage: rlx" not in errors, (words, errors)
        assert sorted((mail.root / "runs").glob("*")) == runs, words
        assert not project.is_own(mail.root), words
        if words in REFUSED:  # a sandbox would keep the trace from being left
            assert code == 4, (words, told, errors)


@pytest.mark.slow
def test_no_command_starts_what_a_strangers_lab_names(tmp_path: Path) -> None:
    lab = new_lab(tmp_path / "hop", LabWishes(template="batched", max_steps=16, ladder=((1, 2), (2, 2)), kind="build"))
    approve_lab(lab, by="mallory")
    options = DriveOptions(agent="sh evil.sh").document()
    lab.study.ledger.append(DRIVER_EVENT, what="began", options=options, folder=str(lab.root))
    mail = Lab(mailed(lab.root, tmp_path / "mail", trace=tmp_path / "PWNED"))
    (mail.root / "runs").mkdir(exist_ok=True)
    environment = mail.root / "candidate/env.py"
    environment.write_text(environment.read_text() + "\n\nFASTER = True\n")
    assert_starts_nothing(mail, LAB, trace=tmp_path / "PWNED")
    for name in TRAPS:
        (mail.root / f"{name}.py").unlink()
    project.mark_own(mail.root)  # as training a config of one's own does
    for words in (words for words in LAB if words in REFUSED):
        code, told, errors = mail._called(list(words))
        assert not (tmp_path / "PWNED").exists(), words
        assert (code, "was not made in this folder" in errors) == (4, True), (words, told, errors)


@pytest.mark.slow
def test_no_command_starts_what_the_task_of_a_strangers_repository_names(tmp_path: Path) -> None:
    mill = Mill.built(tmp_path / "mill")
    mill.proposes(gain=9)
    mail = Lab(mailed(mill.root, tmp_path / "mail", trace=tmp_path / "PWNED"))
    (mail.root / "runs").mkdir(exist_ok=True)
    commands = tuple(words for words in READS_STUDY if words[:2] != ("study", "use") and "walk" not in words)
    trains = tuple(words for words in commands if words[:2] != ("check", "candidate"))  # their program is not called
    assert_starts_nothing(mail, trains, trace=tmp_path / "PWNED")
    for name in TRAPS:
        (mail.root / f"{name}.py").unlink()  # the tests start `python -m rlx`, which looks here first
    (mail.root / "rlx.toml").write_text("")
    assert mail._called(["study", "approve", "--yes", "--by", "me"])[0] == 0  # a person has read it
    assert mail.types("launch", "baseline", "--phase", "smoke", "--seeds", "1")["run"]


@pytest.mark.slow
def test_neither_browser_nor_agent_starts_what_a_strangers_files_name(mail: Lab, theirs: Path) -> None:
    trace = theirs.parent / "PWNED"
    with serving(mail.root) as dashboard:
        asked: set[str] = set()
        found = {"/", "/studies", "/sweeps", "/machine", "/lab"}
        while found - asked:
            path = sorted(found - asked)[0]
            asked.add(path)
            reply = dashboard.ask(path)
            assert reply.status < 500, (path, reply.text[:400])
            assert not trace.exists(), path
            if "html" in reply.headers.get("content-type", "") and len(asked) < 150:
                links = re.findall(r'(?:href|src)="(/[^"#]*)"', reply.text)
                found |= {html.unescape(link) for link in links}
        assert any(path.startswith("/run/theirs_001") for path in asked)
        assert any("walk" in path for path in asked)
    with served(mail.root) as wire:
        tools = wire.answer(wire.ask("tools/list"))["result"]["tools"]
        words = {
            "run": "theirs_001",
            "baseline": "theirs_001",
            "candidate": "c001",
            "a": "theirs_001",
            "b": "theirs_001",
        }
        for tool in tools:
            given = {name: words[name] for name in tool["inputSchema"]["properties"] if name in words}
            if tool["name"] not in ("train", "settle"):  # they name a config
                wire.call(tool["name"], **given)
            assert not trace.exists(), tool["name"]


@pytest.mark.slow
def test_a_sweep_a_campaign_and_a_study_that_were_copied_into_ones_own_project_start_nothing(
    theirs: Path, tmp_path: Path
) -> None:
    trace = theirs.parent / "PWNED"
    mail = mailed(theirs, tmp_path / "mail", trace=trace)
    for item in (mail / ".rlx/sweeps/hunt", mail / RESEARCH / "quest", mail / ".rlx/tasks/line/studies/walk"):
        (item / project.MADE_HERE).write_text(f"{item.stat().st_ino:x}")  # as if they had guessed it
    own = Lab(tmp_path / "own")
    shutil.copytree(theirs, own.root, symlinks=True, ignore=shutil.ignore_patterns(".rlx", "runs"))  # the repository
    project.mark_own(own.root)
    for name in (".rlx/sweeps", ".rlx/tasks", str(RESEARCH), "runs"):
        shutil.copytree(mail / name, own.root / name, dirs_exist_ok=True, symlinks=True)
    for words in (
        ("sweep", "resume", "hunt"), ("research", "resume", "quest"), ("study", "rehearse"),
        ("check", "candidate", "c001"), ("launch", "baseline"),
        ("launch", "baseline", "--phase", "smoke", "--seeds", "1"),
    ):  # fmt: skip
        code, told, errors = own._called(list(words))
        assert not trace.exists(), words
        assert code == 4, (words, told, errors)


def test_every_command_stands_in_a_table() -> None:
    tables = (*READS_PROJECT, *READS_RUN, *READS_SWEEP, *READS_STUDY, *LAB)
    tried = {" ".join(words[:2]) for words in tables} | {words[0] for words in tables}
    for command in COMMANDS:
        for leaf in leaves(parser_of(command)):
            name = leaf.prog.removeprefix("rlx ")
            assert name in tried or name in NAMED or name in PERSON or name in SERVERS, name


@pytest.mark.slow
def test_trust_starts_it_and_so_does_the_projects_own_user(mail: Lab, theirs: Path) -> None:
    trace = theirs.parent / "PWNED"
    for name in TRAPS:
        (mail.root / f"{name}.py").unlink()  # only what the run names counts here
    code, _, errors = mail._called(["eval", "theirs_001"])
    assert (code, "nobody has trained in this folder yet" in errors, "--trust" in errors) == (4, True, True)
    mail._called(["eval", "theirs_001", "--trust"])
    assert trace.exists()
    trace.unlink()
    mail._called(["wait", "queued_001", "--timeout", "1"])
    assert not trace.exists()
    project.mark_own(mail.root)  # as `rlx train` does: who sent the run did not become another
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
