"""The external programs that rlx runs itself: git, ssh-keygen, ffmpeg, and a planner that the user names.

Git never runs a program that a repository's settings name: hooks, filters, the file system monitor, external diffs,
text conversions and transports are off. So files that only a filter can make (Git LFS, git-crypt) count as stored.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from rlx.errors import RlxError

_GIT_SETTINGS = {"core.hooksPath": "/dev/null", "core.fsmonitor": "false", "gc.auto": "0", "maintenance.auto": "false"}
_FILTER_SETTINGS = {"clean": "", "smudge": "", "process": "", "required": "false"}
# Options that keep a verb from starting programs. A submodule has its own settings, so git does not read its files.
_GIT_OPTIONS = {
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"),
    "show": ("--no-ext-diff", "--no-textconv"),
    "status": ("--ignore-submodules=dirty",),
}
# Verbs that neither read nor write the files of a work tree, so no filter can apply. The others cost one more call.
_UNFILTERED_VERBS = frozenset({
    "--version", "cat-file", "check-ignore", "commit-tree", "diff-tree", "init", "ls-tree", "read-tree", "rev-parse",
    "show", "update-ref", "write-tree",
})  # fmt: skip


def git(*arguments: str, folder: Path) -> str | None:
    """Return the output of a git command, or None if it fails or git is not installed."""
    try:
        done = _run_git(arguments, folder=folder, timeout_seconds=30)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    return done.stdout.decode("utf-8", "replace")


def _run_git(
    arguments: Sequence[str],
    *,
    folder: Path,
    timeout_seconds: float,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    keeps: Collection[int] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git so that it starts no program that the repository's settings name."""
    verb, *words = arguments
    given = dict(environment or {})
    settings = dict(_GIT_SETTINGS)
    if verb not in _UNFILTERED_VERBS and "GIT_DIR" not in given:  # rlx's own git folder has no filters
        for name in _filters(folder):
            settings |= {f"{name}.{key}": value for key, value in _FILTER_SETTINGS.items()}
    return subprocess.run(
        ["git", "-C", str(folder), verb, *_GIT_OPTIONS.get(verb, ()), *words],
        capture_output=True,
        input=stdin,
        env={**_git_environment(settings), **given},
        pass_fds=tuple(keeps),
        timeout=timeout_seconds,
        check=False,
    )


def _filters(folder: Path) -> set[str]:
    """Return the sections of all filters that the settings define, for example `filter.lfs`."""
    argv = ["git", "-C", str(folder), "config", "--null", "--name-only", "--get-regexp", r"^filter\."]
    done = subprocess.run(argv, capture_output=True, env=_git_environment({}), timeout=30, check=False)
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {name.rpartition(".")[0] for name in names if name}


