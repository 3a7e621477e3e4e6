"""Installing skills: twice changes nothing, edits survive, AGENTS.md comes back to the byte."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlx import files
from rlx.errors import RlxError, UsageError
from rlx.hosts.agents import agents_md, install, packaged_skills
from rlx.hosts.agents.install import InstallPlace


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(*hosts: install.HostName, root: Path) -> None:
    for place in install.places(hosts or install.HOSTS, root=root, is_user=False):
        install.apply(install.planned(place))


def take(*hosts: install.HostName, root: Path) -> None:
    for place in install.places(hosts or install.HOSTS, root=root, is_user=False):
        install.apply(install.planned_removal(place))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "a project with spaces"
    folder.mkdir()
    return folder


def test_both_hosts_get_every_skill(root: Path) -> None:
    put(root=root)
    for skill in packaged_skills.skills():
        for host in (".claude", ".agents"):
            assert (root / host / "skills" / skill.name / "SKILL.md").is_file()
    assert (root / ".claude/agents/rl-director.md").is_file()
    assert not (root / ".agents/agents").exists()


def test_installing_twice_changes_nothing(root: Path) -> None:
    put(root=root)
    before = tree(root)
    times = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    put(root=root)
    assert tree(root) == before
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == times


def test_a_plan_changes_nothing(root: Path) -> None:
    plans = [install.planned(place) for place in install.places(install.HOSTS, root=root, is_user=False)]
    assert all(plan.changes for plan in plans)
    assert tree(root) == {}


def test_an_edited_file_survives_install_and_uninstall(root: Path) -> None:
    put(root=root)
    edited = root / ".claude/skills/rl-reward/SKILL.md"
    edited.write_text("mine")
    put(root=root)
    assert edited.read_text() == "mine"
    take(root=root)
    assert tree(root) == {".claude/skills/rl-reward/SKILL.md": b"mine"}


def test_a_file_that_was_there_before_is_the_users(root: Path) -> None:
    theirs = root / ".claude/skills/rl-reward/SKILL.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    put(root=root)
    take(root=root)
    assert theirs.read_text() == "theirs"


def test_a_file_of_an_older_version_is_updated_and_a_stale_one_goes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = root / "older"
    shutil.copytree(packaged_skills.PLUGIN, older)
    (older / "skills/rl-audit/SKILL.md").write_text("---\nname: rl-audit\n---\nold\n")
    (older / "skills/rl-gone").mkdir()
    (older / "skills/rl-gone/SKILL.md").write_text("---\nname: rl-gone\n---\nold\n")
    with monkeypatch.context() as patch:
        patch.setattr(packaged_skills, "PLUGIN", older)
        put("claude", root=root)
    assert (root / ".claude/skills/rl-gone/SKILL.md").is_file()
    put("claude", root=root)
    assert not (root / ".claude/skills/rl-gone").exists()
    assert (root / ".claude/skills/rl-audit/SKILL.md").read_text().splitlines()[-1] != "old"


def test_line_ends_are_no_edit(root: Path) -> None:
    put("claude", root=root)
    for path in (root / ".claude").rglob("*.md"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    [place] = install.places(["claude"], root=root, is_user=False)
    assert install.planned(place).changes == ()
    take("claude", root=root)
    assert tree(root) == {}


@pytest.mark.parametrize(
    "before",
    [
        b"", b"# Mine\n", b"# Mine\r\n\r\nrules\r\n", b"no newline", b"no newline\r\nat the end", b"\xff not UTF-8\n",
        b"a\n\n\n", b"\xef\xbb\xbf# With a mark\n", b"mixed\r\nlines\n", b"old\rMac", b"\x00\n", b"\n",
        b"<!-- rlx: not a mark -->\n",
    ],
)  # fmt: skip
def test_agents_md_comes_back_to_the_byte(root: Path, before: bytes) -> None:
    path = root / "AGENTS.md"
    path.write_bytes(before)
    put(root=root)
    put(root=root)
    within = path.read_bytes()
    assert within.count(agents_md.BEGIN.encode()) == 1
    assert within.startswith(before)
    if b"\r\n" in before and b"\n" not in before.replace(b"\r\n", b""):
        assert within.count(b"\n") == within.count(b"\r\n")
    take(root=root)
    assert path.read_bytes() == before


def test_an_agents_md_that_was_not_there_goes_again(root: Path) -> None:
    put("codex", root=root)
    assert (root / "AGENTS.md").is_file()
    take("codex", root=root)
    assert tree(root) == {}
    assert list(root.iterdir()) == []


def test_what_is_written_around_the_block_stays(root: Path) -> None:
    path = root / "AGENTS.md"
    path.write_text("# Before\n")
    put("codex", root=root)
    path.write_text(path.read_text().replace("# Before", "# Changed") + "after\n")
    take("codex", root=root)
    assert path.read_text() == "# Changed\nafter\n"


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_block_in_the_middle_is_brought_up_to_date_there_and_taken_out_to_the_byte(
    root: Path, newline: bytes
) -> None:
    path = root / "AGENTS.md"
    before, after = b"# Mine" + newline * 2, b"# After" + newline
    old = newline.join([agents_md.BEGIN.encode(), b"of an older version", agents_md.END.encode(), b""])
    path.write_bytes(before + old + after)
    put("codex", root=root)
    within = path.read_bytes()
    assert within.startswith(before)
    assert within.endswith(agents_md.END.encode() + newline + after)
    assert b"older version" not in within
    assert within.count(b"\n") == within.count(newline)
    take("codex", root=root)
    assert path.read_bytes() == before + after


def test_agents_md_keeps_its_permissions(root: Path) -> None:
    path = root / "AGENTS.md"
    path.write_text("# Mine\n")
    path.chmod(0o600)
    put("codex", root=root)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_nothing_gets_its_file_and_loses_it_again(root: Path) -> None:
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    put("codex", root=root)
    assert agents_md.BEGIN in (root / "CLAUDE.md").read_text()
    take("codex", root=root)
    assert (root / "AGENTS.md").is_symlink()
    assert not (root / "CLAUDE.md").exists()


def test_a_linked_folder_of_a_host_is_written_through_and_stays(root: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (root / ".claude").symlink_to(tmp_path / "dotfiles")
    put("claude", root=root)
    assert (tmp_path / "dotfiles/skills/rl-audit/SKILL.md").is_file()
    take("claude", root=root)
    assert (root / ".claude").is_symlink()
    assert list((tmp_path / "dotfiles").iterdir()) == []


class Killed(BaseException):
    """What a process that is killed does not live to handle."""


def interrupted(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None], *, after: int) -> bool:
    """Do something that is killed after so many changes of files; say whether it was."""
    left = after

    def counted(change: Callable[..., object]) -> Callable[..., object]:
        def changed(*given: object, **named: object) -> object:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return change(*given, **named)

        return changed

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomic", counted(files.write_atomic))
        patch.setattr(Path, "unlink", counted(Path.unlink))
        try:
            action()
        except Killed:
            return True
    return False


@pytest.mark.parametrize("before", [None, b"# Mine", b"# Mine\r\n"])
def test_an_installation_that_was_killed_is_finished_or_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    def fresh(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        if before is not None:
            (folder / "AGENTS.md").write_bytes(before)
        return folder

    small = tmp_path / "plugin"
    for name in ("skills/rl-a/SKILL.md", "skills/rl-a/references/b.md", "agents/c.md"):
        (small / name).parent.mkdir(parents=True, exist_ok=True)
        (small / name).write_text("---\nname: x\n---\ntext\n")
    monkeypatch.setattr(packaged_skills, "PLUGIN", small)
    untouched, whole = tree(fresh("untouched")), fresh("whole")
    put(root=whole)
    for after in range(100):
        finished, taken = fresh(f"finished {after}"), fresh(f"taken {after}")
        was_killed = [interrupted(monkeypatch, lambda at=at: put(root=at), after=after) for at in (finished, taken)]
        if not any(was_killed):
            break
        put(root=finished)
        assert tree(finished) == tree(whole)
        interrupted(monkeypatch, lambda at=finished: take(root=at), after=after)
        for folder in (finished, taken):
            take(root=folder)
            assert tree(folder) == untouched
    assert after >= 8


@pytest.mark.parametrize(
    "manifest",
    [
        "not JSON", "[]", "{}", '{"files": []}', '{"files": {"skills/x": 3}}', '{"files": {"../../.bashrc": "0"}}',
        '{"files": {"/etc/passwd": "0"}}', '{"files": {}, "agents_md": 3}',
    ],
)  # fmt: skip
def test_a_manifest_that_rlx_did_not_write_moves_nothing(root: Path, manifest: str) -> None:
    put(root=root)
    (root / ".agents/rlx-skills.json").write_text(manifest)
    before = tree(root)
    for plan in (install.planned, install.planned_removal):
        [place] = install.places(["codex"], root=root, is_user=False)
        with pytest.raises(UsageError, match="rlx did not write it"):
            plan(place)
    assert tree(root) == before
    (root / ".agents/rlx-skills.json").unlink()
    put(root=root)
    take(root=root)
    assert [name for name in tree(root) if "skills" in name] == []


def test_a_linked_agents_md_stays_a_link(root: Path) -> None:
    (root / "CLAUDE.md").write_text("# Rules\n")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    put("codex", root=root)
    assert (root / "AGENTS.md").is_symlink()
    assert agents_md.BEGIN in (root / "CLAUDE.md").read_text()


@pytest.mark.parametrize("torn", [agents_md.BEGIN, agents_md.END, agents_md.BEGIN * 2 + agents_md.END])
def test_a_block_that_is_not_whole_is_refused_before_anything_is_written(root: Path, torn: str) -> None:
    (root / "AGENTS.md").write_text(torn)
    [place] = install.places(["codex"], root=root, is_user=False)
    with pytest.raises(UsageError, match="is damaged"):
        install.planned(place)
    assert tree(root) == {"AGENTS.md": torn.encode()}


def test_something_in_the_way_is_named(root: Path) -> None:
    (root / ".claude/skills/rl-audit/SKILL.md").mkdir(parents=True)
    [place] = install.places(["claude"], root=root, is_user=False)
    with pytest.raises(UsageError, match="is not a file"):
        install.planned(place)


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Be somebody to whom permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_home_that_cannot_be_written_gives_one_clear_error(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for folder in (home, *tmp_path.parents):
        with contextlib.suppress(PermissionError):
            folder.chmod(0o555 if folder == home else folder.stat().st_mode | 0o055)
    plan = install.planned(InstallPlace("claude", home, is_user=True))
    with without_rights(), pytest.raises(RlxError) as caught:
        install.apply(plan)
    assert str(home) in caught.value.message
    assert caught.value.hint is not None
    assert "rlx skills install claude --project" in caught.value.hint


def test_the_user_scope_uses_the_home_and_codex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    claude, codex = install.places(install.HOSTS, root=tmp_path, is_user=True)
    assert claude.folder == tmp_path / "home/.claude"
    assert codex.folder == tmp_path / "home/.agents"
    assert codex.agents_file == tmp_path / "home/.codex/AGENTS.md"
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    assert codex.agents_file == tmp_path / "codex/AGENTS.md"
