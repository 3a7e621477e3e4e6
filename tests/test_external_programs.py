"""The programs rlx runs: git answers or not, ffmpeg encodes or says why."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlx import external_programs
from rlx.errors import RlxError

RAW = ("-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "16x16", "-r", "10", "-i", "-")
FRAME = bytes(16 * 16 * 3)


def test_git_answers_in_a_repository_and_is_silent_elsewhere(tmp_path: Path) -> None:
    assert external_programs.git("rev-parse", "HEAD", folder=tmp_path) is None
    external_programs.git("init", "--quiet", folder=tmp_path)
    assert external_programs.git("status", "--porcelain", folder=tmp_path) == ""


def test_ffmpeg_encodes_raw_frames(tmp_path: Path) -> None:
    external_programs.ffmpeg(*RAW, "-f", "mp4", str(tmp_path / "film.mp4"), frames=[FRAME] * 5)
    assert (tmp_path / "film.mp4").stat().st_size > 100


def test_ffmpegs_last_words_become_the_error(tmp_path: Path) -> None:
    with pytest.raises(RlxError, match=r"ffmpeg failed: .*No such file"):
        external_programs.ffmpeg(*RAW, str(tmp_path / "nowhere/film.mp4"), frames=[FRAME] * 500)
    with pytest.raises(RlxError, match="ffmpeg failed"):
        external_programs.ffmpeg("-no-such-option", frames=[FRAME])


def test_an_error_while_frames_are_made_ends_ffmpeg_and_is_not_hidden(tmp_path: Path) -> None:
    def frames() -> Iterator[bytes]:
        yield FRAME
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        external_programs.ffmpeg(*RAW, "-f", "mp4", str(tmp_path / "film.mp4"), frames=frames())


def test_without_ffmpeg_the_hint_names_another_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_programs, "ffmpeg_program", lambda: None)
    with pytest.raises(RlxError) as caught:
        external_programs.ffmpeg(frames=[])
    assert "--format gif" in str(caught.value.hint)


def test_git_bytes_tells_gits_last_words_and_takes_none_of_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    external_programs.git_bytes("init", "--quiet", folder=tmp_path)
    assert external_programs.git_bytes("hash-object", "--stdin", folder=tmp_path, stdin=b"")[:4] == b"e69d"
    with pytest.raises(RlxError, match="git cat-file failed: fatal"):
        external_programs.git_bytes("cat-file", "-p", "none", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", "/nowhere"),
        ("GIT_WORK_TREE", "/"),
        ("GIT_INDEX_FILE", "/nowhere/index"),
        ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        ("GIT_CEILING_DIRECTORIES", "/"),
        ("GIT_NAMESPACE", "other"),
        ("GIT_CONFIG_PARAMETERS", "'core.bare'='true'"),
        ("GIT_CONFIG_GLOBAL", "/nowhere"),
    ],
)
def test_variables_of_whoever_calls_lead_git_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    external_programs.git_bytes("init", "--quiet", folder=tmp_path)
    (tmp_path / "one.py").touch()
    external_programs.git_bytes("add", "one.py", folder=tmp_path)
    listing = ("ls-files", "--cached", "--full-name")
    expected = (
        external_programs.git(*listing, folder=tmp_path),
        external_programs.git("rev-parse", "--show-toplevel", folder=tmp_path),
    )
    monkeypatch.setenv(name, value)
    assert expected[0] == "one.py\n"
    assert (
        external_programs.git(*listing, folder=tmp_path),
        external_programs.git("rev-parse", "--show-toplevel", folder=tmp_path),
    ) == expected


COMMIT = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "one")


@pytest.fixture
def trapped(tmp_path: Path) -> Iterator[Path]:
    """Yield a repository whose settings name programs wherever git allows it; fail if one of them has run."""
    root, trap = tmp_path / "trapped", tmp_path / "ran"
    root.mkdir()
    module = root / "module"
    for folder in (module, root):
        subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        (folder / "one.py").write_text("a = 1\n")
        subprocess.run(["git", "-C", str(folder), "add", "--all"], check=True, capture_output=True)
        subprocess.run(["git", "-C", str(folder), *COMMIT], check=True)
        for name in ("reference-transaction", "post-index-change", "post-checkout"):
            (folder / ".git/hooks" / name).write_text(f"#!/bin/sh\necho {name} >> '{trap}'\n")
            (folder / ".git/hooks" / name).chmod(0o755)
        run = f"echo a program ran >> '{trap}'; cat"
        with (folder / ".git/config").open("a") as config:
            config.write(f'[filter "a=b.c"]\n\tclean = "{run}"\n\tsmudge = "{run}"\n\trequired = true\n')
            config.write(f'[filter "long"]\n\tprocess = "{run}"\n[core]\n\tfsmonitor = "{run}"\n')
            config.write(f'[diff "evil"]\n\ttextconv = "{run}"\n\tcommand = "{run}"\n')
        (folder / ".git/info/attributes").write_text("one.py filter=a=b.c diff=evil\n*.txt filter=long\n")
        (folder / "one.py").write_text("a = 2\n")
        (folder / "two.txt").write_text("b\n")
    yield root
    assert not trap.exists(), trap.read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--porcelain", "--untracked-files=all"),
        ("diff", "HEAD"),
        ("diff", "--name-only", "HEAD"),
        ("ls-files", "--modified", "--others"),
        ("hash-object", "--", "one.py", "two.txt"),
        ("add", "two.txt"),
        ("show", "HEAD"),
        ("show", "HEAD:./one.py"),
        ("update-ref", "refs/rlx/x", "HEAD"),
        ("worktree", "add", "--detach", "../tree", "HEAD"),
        ("checkout", "HEAD", "--", "one.py"),
    ],
    ids=" ".join,
)
def test_git_runs_no_program_that_a_repository_names(trapped: Path, words: tuple[str, ...]) -> None:
    assert external_programs.git(*words, folder=trapped) is not None


def test_git_fetches_no_missing_object(trapped: Path) -> None:
    with (trapped / ".git/config").open("a") as config:
        config.write(f'[remote "r"]\n\turl = {trapped}/module\n\tpromisor = true\n')
        config.write(f"\tuploadpack = touch '{trapped.parent}/ran';\n[extensions]\n\tpartialClone = r\n")
    assert external_programs.git("cat-file", "-p", "0" * 39 + "1", folder=trapped) is None


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="NO ssh-keygen HERE: signatures are not tested")
def test_a_signature_is_made_and_verified_by_the_systems_own_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    signers.write_text(f"ada {key.with_suffix('.pub').read_text()}")
    fake = tmp_path / "bin" / "ssh-keygen"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho eve\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    armoured = external_programs.ssh_sign(b"a text", key=key, namespace="rlx-approval")
    assert (
        external_programs.ssh_verify(b"a text", signature=armoured, signers=signers, namespace="rlx-approval") == "ada"
    )
    assert (
        external_programs.ssh_verify(b"a text.", signature=armoured, signers=signers, namespace="rlx-approval") is None
    )
    assert external_programs.ssh_verify(b"a text", signature=armoured, signers=signers, namespace="git") is None
    assert external_programs.ssh_verify(b"a text", signature="", signers=signers, namespace="rlx-approval") is None


def test_without_ssh_keygen_the_hint_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(RlxError, match="no ssh-keygen"):
        external_programs.ssh_sign(b"", key=Path("key"), namespace="x")
