"""Cheats on the evaluator: each leaves the score as it is, or has a failure that names it; nothing runs on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from rlx import files
from rlx.evaluate.checkpoint_evaluation import EvaluationFailure, EvaluationLimits, EvaluationResult, Subject
from rlx.evaluate.sealed.pinned_tree import pin_tree
from rlx.evaluate.sealed.sealed_evaluation import evaluate_sealed
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.sandbox.process_tree import descendants
from tests.evaluate.foreign import ENV, Repository
from tests.evaluate.trained import Trained

pytestmark = pytest.mark.slow
HONEST = 10.0
"""What the honest policy of the repository scores: half of what is possible."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture(scope="session")
def _trained_once(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained.train(tmp_path_factory.mktemp("cheats") / "project")


@pytest.fixture
def trained(_trained_once: Trained, tmp_path: Path) -> Trained:
    return _trained_once.copy(tmp_path / "trained")


def measured(repository: Repository, **changes: object) -> EvaluationResult:
    before = set(descendants(os.getpid()))
    (found,) = repository.measure(**changes)
    assert set(descendants(os.getpid())) <= before
    return found


def score(found: EvaluationResult) -> float:
    return round(found.require_document()["score"], 5)


def failure(found: EvaluationResult) -> EvaluationFailure:
    assert found.failure is not None, found.document
    assert not found.subject.out.exists()
    return found.failure


def plant(repository: Repository, code: str) -> None:
    """Put code before the honest policy of the worktree."""
    text = (repository.worktree / "policy.py").read_text()
    (repository.worktree / "policy.py").write_text(f"import os, sys, time\n{code}\n{text}")


# In the worktree


def test_an_edited_environment_in_the_worktree_has_no_effect(repository: Repository) -> None:
    faked = ENV.replace("float(action[0]), False", "1e6, False").replace('{"push": float(action[0])}', '{"push": 1e6}')
    (repository.worktree / "envs" / "point.py").write_text(faked)
    assert faked != ENV
    found = measured(repository)
    assert score(found) == HONEST
    assert found.require_document()["figures"]["push"] == pytest.approx(HONEST)


def test_an_edited_environment_in_the_project_has_no_effect(trained: Trained) -> None:
    honest = [one.require_document()["episodes"] for one in trained.measure()]
    seal = trained.seal()
    path = trained.root / "envs" / "cart.py"
    path.write_text(
        path.read_text().replace("return observation, reward", "return observation, 1e6").replace("200", "9999")
    )
    subjects = [Subject(trained.checkpoint(seed), None, trained.root / f"{seed}.json") for seed in (0, 1)]
    assert [one.require_document()["episodes"] for one in evaluate_sealed(seal, subjects)] == honest


def test_an_edited_rlx_in_the_worktree_has_no_effect(repository: Repository) -> None:
    for name in ("rlx/__init__.py", "rlx/evaluate/__init__.py", "numpy.py", "gymnasium.py"):
        (repository.worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.worktree / name).write_text("raise SystemExit('imported')")
    found = measured(repository)
    assert found.document is None or score(found) == HONEST
    assert found.failure is None or found.failure.code == "policy"


CANARY = "open({path!r}, 'a').write(__name__)\n"


def test_code_that_python_runs_by_itself_does_not_run(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    user_site = home / ".local" / "lib" / version / "site-packages"
    for folder in (user_site, elsewhere, repository.worktree, repository.folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "gymnasium.py", "numpy.py"):
            if folder != repository.worktree or name != "numpy.py":
                (folder / name).write_text(CANARY.format(path=str(canary)))
        (folder / "planted.pth").write_text(f"import os; open({str(canary)!r}, 'a').write('pth')\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", f"{elsewhere}:{repository.worktree}")
    monkeypatch.setenv("PYTHONSTARTUP", str(elsewhere / "sitecustomize.py"))
    monkeypatch.setenv("PYTHONHOME", "")
    monkeypatch.setenv("LD_PRELOAD", str(elsewhere / "planted.so"))
    monkeypatch.setenv("PYTHONBREAKPOINT", "sitecustomize.run")
    monkeypatch.chdir(elsewhere)
    found = measured(repository)
    assert score(found) == HONEST
    assert not canary.exists()


# In the checkpoint


def test_a_planted_pickle_is_refused(trained: Trained) -> None:
    path = trained.checkpoint(0)
    (path / "data.pkl").write_bytes(b"cos\nsystem\n(S'touch planted'\ntR.")
    found, other = trained.measure()
    assert failure(found).code == "checkpoint"
    assert "data.pkl does not belong to a checkpoint" in failure(found).message
    assert other.document is not None


def reseal(path: Path, member: str, content: bytes) -> None:
    """Replace a member and write a manifest that agrees: what whoever trains can do."""
    (path / member).unlink()
    (path / member).write_bytes(content)
    manifest = files.read_json(path / checkpoints.MANIFEST)
    manifest["files"][member] = {"sha256": files.sha256(content), "bytes": len(content)}
    (path / checkpoints.MANIFEST).unlink()
    (path / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(manifest))


def test_weights_that_are_a_pickle_are_refused_and_not_loaded(trained: Trained, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    reseal(trained.checkpoint(0), checkpoints.POLICY, f"cos\nsystem\n(S'touch {canary}'\ntR.".encode())
    assert "is not a safetensors file" in failure(trained.measure()[0]).message
    assert not canary.exists()


def test_a_manifest_that_names_code_is_refused(trained: Trained) -> None:
    path = trained.checkpoint(0)
    manifest = files.read_json(path / checkpoints.MANIFEST)
    manifest["config"]["policy"] = {"type": "antigravity:open"}
    (path / checkpoints.MANIFEST).unlink()
    (path / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(manifest))
    assert "names code to run that the baseline does not: `antigravity:open`" in failure(trained.measure()[0]).message


def test_another_runs_weights_behind_a_link_are_refused(trained: Trained) -> None:
    mine, other = trained.checkpoint(0), trained.checkpoint(1)
    os.rename(mine, mine.with_name("hidden"))
    mine.symlink_to(other)
    (found,) = evaluate_sealed(trained.seal(), [Subject(mine, None, trained.root / "out.json")])
    assert "is a link" in failure(found).message


# Scores that are none


def test_a_score_that_is_not_a_number_is_invalid(repository: Repository, tmp_path: Path) -> None:
    tree = tmp_path / "other tree"
    (tree / "envs").mkdir(parents=True)
    (tree / "envs" / "point.py").write_text(ENV.replace("float(action[0]), False", "float('nan'), False"))
    found = measured(repository, pin=pin_tree(tree, tmp_path / "other" / "evaluator"))
    assert "the return is nan" in failure(found).message


def test_actions_that_are_not_numbers_are_the_policys_failure(repository: Repository) -> None:
    (found,) = repository.measure([repository.weights(float("nan"))])
    assert (failure(found).code, "not finite" in failure(found).message) == ("policy", True)


# In the policy's process


def test_sleeping_for_ever_ends_in_time(repository: Repository) -> None:
    plant(repository, "time.sleep(10**6)")
    limits = EvaluationLimits(seconds=60, start_seconds=10, answer_seconds=1)
    assert "did not answer in time" in failure(measured(repository, limits=limits)).message


def test_answering_slowly_for_ever_ends_in_time(repository: Repository) -> None:
    (repository.worktree / "policy.py").write_text(
        "import time\ndef load(path): return lambda seen: time.sleep(0.2) or [0]"
    )
    limits = EvaluationLimits(seconds=3, start_seconds=60, answer_seconds=30)
    assert failure(measured(repository, limits=limits)).code == "time"


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3): os.close(number)
        import signal
        for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
        with open(os.environ["TMPDIR"] + "/pid", "w") as stream: stream.write(str(os.getpid()))
        while True: time.sleep(1)
    os._exit(0)
while not os.path.exists(os.environ["TMPDIR"] + "/pid"): time.sleep(0.01)
"""


def test_what_it_forks_does_not_survive(repository: Repository) -> None:
    def daemons() -> list[str]:
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    text = (process / "environ").read_bytes()
                except OSError:
                    continue
                if str(repository.worktree).encode() in text:
                    found.append(process.name)
        return found

    plant(repository, DAEMON)
    assert score(measured(repository)) == HONEST
    assert daemons() == []


def test_a_fork_bomb_is_ended_and_named(repository: Repository) -> None:
    plant(repository, "while True:\n    os.fork() or time.sleep(600)\n    time.sleep(0.001)")
    found = failure(measured(repository))
    assert found.code in ("processes", "policy")  # as root it is counted, else the kernel refuses more


def test_filling_the_disk_is_ended_and_named(repository: Repository) -> None:
    fill = """
import itertools
for number in itertools.count():
    with open(os.environ["TMPDIR"] + f"/{number}", "wb") as stream: stream.write(bytes(2**20))
    time.sleep(0.01)
"""
    plant(repository, fill)
    found = failure(measured(repository))
    assert found.code == "disk"
    assert "bytes of files" in found.message


def test_one_large_file_is_refused_by_the_kernel(repository: Repository) -> None:
    limits = EvaluationLimits(seconds=60, scratch_bytes=2**24)
    plant(repository, "open(os.environ['TMPDIR'] + '/large', 'wb').write(bytes(2**29))")
    assert "File too large" in failure(measured(repository, limits=limits)).message


THIEF = """
import glob, json, signal, socket, subprocess

def tried(action):
    try:
        action()
    except (OSError, subprocess.SubprocessError):
        return False
    return True

def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one: one.connect(address)

def any_of(pattern):
    others = [path for path in glob.glob(pattern) if f"/{{os.getpid()}}/" not in path]
    if not any(tried(lambda: open(path, "rb").read(1)) for path in others):
        raise OSError("none of them")

STUDY, SCRATCH = {study!r}, os.environ["TMPDIR"]
here = os.getppid()
attempts = {{
    "ledger": lambda: open(STUDY + "/ledger.jsonl").read(),
    "append": lambda: open(STUDY + "/ledger.jsonl", "a").write("x"),
    "evidence": lambda: open(STUDY + "/evidence/0.json", "w").write("{{}}"),
    "list": lambda: os.listdir(STUDY),
    "evaluator": lambda: open(STUDY + "/evaluator/envs/point.py").read(),
    "edit": lambda: open(STUDY + "/evaluator/envs/point.py", "w").write(""),
    "own code": lambda: open({worktree!r} + "/policy.py", "a").write(""),
    "memory": lambda: open(f"/proc/{{here}}/mem", "rb").read(1),
    "environment": lambda: open(f"/proc/{{here}}/environ").read(),
    "descriptors": lambda: any_of("/proc/[0-9]*/fd/[0-9]*"),
    "signal": lambda: os.kill(here, signal.SIGSTOP),
    "tcp": lambda: connects(socket.AF_INET, ("127.0.0.1", 22)),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "unix": lambda: connects(socket.AF_UNIX, "/run/docker.sock"),
    "trace": lambda: subprocess.run(["strace", "-p", str(here)], check=True, capture_output=True, timeout=5),
    "link": lambda: (os.symlink(STUDY + "/ledger.jsonl", SCRATCH + "/x"), open(SCRATCH + "/x").read()),
    "environments": lambda: any_of("/proc/[0-9]*/environ"),
    "memories": lambda: any_of("/proc/[0-9]*/mem"),
}}
loot = [name for name, action in attempts.items() if tried(action)]

def load(path):
    if loot:
        raise RuntimeError("loot: " + ", ".join(loot))
    return lambda seen: [0.5]
"""


def test_it_can_neither_read_the_ledger_nor_the_seeds_nor_signal_nor_connect_nor_write(repository: Repository) -> None:
    study = repository.pin.folder.parent
    text = THIEF.format(study=str(study), worktree=str(repository.worktree))
    (repository.worktree / "policy.py").write_text("import os\n" + text)
    assert score(measured(repository)) == HONEST
    assert (study / "ledger.jsonl").read_text() == "the ledger"
    repository.pin.verify()


def test_the_seeds_stand_in_no_command_line_and_no_file(repository: Repository) -> None:
    search = """
import glob
wanted = [str(1_000_000 + 123_456 + index) for index in range(4)] + ["123456"]
found = []
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob(os.environ["TMPDIR"] + "/../**", recursive=True):
    try:
        text = open(path).read()
    except OSError:
        continue
    found += [one for one in wanted if one in text]

def load(path):
    return lambda seen: [len(found) / 100]
"""
    (repository.worktree / "policy.py").write_text("import os\n" + search)
    assert score(measured(repository, first=123_456)) == 0.0


def test_writing_its_own_result_has_no_effect(repository: Repository) -> None:
    faked = json.dumps({"index": 0, "document": {"score": 1e6, "figures": {}, "episodes": []}})
    code = f"""
for number in range(3, 64):
    try:
        os.write(number, ({faked!r} + "\\n").encode())
    except OSError:
        pass
for name in ("result.json", "0.json"):
    open(os.environ["TMPDIR"] + "/" + name, "w").write({faked!r})
print({faked!r}, flush=True)
"""
    plant(repository, code)
    found = measured(repository)
    assert found.document is None or score(found) == HONEST
    assert found.failure is None or found.failure.code == "policy"


def test_leaving_early_with_success_is_its_failure(repository: Repository) -> None:
    plant(repository, "os._exit(0)")
    assert "it ended with exit code 0" in failure(measured(repository)).message


def test_scaling_the_reward_in_its_config_has_no_effect(trained: Trained) -> None:
    honest = [one.require_document()["episodes"] for one in trained.measure()]
    for seed in (0, 1):
        path = trained.checkpoint(seed)
        manifest = files.read_json(path / checkpoints.MANIFEST)
        manifest["config"]["env"]["wrappers"] = [{"name": "scale_reward", "kwargs": {"scale": 1000}}]
        manifest["config"]["eval"]["report_episodes"] = 1
        (path / checkpoints.MANIFEST).unlink()
        (path / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(manifest))
    found = trained.measure()
    assert all(
        one.failure is not None or one.require_document()["episodes"] == honest[index]
        for index, one in enumerate(found)
    )
