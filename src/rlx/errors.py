"""The error tree: what can go wrong, and the exit code each kind ends with.

RlxError                  1  failed
├── UsageError            2  bad usage
│   └── ConfigError       2  bad config, with file and line
├── NotFound              3  no such run, checkpoint, file, environment
├── Refused               4  refused by a gate
├── JobFailed             5  a training or evaluation job failed
├── EvidenceInvalid       6  evidence that cannot be used
│   ├── CheckpointInvalid 6  altered, torn or foreign checkpoint
│   └── FileDamaged       6  a file that does not read as it was written
├── MissingExtra          1  an optional dependency is not installed
└── Interrupted         130  stopped by the user
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlx.command import Command


class RlxError(Exception):
    """What went wrong, the offending value and where; `hint` is the next step."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RlxError):
    exit_code = 2


class ConfigError(UsageError):
    """Bad config; the message starts with `file:line: `."""


class NotFound(RlxError):
    exit_code = 3


class Refused(RlxError):
    """A gate said no; `reasons` has every one of them as data (code, says, hint)."""

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        reasons: Sequence[Mapping[str, str]] = (),
        fix: Command | None = None,
    ) -> None:
        super().__init__(message, hint=hint or (str(fix) if fix else None))
        self.reasons = tuple(reasons)
        self.fix = fix


class WriteFailed(RlxError):
    """A file could not be written: the disk is full, or writing is not permitted. No learner is to blame."""


class JobFailed(RlxError):
    exit_code = 5


class EvidenceInvalid(RlxError):
    exit_code = 6


class CheckpointInvalid(EvidenceInvalid):
    """The checkpoint was altered, is torn, or was not written by rlx."""


class FileDamaged(EvidenceInvalid, ValueError):
    """A file in a run's folder is not what rlx wrote: edited, half copied, or hit by a broken disk."""

    def __init__(
        self, message: str, *, hint: str = "restore the file from a copy, or delete the run: rlx rm RUN"
    ) -> None:
        super().__init__(message, hint=hint)


class MissingExtra(RlxError):
    """An optional dependency is needed: names the extra to install."""

    def __init__(self, package: str, *, extra: str, why: str) -> None:
        super().__init__(f"{why} needs `{package}`, which is not installed", hint=f"pip install 'rlx[{extra}]'")


class Interrupted(RlxError):
    exit_code = 130


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str | None:
    """Return the known word closest to `word`, if one is close."""
    import difflib

    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return next((lowered[name] for name in close), None)


def hint_for(word: str, known: Sequence[str], *, otherwise: str | None = None) -> str | None:
    """Return a hint with the known word closest to `word`; `otherwise` if none is close."""
    near = did_you_mean(word, list(known))
    if near is None:
        return otherwise
    return f"did you mean `{near}`?"
