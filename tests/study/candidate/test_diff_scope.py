"""The scope on the real diff: nothing outside of it, by no trick of names, links, modes or syntax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx.study.candidate import diff_scope, source_region
from rlx.study.candidate.diff_scope import FileChange
from rlx.study.contract.contract import Contract
from rlx.study.task.task import PathsAndKeys, Task
from tests.study.papers import ARENA, contract_of, foreign_repo, foreign_task

FILE, RUNNABLE, LINK, MODULE = "100644", "100755", "120000", "160000"


def edit(
    path: str, after: str | bytes | None = "x = 2\n", before: str | bytes | None = "x = 1\n", **more: Any
) -> FileChange:
    old, new = (text.encode() if isinstance(text, str) else text for text in (before, after))
    modes = {"mode_before": None if old is None else FILE, "mode_after": None if new is None else FILE}
    return FileChange(path, old, new, **{**modes, **more})


def added(path: str, after: str | bytes = "x = 1\n", mode: str = FILE) -> FileChange:
    return edit(path, after, None, mode_after=mode)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task, str]:
    root = tmp_path_factory.mktemp("arena")
    sha = foreign_repo(root)
    return root, foreign_task(root), sha


def breaches(arena: tuple[Path, Task, str], *changes: FileChange, **open_: Any) -> tuple[str, ...]:
    root, task, sha = arena
    section = open_ or {"paths": ["world/arena.py::Arena.reward", "nets/**", "train.py"]}
    contract: Contract = contract_of(task, root, sha, scope=section)
    return diff_scope.breaches(changes, (), contract, task)


@pytest.mark.parametrize(
    "change",
    [
        edit("train.py"),
        edit("nets/deep/mlp.py"),
        added("nets/new.py"),
        edit("nets/old.py", None),
        edit("world/arena.py", ARENA.replace("1.0", "2.0 * self.bonus()"), ARENA),
    ],
)
def test_what_is_in_scope_is_no_breach(arena: tuple[Path, Task, str], change: FileChange) -> None:
    assert breaches(arena, change) == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edit("README.md"), "README.md: not in scope; in scope: world/arena.py::Arena.reward, nets/**, train.py"),
        (edit("eval.py"), "belongs to the evaluator"),
        (added("Eval.py"), "belongs to the evaluator"),
        (added("ｅval.py"), "belongs to the evaluator"),
        (edit("eval.py", None), "belongs to the evaluator"),
        (added("nets/../eval.py"), "not a plain path"),
        (added("/etc/passwd"), "not a plain path"),
        (added("nets//x.py"), "not a plain path"),
        (added("nets/e\u0301.py"), "look like others"),
        (added("nets/x\u202e.py"), "cannot be seen"),
        (added("nets/x .py"), ""),
        (added("nets /x.py"), "has a space"),
        (added("nets/x.py."), "a dot at its end"),
        (added("nets\\x.py"), "look like others"),
        (added("nets/\udcff.py"), "cannot be seen"),
        (added("nets/conftest.py"), "an effect by its name alone"),
        (added("nets/CONFTEST.py"), "an effect by its name alone"),
        (added("sitecustomize.py"), "an effect by its name alone"),
        (added("nets/usercustomize.py"), "an effect by its name alone"),
        (added("nets/evil.pth"), "an effect by its name alone"),
        (added("nets/.gitattributes"), "an effect by its name alone"),
        (added("nets/.gitignore"), "an effect by its name alone"),
        (added("nets/setup.py"), "an effect by its name alone"),
        (added("nets/pyproject.toml"), "an effect by its name alone"),
        (added("nets/x.egg-info/PKG-INFO"), "an effect by its name alone"),
        (added("nets/.git/config"), "cannot have files there"),
        (added("nets/.GIT/hooks/x"), "cannot have files there"),
        (added(".rlx/tasks/x"), "cannot have files there"),
        (added("runs/a/metrics.jsonl"), "cannot have files there"),
        (added("nets/__pycache__/mlp.cpython-311.pyc", b"\0"), "cannot have files there"),
        (added("nets/mlp.pyc", b"\0"), "cannot have files there"),
        (added("nets/mlp.so", b"\x7fELF\0"), "a binary file"),
        (edit("nets/weights.bin", b"\xff\xfe"), "a binary file"),
        (added("nets/link", "/etc/passwd", LINK), "a link that leaves the tree (/etc/passwd)"),
        (added("nets/link", "../../x", LINK), "a link that leaves the tree"),
        (added("nets/link", "..", LINK), "which is not in scope"),
        (added("nets/link", "../eval.py", LINK), "a link to `eval.py`, which is not in scope"),
        (added("nets/link", "../README.md", LINK), "a link to `README.md`"),
        (added("nets/link", "../world/arena.py", LINK), "a link to `world/arena.py`"),
        (edit("nets/mlp.py", "deep/mlp.py", mode_after=LINK), "its mode changes from 100644 to 120000"),
        (edit("nets/mlp.py", mode_after=RUNNABLE), "its mode changes from 100644 to 100755"),
        (edit("nets/mlp.py", "x = 1\n", mode_after=RUNNABLE), "its mode changes"),
        (FileChange("nets/sub", None, b"", None, MODULE), "a submodule"),
        (FileChange("nets/pipe", None, b"", None, "other"), "neither a file nor a link"),
        (edit("nets/eval.py", "x", None, renamed_from="eval.py"), "renamed from eval.py: belongs to the evaluator"),
        (edit("nets/readme.py", "x", None, renamed_from="README.md"), "renamed from README.md: not in scope"),
        (edit("README.py", "x", None, renamed_from="nets/a.py"), "not in scope"),
        (edit("world/arena.py", None, ARENA), "not the whole file"),
        (added("world/arena.py", ARENA), "not the whole file"),
        (added("world/arena/__init__.py"), "not in scope"),
    ],
)
def test_what_is_not_allowed_is_told_with_its_reason(
    arena: tuple[Path, Task, str], change: FileChange, says: str
) -> None:
    found = breaches(arena, change)
    assert any(says in line for line in found) or (not says and not found), found


@pytest.mark.parametrize(
    ("path", "mode", "content"),
    [
        ("conftest.py", FILE, "x"),
        ("nets/mlp.so", FILE, b"\x7fELF\0"),
        (".gitignore", FILE, "x"),
        ("random.py", FILE, "x"),
    ],
)
def test_naming_the_very_file_allows_it(
    arena: tuple[Path, Task, str], path: str, mode: str, content: str | bytes
) -> None:
    assert breaches(arena, added(path, content, mode), paths=["**"], forbidden=["eval.py"]) != ()
    assert breaches(arena, added(path, content, mode), paths=[path]) == ()


def test_a_link_inside_the_scope_is_allowed(arena: tuple[Path, Task, str]) -> None:
    assert breaches(arena, added("nets/link.py", "deep/mlp.py", LINK)) == ()


@pytest.mark.parametrize("path", ["random.py", "torch/__init__.py", "gymnasium.py", "world/json.py", "rlx/study.py"])
def test_a_new_file_that_would_stand_in_for_a_module_is_refused(arena: tuple[Path, Task, str], path: str) -> None:
    assert any("in place of the module" in line for line in breaches(arena, added(path), paths=["**"]))


@pytest.mark.parametrize("path", ["nets/random.py", "world2/torch.py"])
def test_a_module_of_a_package_may_have_any_name(arena: tuple[Path, Task, str], path: str) -> None:
    assert breaches(arena, added(path), paths=["nets", "world2"]) == ()


def test_forbidden_wins(arena: tuple[Path, Task, str]) -> None:
    found = breaches(arena, edit("nets/a.py"), paths=["nets/**"], forbidden=["nets/a.py"])
    assert found == ("nets/a.py: the contract forbids it",)
    found = breaches(arena, added("nets/A.py"), paths=["nets/**"], forbidden=["nets/a.py"])
    assert found == ("nets/A.py: the contract forbids it",)
    changed = edit("world/arena.py", ARENA.replace("1.0", "2.0"), ARENA)
    found = breaches(arena, changed, paths=["world/arena.py::Arena"], forbidden=["world/arena.py::Arena.reward"])
    assert found == ("world/arena.py: the contract forbids `Arena.reward`, which changes",)


def test_keys_are_part_of_the_scope(arena: tuple[Path, Task, str]) -> None:
    root, task, sha = arena
    contract = contract_of(task, root, sha, scope={"keys": ["lr"], "forbidden": ["layers"]})
    told = diff_scope.breaches((), ("lr", "seed", "layers", "bonus"), contract, task)
    assert [line.partition(":")[0] for line in told] == ["key `seed`", "key `layers`", "key `bonus`"]


def test_a_contract_without_scope_allows_nothing(arena: tuple[Path, Task, str]) -> None:
    root, task, sha = arena
    contract = contract_of(task, root, sha, scope=None)
    assert diff_scope.breaches((edit("train.py"),), (), contract, task) == ("the contract has no scope",)


def test_a_region_of_the_evaluator_in_an_open_file_is_kept(arena: tuple[Path, Task, str]) -> None:
    root, task, sha = arena
    surfaces = {"evaluator": PathsAndKeys(paths=("world/arena.py::Arena.done",))}
    guarded = (root, task.model_copy(update={"surfaces": surfaces}), sha)
    reward = edit("world/arena.py", ARENA.replace("1.0", "2.0"), ARENA)
    done = edit("world/arena.py", ARENA.replace("False", "True"), ARENA)
    assert breaches(guarded, reward, paths=["world/arena.py::Arena.reward"]) == ()
    assert breaches(guarded, done, paths=["world/arena.py::Arena.reward"]) != ()
    assert "belongs to the evaluator" in breaches(guarded, done, paths=["world/arena.py::Arena"])[0]
    assert "belongs to the evaluator" in breaches(guarded, done, paths=["world/**"])[0]


@pytest.mark.parametrize(
    "after",
    [
        ARENA.replace("return False", "return True"),
        ARENA + "\nimport os\n",
        "import os\n" + ARENA,
        ARENA.replace("    def reward", "    @staticmethod\n    def reward"),
        ARENA.replace("    def reward", "    async def reward"),
        ARENA.replace("    def reward", "    class reward").replace("(self):\n        return 1.0", ":\n        pass"),
        ARENA.replace("def reward", "def rewards"),
        ARENA.replace("1.0", "(1.0"),
        ARENA.replace("        return 1.0", "        return 1.0\n\n    def reward(self):\n        return 2.0"),
        ARENA.replace("        return 1.0", "        return 1.0\n    if True:\n        def reward(self): return 2"),
        ARENA.replace("        return 1.0", "        return 1.0\n    done = None"),
        ARENA.replace("        return 1.0", "        return 1.0\nArena.done = None"),
        ARENA.replace("        return 1.0", "        return 1.0  # a comment behind it"),
        ARENA.replace("\n", "\r\n"),
        "\ufeff" + ARENA,
        "# -*- coding: latin-1 -*-\n" + ARENA,
        "class Arena:\n    def done(self):\n        return False\n\n    def reward(self):\n        return 1.0\n",
        ARENA.replace("        return 1.0", '        return 1.0\n    """'),
        "",
    ],
)
def test_everything_outside_a_region_stays_byte_for_byte(arena: tuple[Path, Task, str], after: str) -> None:
    found = breaches(arena, edit("world/arena.py", after, ARENA))
    assert found
    assert all(line.startswith("world/arena.py: ") for line in found)


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (ARENA.replace("1.0", "2.0").replace("return False", "return True"), "return True"),
        (ARENA.replace("return 1.0", "bonus = 3\n        return bonus") + "import os\n", "import os"),
        ("import os\n" + ARENA.replace("1.0", "2.0"), "import os"),
    ],
)
def test_a_refusal_names_the_line_outside_of_the_region(arena: tuple[Path, Task, str], after: str, line: str) -> None:
    (found,) = breaches(arena, edit("world/arena.py", after, ARENA))
    number = after.split("\n").index(next(text for text in after.split("\n") if line in text)) + 1
    assert found.endswith(f"(first difference: line {number})")