def _git_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return rlx's variables without GIT_*, which could name another repository or program, plus some settings.

    The settings stand in variables, because a filter's name may contain any character. No transport is allowed, or git
    would fetch a missing object with a program that the repository names.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    own["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        own |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return own


def git_bytes(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    fine: Collection[int] = (0,),
    keeps: Collection[int] = (),
    timeout_seconds: float = 600.0,
) -> bytes:
    """Return the output of a git command. Its last line of stderr becomes the error.

    The command gets only those GIT_* variables that are in `environment`. `keeps` are descriptors that it inherits.
    """
    verb = arguments[0]
    try:
        done = _run_git(
            arguments, folder=folder, environment=environment, stdin=stdin, keeps=keeps, timeout_seconds=timeout_seconds
        )
    except FileNotFoundError:
        raise RlxError("no git was found", hint="install git") from None
    except OSError as error:
        raise RlxError(f"git {verb} did not start: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise RlxError(f"git {verb} took more than {timeout_seconds:.0f} seconds") from None
    if done.returncode not in fine:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RlxError(f"git {verb} failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def ssh_sign(message: bytes, *, key: Path, namespace: str) -> str:
    """Sign with an SSH key and return the armoured signature. ssh-keygen asks for a passphrase or a touch."""
    argv = [_ssh_keygen_program(), "-q", "-Y", "sign", "-f", str(key), "-n", namespace]
    try:
        done = subprocess.run(argv, input=message, stdout=subprocess.PIPE, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        raise RlxError("ssh-keygen waited five minutes for the key") from None
    if done.returncode:
        raise RlxError(f"ssh-keygen did not sign with {key}", hint="its passphrase or touch is needed, at a terminal")
    return done.stdout.decode("ascii", "replace")


def ssh_verify(message: bytes, *, signature: str, signers: Path, namespace: str) -> str | None:
    """Return the person in the signers file who signed a message, or None."""
    with tempfile.TemporaryDirectory(prefix="rlx-ssh-") as folder:
        file = Path(folder) / "signature"
        file.write_text(signature, encoding="utf-8")
        common = ("-s", str(file), "-f", str(signers))
        found = _ssh_keygen("-Y", "find-principals", *common)
        names = (found or "").split("\n")
        who = names[0].strip()
        if not who or _ssh_keygen("-Y", "verify", *common, "-I", who, "-n", namespace, stdin=message) is None:
            return None
        return who


def _ssh_keygen(*arguments: str, stdin: bytes = b"") -> str | None:
    """Return the output of ssh-keygen, or None if it fails."""
    argv = [_ssh_keygen_program(), *arguments]
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        return None
    return done.stdout.decode("utf-8", "replace")


def _ssh_keygen_program() -> str:
    """Return the system's ssh-keygen. One on the PATH is less trustworthy and comes last."""
    for folder in ("/usr/bin", "/bin", "/usr/local/bin"):
        if os.access(f"{folder}/ssh-keygen", os.X_OK):
            return f"{folder}/ssh-keygen"
    found = shutil.which("ssh-keygen")
    if found is None:
        raise RlxError("no ssh-keygen was found", hint="install OpenSSH's client programs")
    return found


def ffmpeg_program() -> str | None:
    """Return the ffmpeg to use: imageio-ffmpeg's binary or the system's, or None if there is none."""
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        return None


def ffmpeg(*arguments: str, frames: Iterable[bytes]) -> None:
    """Run ffmpeg with raw frames on its standard input. Its last line becomes the error."""
    program = ffmpeg_program()
    if program is None:
        raise RlxError("no ffmpeg was found", hint="pip install imageio-ffmpeg, or use --format gif")
    with tempfile.TemporaryFile() as talk:  # a file, not a pipe: rlx does not read while it writes frames
        argv = [program, "-hide_banner", "-loglevel", "error", *arguments]
        encoder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=talk)
        assert encoder.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it ended early, and the log has the reason
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


def run_notice(argv: Sequence[str], *, environment: Mapping[str, str], timeout_seconds: float = 60) -> str:
    """Run a person's own command that tells them that a run has ended. Returns the problem, or nothing if it worked."""
    try:
        done = subprocess.run(
            list(argv), env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=timeout_seconds, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return ": ".join([f"exit code {done.returncode}", *last])
    return ""


def run_rlx_child(
    words: Sequence[str], *, environment: Mapping[str, str], timeout_seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Run an rlx command in a child process of its own, because code that it calls may kill its process.

    What it prints on stderr is passed on. A child that takes too long is killed: it then has the exit code of SIGKILL.
    """
    command = [sys.executable, "-P", "-m", "rlx", *words]
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, _ = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, printed)


def ask_program(argv: Sequence[str], question: bytes, *, seconds: float, most: int) -> bytes:
    """Return what a program of the user writes to its standard output, given `question` on its standard input.

    Raises `ValueError` if it fails, takes too long or writes more than `most` bytes; then it is killed with its group.
    """
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as sink:
        source.write(question)
        source.seek(0)
        child = subprocess.Popen(
            list(argv), stdin=source, stdout=sink, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            while child.poll() is None:
                if time.monotonic() >= deadline:
                    raise ValueError(f"no answer within {seconds:g} s")
                if os.fstat(sink.fileno()).st_size > most:
                    raise ValueError(f"the answer is longer than {most:,} bytes")
                time.sleep(0.02)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # also what it left in the background
            child.wait()
        if child.returncode:
            raise ValueError(f"it exited with {child.returncode}")
        if os.fstat(sink.fileno()).st_size > most:
            raise ValueError(f"the answer is longer than {most:,} bytes")
        sink.seek(0)
        return sink.read()
