"""The programs rlx runs: git answers or not, ffmpeg encodes or says why."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlx import tools
from rlx.errors import RlxError

RAW = ("-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "16x16", "-r", "10", "-i", "-")
FRAME = bytes(16 * 16 * 3)


def test_git_answers_in_a_repository_and_is_silent_elsewhere(tmp_path: Path) -> None:
    assert tools.git("rev-parse", "HEAD", folder=tmp_path) is None
    tools.git("init", "--quiet", folder=tmp_path)
    assert tools.git("status", "--porcelain", folder=tmp_path) == ""


def test_ffmpeg_encodes_raw_frames(tmp_path: Path) -> None:
    tools.ffmpeg(*RAW, "-f", "mp4", str(tmp_path / "film.mp4"), frames=[FRAME] * 5)
    assert (tmp_path / "film.mp4").stat().st_size > 100


def test_ffmpegs_last_words_become_the_error(tmp_path: Path) -> None:
    with pytest.raises(RlxError, match=r"ffmpeg failed: .*No such file"):
        tools.ffmpeg(*RAW, str(tmp_path / "nowhere/film.mp4"), frames=[FRAME] * 500)
    with pytest.raises(RlxError, match="ffmpeg failed"):
        tools.ffmpeg("-no-such-option", frames=[FRAME])


def test_an_error_while_frames_are_made_ends_ffmpeg_and_is_not_hidden(tmp_path: Path) -> None:
    def frames() -> Iterator[bytes]:
        yield FRAME
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tools.ffmpeg(*RAW, "-f", "mp4", str(tmp_path / "film.mp4"), frames=frames())


def test_without_ffmpeg_the_hint_names_another_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "ffmpeg_program", lambda: None)
    with pytest.raises(RlxError) as caught:
        tools.ffmpeg(frames=[])
    assert "--format gif" in str(caught.value.hint)


def test_git_bytes_tells_gits_last_words_and_takes_none_of_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    tools.git_bytes("init", "--quiet", folder=tmp_path)
    assert tools.git_bytes("hash-object", "--stdin", folder=tmp_path, stdin=b"")[:4] == b"e69d"
    with pytest.raises(RlxError, match="git cat-file failed: fatal"):
        tools.git_bytes("-c", "core.quotePath=off", "cat-file", "-p", "none", folder=tmp_path)


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
    tools.git_bytes("init", "--quiet", folder=tmp_path)
    (tmp_path / "one.py").touch()
    tools.git_bytes("add", "one.py", folder=tmp_path)
    listing = ("ls-files", "--cached", "--full-name")
    expected = tools.git(*listing, folder=tmp_path), tools.git("rev-parse", "--show-toplevel", folder=tmp_path)
    monkeypatch.setenv(name, value)
    assert expected[0] == "one.py\n"
    assert (
        tools.git(*listing, folder=tmp_path),
        tools.git("rev-parse", "--show-toplevel", folder=tmp_path),
    ) == expected


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
    armoured = tools.ssh_sign(b"a text", key=key, namespace="rlx-approval")
    assert tools.ssh_verify(b"a text", signature=armoured, signers=signers, namespace="rlx-approval") == "ada"
    assert tools.ssh_verify(b"a text.", signature=armoured, signers=signers, namespace="rlx-approval") is None
    assert tools.ssh_verify(b"a text", signature=armoured, signers=signers, namespace="git") is None
    assert tools.ssh_verify(b"a text", signature="", signers=signers, namespace="rlx-approval") is None


def test_without_ssh_keygen_the_hint_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(RlxError, match="no ssh-keygen"):
        tools.ssh_sign(b"", key=Path("key"), namespace="x")