def test_two_regions_of_a_file_may_both_change() -> None:
    after = ARENA.replace("1.0", "2.0").replace("False", "True")
    names = ("Arena.reward", "Arena.done")
    assert diff_scope.region_breaches(ARENA.encode(), after.encode(), names) == ()
    assert diff_scope.region_breaches(ARENA.encode(), (after + "\n").encode(), names) != ()
    swapped = b"class Arena:\n    def done(self):\n        return False\n\n    def reward(self):\n        return 1.0\n"
    assert diff_scope.region_breaches(ARENA.encode(), swapped, names) != ()
    assert diff_scope.region_breaches(ARENA.encode(), swapped, ("Arena", *names)) == ()


SOURCE = '''"""A file."""
import math
LIMIT = 3  # é


@cached
class Arena:
    """Holds 'é'."""
    size = {"a": [1, 2]}

    def reward(self, a=1):
        """Doc."""
        return (a
                + LIMIT)

    def done(self):
        """Ends."""
        return f"{self.size!r}" == 'x'


def free(): return 1
'''.encode()
REGIONS = ("Arena", "Arena.reward", "Arena.done", "free")


@given(st.sampled_from(REGIONS), st.data())
def test_any_byte_that_changes_outside_of_a_region_is_a_breach(name: str, data: st.DataObject) -> None:
    found = source_region.find(SOURCE, name)
    outside = [at for at in range(len(SOURCE)) if not found.start <= at < found.end]
    at = data.draw(st.sampled_from(outside))
    byte = bytes([data.draw(st.integers(0, 255).filter(lambda value: value != SOURCE[at]))])
    inner = data.draw(st.sampled_from([found.within(SOURCE), found.within(SOURCE) + b" + 1"]))
    changed = SOURCE[:at] + byte + SOURCE[at + 1 :]
    after = changed[: found.start] + inner + changed[found.end :]
    assert diff_scope.region_breaches(SOURCE, after, [name])


