"""The few programs rlx runs for itself: git, ssh-keygen, ffmpeg."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from rlx.errors import RlxError


def git(*arguments: str, folder: Path) -> str | None:
    """Return what a git command prints, or None where it fails or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=30,
            check=True,
            stdin=subprocess.DEVNULL,
            env=_git_environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def _git_environment() -> dict[str, str]:
    """Return our variables without the GIT_ ones, which could name another repository, index or program."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**own, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def git_bytes(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    fine: Collection[int] = (0,),
    keeps: Collection[int] = (),
    timeout_seconds: float = 600.0,
) -> bytes:
    """Return what a git command prints, byte for byte; its last words become the error.

    Nothing of our own GIT_* variables reaches it but `environment`; `keeps` are descriptors it holds open.
    """
    verb = next(word for word, before in zip(arguments, ("", *arguments), strict=False) if "-c" not in (word, before))
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            input=stdin,
            env={**_git_environment(), **(environment or {})},
            pass_fds=tuple(keeps),
            timeout=timeout_seconds,
            check=False,
        )
    except FileNotFoundError:
        raise RlxError("no git was found", hint="install git") from None
    except subprocess.TimeoutExpired:
        raise RlxError(f"git {verb} took more than {timeout_seconds:.0f} seconds") from None
    if done.returncode not in fine:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RlxError(f"git {verb} failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def ssh_sign(message: bytes, *, key: Path, namespace: str) -> str:
    """Sign with a key of ssh's; asks for its passphrase or touch at the terminal. Returns the armoured signature."""
    argv = [_ssh_keygen_program(), "-q", "-Y", "sign", "-f", str(key), "-n", namespace]
    try:
        done = subprocess.run(argv, input=message, stdout=subprocess.PIPE, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        raise RlxError("ssh-keygen waited five minutes for the key") from None
    if done.returncode:
        raise RlxError(f"ssh-keygen did not sign with {key}", hint="its passphrase or touch is needed, at a terminal")
    return done.stdout.decode("ascii", "replace")


def ssh_verify(message: bytes, *, signature: str, signers: Path, namespace: str) -> str | None:
    """Return who of the signers file made a signature over a message now; None where nobody did."""
    with tempfile.TemporaryDirectory(prefix="rlx-ssh-") as folder:
        file = Path(folder) / "signature"
        file.write_text(signature, encoding="utf-8")
        common = ("-s", str(file), "-f", str(signers))
        found = _ssh_keygen("-Y", "find-principals", *common)
        who = found.splitlines()[0].strip() if found and found.strip() else None
        if who is None:
            return None
        done = _ssh_keygen("-Y", "verify", *common, "-I", who, "-n", namespace, stdin=message)
        return who if done is not None else None


def _ssh_keygen(*arguments: str, stdin: bytes = b"") -> str | None:
    """Return what ssh-keygen prints, or None where it fails."""
    argv = [_ssh_keygen_program(), *arguments]
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _ssh_keygen_program() -> str:
    """Return the system's ssh-keygen; one on the PATH, which anybody may have put there, only where there is none."""
    for folder in ("/usr/bin", "/bin", "/usr/local/bin"):
        if os.access(f"{folder}/ssh-keygen", os.X_OK):
            return f"{folder}/ssh-keygen"
    found = shutil.which("ssh-keygen")
    if found is None:
        raise RlxError("no ssh-keygen was found", hint="install OpenSSH's client programs")
    return found


def ffmpeg_program() -> str | None:
    """Return the ffmpeg to use: imageio-ffmpeg's own binary, else the system's; None where there is none."""
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        return None


def ffmpeg(*arguments: str, frames: Iterable[bytes]) -> None:
    """Run ffmpeg with raw frames on its standard input; its last words become the error."""
    program = ffmpeg_program()
    if program is None:
        raise RlxError("no ffmpeg was found", hint="pip install imageio-ffmpeg, or use --format gif")
    with tempfile.TemporaryFile() as talk:  # a file, not a pipe: nobody reads while frames are being written
        argv = [program, "-hide_banner", "-loglevel", "error", *arguments]
        encoder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=talk)
        assert encoder.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended early and says why
                for frame in frames:
                    encoder.stdin.write(frame)
                encoder.stdin.close()
            code = encoder.wait()
        finally:
            with contextlib.suppress(OSError):
                encoder.stdin.close()
            encoder.kill()
            encoder.wait()
        if code:
            talk.seek(0)
            lines = talk.read().decode("utf-8", "replace").strip().splitlines()
            raise RlxError(f"ffmpeg failed: {lines[-1] if lines else f'exit code {code}'}")
