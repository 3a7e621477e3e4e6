"""The repository's own eval command: from the pinned tree, in a box, and its figures only where it ended well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.config.schema import Source
from rlx.errors import EvidenceInvalid
from rlx.evaluate.checkpoint_evaluation import EvaluationLimits, EvaluationResult, Subject
from rlx.evaluate.command.command_evaluation import CommandEvaluation, EvalCommand, evaluate_by_command
from rlx.evaluate.sealed import stage_checkpoint
from rlx.evaluate.sealed.pinned_tree import pin_tree

EVAL = """
import argparse, json, os, sys, time
from net import act

parser = argparse.ArgumentParser()
for name in ("--model", "--out", "--seed", "--episodes"):
    parser.add_argument(name)
args = parser.parse_args()
gain = json.load(open(args.model))["gain"]
returns = [act(gain) * (int(args.seed) + index) for index in range(int(args.episodes))]
json.dump({"score": sum(returns) / len(returns), "episodes": returns}, open(args.out, "w"))
"""
ARGV = (
    "python",
    "eval.py",
    "--model={checkpoint}",
    "--out",
    "{result}",
    "--seed",
    "{episode_seed}",
    "--episodes",
    "{episodes}",
)


class Repository:
    def __init__(self, folder: Path) -> None:
        self.worktree = self._tree(folder / "worktree")
        self.pin = pin_tree(self._tree(folder / "tree"), folder / "study" / "evaluator")
        self.checkpoint = folder / "runs" / "model.json"
        self.checkpoint.parent.mkdir()
        self.checkpoint.write_text('{"gain": 2}')
        self.asked = CommandEvaluation(
            EvalCommand(ARGV, "return", policy_files=("net.py",)), self.pin, "confirm", 0, 2, worktree=self.worktree,
            limits=EvaluationLimits(seconds=30, scratch_bytes=2**22, processes=8),
        )  # fmt: skip

    def _tree(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / "eval.py").write_text(EVAL)
        (folder / "net.py").write_text("def act(gain):\n    return gain\n")
        return folder

    def measure(self, **changes: Any) -> EvaluationResult:
        command = replace(
            self.asked.command,
            **{key: changes.pop(key) for key in ("argv", "policy_files", "metric", "source") if key in changes},
        )
        out = self.checkpoint.parent.parent / "study" / "evidence" / "one.json"
        (found,) = evaluate_by_command(
            replace(self.asked, command=command, **changes),
            [Subject(self.checkpoint, stage_checkpoint.checkpoint_sha256(self.checkpoint), out)],
        )
        return found

    def failing(self, code: str, **changes: Any) -> str:
        """Return why an evaluation whose policy file is this code has no score."""
        (self.worktree / "net.py").write_text(f"import json, os, sys, time\n{code}\n")
        found = self.measure(**changes)
        assert found.failure is not None, found.document
        return f"{found.failure.code}: {found.failure.message}"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_document_says_what_was_measured_and_how(repository: Repository) -> None:
    found = repository.measure()
    document = found.require_document()
    assert document == files.read_json(found.subject.out)
    assert document["level"] == "pinned"
    assert document["score"] == 2 * 500_000_000.5
    assert document["figures"]["mean"] == document["score"]
    assert document["seeds"] == [500_000_000, 500_000_001]
    assert document["pin"] == repository.pin.sha256
    assert list(document["policy_files"]) == ["net.py"]
    assert document["enforced"]["probed"]


def test_only_listed_files_of_the_worktree_are_there(repository: Repository) -> None:
    (repository.worktree / "eval.py").write_text("raise SystemExit('the worktree ran')")
    (repository.worktree / "net.py").write_text("def act(gain):\n    return 3 * gain\n")
    assert repository.measure().require_document()["score"] == 6 * 500_000_000.5
    assert repository.measure(policy_files=()).require_document()["score"] == 2 * 500_000_000.5


def test_figures_can_be_printed_and_a_result_behind_a_link_is_none(repository: Repository) -> None:
    source = Source(reader="stdout", names={"mean": "Reward"})
    (repository.worktree / "net.py").write_text("import sys\nprint('Reward: 12.5')\nsys.exit()")
    found = repository.measure(source=source, metric="mean")
    assert found.require_document()["score"] == 12.5
    assert "reader" in found.require_document()["protocol"]["source"]
    code = "os.symlink('/etc', os.path.dirname(sys.argv[3]) + '/../scratch/x')\nsys.exit()"
    linked = Source(reader="csv", path="../scratch/x/passwd")
    assert "behind a link" in repository.failing(code, source=linked)


def test_a_result_that_came_with_the_tree_is_not_taken_for_a_new_one(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "tree" / "result.json").write_text('{"score": 1e6}')
    pinned_with_result = pin_tree(tmp_path / "tree", tmp_path / "study" / "other")
    source = Source(reader="jsonl", path="result.json")
    code = "sys.exit(0)"
    assert "wrote no result" in repository.failing(code, source=source, metric="score", pin=pinned_with_result)


def test_files_that_are_no_policy_are_refused(repository: Repository, tmp_path: Path) -> None:
    (repository.worktree / "sitecustomize.py").write_text("")
    (repository.worktree / "link.py").symlink_to(tmp_path / "tree" / "net.py")
    for names, says in (
        (("*.py",), "is a link"),
        (("site*.py",), "because of its name"),
        (("eval.py",), "belongs to the evaluator"),
    ):
        found = repository.measure(policy_files=names)
        assert found.failure is not None
        assert says in found.failure.message


def test_an_end_without_a_result_is_invalid(repository: Repository) -> None:
    assert "wrote no result" in repository.failing("sys.exit(0)")
    assert "exit code 1: ZeroDivisionError" in repository.failing("1 / 0")
    assert "command: the eval command ended with exit code -9" in repository.failing("os.kill(os.getpid(), 9)")
    assert "nan as `return`" in repository.failing("def act(gain): return float('nan')")
    assert "no `success_rate`" in repository.failing("def act(gain): return 1", metric="success_rate")
    extra = "open(os.path.join(os.path.dirname(sys.argv[3]), 'more'), 'w')\ndef act(gain): return 1"
    assert "next to its result the command wrote more" in repository.failing(extra)


def test_a_figure_that_is_not_there_is_nobodys_failure(repository: Repository) -> None:
    found = repository.measure(metric="success_rate", policy_files=())
    assert found.failure is not None
    assert (found.failure.code, found.failure.is_policy_fault) == ("metric", False)


def test_what_it_may_use_is_limited(repository: Repository) -> None:
    assert "time: it took longer" in repository.failing("time.sleep(600)", limits=EvaluationLimits(seconds=1))
    fork = "for _ in range(20):\n    if os.fork() == 0: time.sleep(600)\ntime.sleep(600)"
    assert "processes: it used" in repository.failing(fork)
    fill = "for n in range(1000):\n    open(f'{n}', 'wb').write(bytes(2**20)); time.sleep(0.02)"
    assert "disk: it used" in repository.failing(fill)
    assert "PermissionError" in repository.failing("import socket; socket.create_connection(('127.0.0.1', 22))")


def test_a_changed_checkpoint_or_pin_is_invalid(repository: Repository) -> None:
    (found,) = evaluate_by_command(
        repository.asked, [Subject(repository.checkpoint, "0" * 64, repository.checkpoint.parent / "out")]
    )
    assert found.failure is not None
    assert found.failure.code == "changed"
    (repository.pin.folder / "new.py").write_text("")
    with pytest.raises(EvidenceInvalid, match=r"new.py was not pinned"):
        repository.measure()