@given(st.sampled_from(REGIONS), st.data())
def test_any_byte_that_goes_or_comes_outside_of_a_region_is_a_breach(name: str, data: st.DataObject) -> None:
    found = source_region.find(SOURCE, name)
    outside = [at for at in range(len(SOURCE)) if not found.start <= at < found.end]
    at = data.draw(st.sampled_from(outside))
    more = data.draw(st.binary(max_size=4))
    after = SOURCE[:at] + more + SOURCE[at + (0 if more else 1) :]
    is_inside = after.startswith(SOURCE[: found.start]) and after.endswith(SOURCE[found.end :])  # right at its border
    assert diff_scope.region_breaches(SOURCE, after, [name]) or is_inside


@pytest.mark.parametrize(
    ("before", "after", "is_seed_only"),
    [
        ("torch.manual_seed(0)\nx = 1\n", "torch.manual_seed(42)\nx = 1\n", True),
        ("SEED = 1\n", "SEED = 0x7f\n", True),
        ("seed = 1\nlr = 3\n", "seed = 2\nlr = 4\n", False),
        ("seed = 1\n", "seed = other()\n", False),
        ("seed = 1\n", "seed = 1\nseed = 2\n", False),
        ("lr = 1\n", "lr = 2\n", False),
    ],
)
def test_code_that_changes_only_a_seed_is_told(before: str, after: str, is_seed_only: bool) -> None:
    assert diff_scope._differs_by_seed(edit("train.py", after, before)) is is_seed_only


def test_a_seed_in_code_is_no_candidate(arena: tuple[Path, Task, str]) -> None:
    found = breaches(arena, edit("train.py", "seed = 2\n", "seed = 1\n"))
    assert found == ("train.py: only a seed changes: another replicate is not a candidate",)
    both = (edit("train.py", "seed = 2\n", "seed = 1\n"), edit("nets/a.py"))
    assert breaches(arena, *both) == ()


def test_thousands_of_stray_files_are_one_reason(arena: tuple[Path, Task, str]) -> None:
    (found,) = breaches(arena, *(added(f"stray/{number}.py") for number in range(20_000)))
    assert found == "20,000 files differ from the baseline's, among them stray/0.py, stray/1.py, stray/2.py"
