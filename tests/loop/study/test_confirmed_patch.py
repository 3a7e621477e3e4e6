"""How what was confirmed gets into the repository: the commands that are printed are typed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rlx import external_programs, files
from rlx.config.load import document, read
from rlx.errors import Refused
from rlx.loop.study import study_status
from rlx.loop.study.confirmed_patch import by_arguments
from rlx.loop.study.new_study import Wishes, new_study
from rlx.loop.study.open_points import open_points, stale_task_hint
from rlx.loop.study.propose import revert
from rlx.loop.study.study_status import overview
from rlx.loop.study.write_report import report
from rlx.study.candidate import candidate as candidates
from rlx.study.candidate.candidate import Candidate
from rlx.study.candidate.candidate_experiment import changes_of, experiment_of
from rlx.study.study_folder import Study, find_study
from rlx.study.task.task import Adapter
from tests.loop.told import CONFIG, Told, git

CODE = """\
diff --git a/agent.py b/agent.py
new file mode 100644
index 0000000000000000000000000000000000000000..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d
--- /dev/null
+++ b/agent.py
@@ -0,0 +1 @@
+1
"""


class Written(Told):
    """A study whose candidates have these changes, the second on top of the first, and this code."""

    changes: dict[str, dict[str, object]]
    code: str

    def propose(self, name: str) -> None:
        under = {"c001": "baseline", "c002": "c001"}[name]
        one = Candidate(id=name, kind="code", hypothesis="why", builds_on=under, changes=self.changes[name])
        self.tell(
            "proposed", candidate=name, kind="code", sha256=candidates.write(one, self.study.candidate_path(name))
        )

    def validate(self, name: str) -> None:
        code = self.code.encode() if name == "c002" else b""
        files.write_atomic(self.study.patch_path(name), code)
        self.tell("moved", candidate=name, before="draft", after="validated", why="checked", plan=f"{name}-plan",
                  patch=files.sha256(code))  # fmt: skip


def confirmed(root: Path, *, changes: dict[str, object], code: str = "") -> Study:
    """Return a study of which c001, which advanced, and c002 on top of it, with these changes, were confirmed."""
    told = Written(root)
    told.changes, told.code = {"c001": {"algo.gamma": 0.9} if changes else {}, "c002": changes}, code
    told.bring("c001", "advanced")
    told.bring("c002", "advanced")
    told.claim("c002")
    told.decide("c002", "confirmed", effect=3.0, interval=[1.0, 5.0], n=[2, 2], test="claim", against="baseline")
    return told.study


def shell(root: Path, command: str) -> None:
    subprocess.run(["bash", "-c", command], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize("code", ["", CODE])
def test_the_commands_of_a_report_put_the_confirmed_config_and_code_into_the_project(root: Path, code: str) -> None:
    study = confirmed(root, changes={"algo": {"learning_rate": {"linear": [1e-6, 0]}}, "env.num_envs": 2}, code=code)
    apply, commit, train, new = report(study)["handover"]
    assert apply == "git apply --index .rlx/tasks/pole/studies/faster/confirmed.patch"
    shell(root, apply)
    git(root, *("commit", "-qm", commit.partition('"')[2].strip('"')))
    assert train == "rlx train configs/pole_faster_c002.yaml --seeds 5"
    wanted = experiment_of(study.task(), changes_of(study.chain("c002")), tree=root)
    assert document(read(root / "configs" / "pole_faster_c002.yaml")) == document(wanted)
    assert (root / "agent.py").is_file() == bool(code)
    assert (root / "configs" / "pole.yaml").read_text() == CONFIG
    assert new == "rlx study new NAME --config configs/pole_faster_c002.yaml"
    begun = new_study(root, "further", Wishes(), config=root / "configs" / "pole_faster_c002.yaml")
    assert begun["task"] == "pole_faster_c002"


@pytest.mark.parametrize(("file", "says"), [("c002.patch", "is not the checked one"),
                                            ("c001.json", "is not the proposed one")])  # fmt: skip
def test_what_was_edited_after_it_was_confirmed_is_never_handed_over(root: Path, file: str, says: str) -> None:
    study = confirmed(root, changes={"algo.learning_rate": 0.5}, code=CODE)
    path = study.folder / "candidates" / file
    honest = path.read_text()
    path.write_text(honest.replace("+1\n", "+2\n").replace("0.9", "0.8"))
    told = report(study)
    assert told["problems"] == [f"candidates/{file} {says}"]
    assert told["outcome"] == "nothing is shown: the ledger or the evidence was changed after it was recorded"
    assert (told["handover"], study.handover_path.exists()) == ([], False)
    path.write_text(honest)
    assert report(study)["handover"]


def test_a_confirmed_change_of_code_alone_gets_a_task_of_its_own_for_the_next_study(root: Path) -> None:
    study = confirmed(root, changes={}, code=CODE)
    *_, train, new = report(study)["handover"]
    assert train == "rlx train configs/pole.yaml --seeds 5"
    assert new == "rlx study new NAME --task pole_faster_c002 --config configs/pole.yaml"


def test_nothing_recommends_to_undo_a_confirmed_change_that_is_applied_and_committed(root: Path) -> None:
    study = confirmed(root, changes={}, code="")
    config = root / "configs" / "pole.yaml"
    config.write_text(CONFIG + "seed: 3\n")
    files.write_atomic(study.handover_path, external_programs.git_bytes("diff", folder=root))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the win")
    at = open_points(study, study.state(), study.contract())
    assert [point.message for point in at] == []
    assert "checkout" not in str(stale_task_hint(root, "pole"))
    told = study_status.brief(study)
    assert "checkout" not in str(told)


def test_next_offers_to_take_over_what_was_confirmed_until_it_is_done_and_no_longer_when_it_is_reverted(
    root: Path,
) -> None:
    study = confirmed(root, changes={"algo.learning_rate": 0.5})
    assert not taking_over(study)
    apply = report(study)["handover"][0]
    assert taking_over(study) == [apply]
    shell(root, apply)
    assert not taking_over(study)
    shell(root, "git reset -q --hard")
    assert taking_over(study) == [apply]
    revert(study, "c002", why="it limps")
    assert not report(study)["handover"]
    assert not study.handover_path.exists()


def taking_over(study: Study) -> list[str]:
    return [one["command"] for one in study_status.brief(study)["also"] if one["action"] == "take over"]


def test_a_further_study_of_the_task_says_that_its_baseline_lacks_what_was_confirmed(root: Path) -> None:
    study = confirmed(root, changes={"algo.learning_rate": 0.5})
    apply = report(study)["handover"][0]
    told = new_study(root, "further", Wishes(), task="pole")["notes"]
    assert any("the change that `faster` confirmed is not in it" in one and apply in one for one in told)
    shell(root, apply)
    assert not any("confirmed" in one for one in overview(find_study(root, "further"))["notes"])


def test_files_that_changed_after_an_approval_are_told_how_to_get_a_task_of_their_own(root: Path) -> None:
    confirmed(root, changes={"algo.learning_rate": 0.5})
    (root / "configs" / "pole.yaml").write_text(CONFIG.replace("64", "128"))
    git(root, "commit", "-qam", "longer")
    with pytest.raises(Refused, match="is stale") as refused:
        new_study(root, "further", Wishes(), task="pole")
    assert "rlx task new NAME --config configs/pole.yaml" in str(refused.value.hint)
    assert "to go on with `faster`, restore its files: git checkout" in str(refused.value.hint)


def test_the_keys_of_a_repository_of_its_own_are_told_as_its_training_command_that_can_be_typed() -> None:
    words = ("python", "train.py", "--seed", "{seed}", "--out={out}", "--steps", "{steps}", "{overrides}")
    adapter = Adapter(kind="command", train=words, override="--{key} {value}", steps=400)
    (command,) = by_arguments(adapter, {"lr": 0.5, "name": "a b"})
    assert command == "python train.py --seed 0 --out=confirmed --steps 400 --lr 0.5 --name 'a b'"
    assert by_arguments(adapter, {}) == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a lab"
