"""Approvals: somebody's word for one contract, byte for byte, until a day; made here, and verified at every launch.

Levels, weakest first. *asserted*: a row in the ledger, which anyone on this account could have written. *signed*: an
ssh signature by a key that a signers file outside the project lists. *other user*: a document that another account
owns and the one who launches cannot write. Only the last, or a signature whose key was touched, is called human.

What is not covered, under one account: whoever may write the ledger can assert an approval; whoever may write the
signers file, or set XDG_CONFIG_HOME, can list a key of their own (/etc/rlx/signers, owned by root, wins over both); a
key without a passphrase, with a scriptable one or in an unlocked agent signs unattended; whoever may become another
user (sudo, containers that map user ids) can write that user's document; and the same account can patch rlx itself.
There is no revocation: amend the contract, or let the approval expire. `forgeable` says which of this applies.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rlx import tools
from rlx.errors import NotFound, Refused, UsageError
from rlx.study import signature as signatures
from rlx.study.contract import APPROVAL_LEVELS, ApprovalLevel, Contract

NAMESPACE = "rlx-approval"
SYSTEM_SIGNERS = Path("/etc/rlx/signers")
SECONDS_A_DAY = 86_400
LATEST = 10**10
"""An expiry beyond this, in the year 2286, is none."""


class Fields(Protocol):
    """What an `approved` event is here: fields by name."""

    def get(self, name: str, /, default: Any = None) -> Any: ...


@dataclass(frozen=True)
class Statement:
    """What is approved; `study` is `task/study`, `expires` in whole seconds of the epoch."""

    study: str
    contract: str
    seeds: int
    hours: float
    expires: int
    nonce: str
    evaluator: str = ""

    @classmethod
    def of(cls, contract: Contract, sha256: str, *, now: float, evaluator: str = "") -> Statement:
        """State the approval of a settled contract, from now until its `expires_days` are over."""
        if contract.budget is None or contract.automation is None:
            raise Refused("the contract is not settled: it has no budget or no automation", hint="rlx study show")
        return cls(
            study=f"{contract.task}/{contract.study}",
            contract=sha256,
            seeds=contract.budget.seeds,
            hours=contract.budget.hours,
            expires=int(now + contract.automation.expires_days * SECONDS_A_DAY),
            nonce=secrets.token_hex(16),
            evaluator=evaluator,
        )

    @classmethod
    def read(cls, event: Fields) -> Statement:
        """Read what an event says was approved; `ValueError` where it does not."""
        texts = {name: event.get(name) or "" for name in ("study", "contract", "nonce", "evaluator")}
        seeds, hours, expires = (event.get(name) for name in ("seeds", "hours", "expires"))
        is_text = all(isinstance(text, str) and "\n" not in text for text in texts.values())
        if not is_text or not isinstance(seeds, int) or not isinstance(hours, (int, float)):
            raise ValueError("does not say what was approved")
        if not isinstance(expires, (int, float)) or not 0 < expires < LATEST or int(expires) != expires:
            raise ValueError("does not say until when")
        return cls(**texts, seeds=seeds, hours=float(hours), expires=int(expires))

    @classmethod
    def parse(cls, text: str) -> Statement:
        """Read the text of an approval document; `ValueError` where it is none."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("is not an approval as rlx writes it")
        named = found.groupdict()
        parsed = cls(
            named["study"], named["contract"], int(named["seeds"]), float(named["hours"]), int(named["expires"]),
            named["nonce"], named["evaluator"].removeprefix("none"),
        )  # fmt: skip
        if parsed.text() != text:
            raise ValueError("is not an approval as rlx writes it")
        return parsed

    def text(self) -> str:
        """Return the one text that is signed or written down."""
        until = datetime.fromtimestamp(self.expires, tz=UTC).isoformat()
        return (
            "rlx approval 1\n"
            f"study: {self.study}\n"
            f"contract: {self.contract}\n"
            f"evaluator: {self.evaluator or 'none'}\n"
            f"budget: {self.seeds} seeds, {float(self.hours)} hours\n"
            f"expires: {self.expires} ({until})\n"
            f"nonce: {self.nonce}\n"
        )

    def fields(self) -> dict[str, Any]:
        return {
            "study": self.study, "contract": self.contract, "evaluator": self.evaluator, "seeds": self.seeds,
            "hours": self.hours, "expires": self.expires, "nonce": self.nonce,
        }  # fmt: skip


_FORM = re.compile(
    r"rlx approval 1\n"
    r"study: (?P<study>\S+)\n"
    r"contract: (?P<contract>[0-9a-f]{64})\n"
    r"evaluator: (?P<evaluator>none|[0-9a-f]+)\n"
    r"budget: (?P<seeds>\d+) seeds, (?P<hours>[\d.e+-]+) hours\n"
    r"expires: (?P<expires>\d{1,10}) \([^)\n]*\)\n"
    r"nonce: (?P<nonce>[0-9a-f]+)\n"
)


def signers_file(*, system: Path = SYSTEM_SIGNERS) -> Path:
    """Return where signers are listed: the machine's file if there is one, else the user's."""
    if system.is_file():
        return system
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "rlx" / "signers"


def has_signers(root: Path, *, signers: Path | None = None) -> bool:
    """Say whether somebody is listed who can sign."""
    file = signers or signers_file()
    return not any(_signers_problems(file, root))


def default_level(*, unattended: bool, has_signers: bool) -> ApprovalLevel:
    """Return the least approval that a new contract asks for."""
    return "signed" if unattended and has_signers else "asserted"


def asserted(statement: Statement, *, by: str) -> dict[str, Any]:
    """Return the fields of an asserted approval."""
    return {**statement.fields(), "level": "asserted", "by": by, "human": False}


def signed(statement: Statement, *, key: Path, root: Path, signers: Path | None = None) -> dict[str, Any]:
    """Sign a statement and return the event's fields; refused where the key is not one of the signers'."""
    file = signers or signers_file()
    for problem in _signers_problems(file, root):
        raise Refused(problem, hint=f"one line a signer in {SYSTEM_SIGNERS} or {file}: NAME ssh-ed25519 AAAA…")
    if not key.is_file():
        raise NotFound(f"no key `{key}`", hint="ssh-keygen -t ed25519-sk (with touch), or ssh-keygen -t ed25519")
    armoured = tools.ssh_sign(statement.text().encode(), key=key, namespace=NAMESPACE)
    who = tools.ssh_verify(statement.text().encode(), signature=armoured, signers=file, namespace=NAMESPACE)
    if who is None:
        raise Refused(f"`{key}` is not the key of a signer in {file}", hint="let its owner list it there")
    is_human = signatures.read(armoured).needs_touch
    return {**statement.fields(), "level": "signed", "by": who, "human": is_human, "signature": armoured}


def by_other_user(document: Path) -> dict[str, Any]:
    """Return the fields of the approval that another user wrote into a document of theirs."""
    path = document.absolute()
    for problem in _document_problems(path):
        raise Refused(problem, hint="another account writes it: rlx study approve --document FILE")
    try:
        statement = Statement.parse(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UsageError(f"{path} {error}", hint="rlx study approve --document FILE writes one") from None
    owner = pwd.getpwuid(path.stat().st_uid).pw_name
    return {**statement.fields(), "level": "other user", "by": owner, "human": True, "document": str(path)}


def strength(event: Fields) -> tuple[int, bool]:
    """Return how much an approval shows, to be compared: its level, then whether it is a human's."""
    level = event.get("level")
    return (APPROVAL_LEVELS.index(level) if level in APPROVAL_LEVELS else -1), bool(event.get("human"))


def problems(
    event: Fields,
    contract_sha256: str,
    *,
    now: float,
    minimum: ApprovalLevel,
    root: Path,
    signers: Path | None = None,
) -> tuple[str, ...]:
    """Return why an approval does not stand now, verified anew: contract, day, level, signature or document."""
    level = event.get("level")
    try:
        statement = Statement.read(event)
    except ValueError as error:
        return (f"the approval {error}",)
    if level not in APPROVAL_LEVELS:
        return (f"there is no approval level `{level}`",)
    found = []
    if statement.contract != contract_sha256:
        found.append("the contract is another than the one that was approved: one changed byte voids an approval")
    if not now < statement.expires:
        found.append(f"the approval expired at {datetime.fromtimestamp(statement.expires, tz=UTC):%Y-%m-%d %H:%M} UTC")
    if APPROVAL_LEVELS.index(level) < APPROVAL_LEVELS.index(minimum):
        found.append(f"the approval is {level}; the contract asks for {minimum}")
    return (*found, *unproven(event, root=root, signers=signers))


def unproven(event: Fields, *, root: Path, signers: Path | None = None) -> Iterator[str]:
    """Yield what an approval says of itself and cannot show: its signature, its document, that it is a human's."""
    level = event.get("level")
    try:
        statement = Statement.read(event)
    except ValueError as error:
        yield f"the approval {error}"
        return
    if level == "signed":
        yield from _signature_problems(event, statement, root, signers or signers_file())
    elif level == "other user":
        yield from _other_user_problems(event, statement)
    elif event.get("human"):
        yield "an asserted approval is never a human's"


def _signature_problems(event: Fields, statement: Statement, root: Path, file: Path) -> Iterator[str]:
    found = list(_signers_problems(file, root))
    yield from found
    armoured = event.get("signature")
    if found or not isinstance(armoured, str):
        yield from () if found else ("the approval says it is signed, and has no signature",)
        return
    who = tools.ssh_verify(statement.text().encode(), signature=armoured, signers=file, namespace=NAMESPACE)
    if who is None:
        yield f"the signature is not one of a signer in {file} over this contract, budget and day"
        return
    if who != event.get("by"):
        yield f"it was signed by {who}, not by {event.get('by')}"
    if event.get("human") and not signatures.read(armoured).needs_touch:
        yield "it is called human, and its key was not touched"


def _other_user_problems(event: Fields, statement: Statement) -> Iterator[str]:
    name = event.get("document")
    if not isinstance(name, str):
        yield "the approval says another user made it, and names no document"
        return
    found = list(_document_problems(Path(name)))
    yield from found
    if found:
        return
    if Path(name).read_text(encoding="utf-8", errors="replace") != statement.text():
        yield f"{name} approves something else"
    owner = pwd.getpwuid(Path(name).stat().st_uid).pw_name
    if owner != event.get("by"):
        yield f"{name} is {owner}'s, not {event.get('by')}'s"


def _document_problems(path: Path) -> Iterator[str]:
    """Yield why a document cannot be another user's word against the account that runs this."""
    uid = os.geteuid()
    try:
        status = path.lstat()
    except OSError:
        yield f"the approval document {path} is not there"
        return
    if not stat.S_ISREG(status.st_mode):
        yield f"{path} is not a plain file"
    elif uid == 0:
        yield "this account is root, which can write every other user's document"
    elif status.st_uid == uid:
        yield f"{path} is this account's own"
    elif os.access(path, os.W_OK):
        yield f"{path} can be written by this account"
    elif not os.access(path, os.R_OK):
        yield f"{path} cannot be read by this account"
    elif not _is_account(status.st_uid):
        yield f"{path} belongs to no account of this machine (uid {status.st_uid})"


def _is_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _signers_problems(file: Path, root: Path) -> Iterator[str]:
    place, project = file.resolve(), root.resolve()
    if place.is_relative_to(project):
        yield f"the signers file {file} lies inside the project, where jobs and agents write"
    elif not place.is_file():
        yield f"there is no signers file {file}"
    elif place.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield f"the signers file {file} can be written by other accounts"
    elif place.stat().st_uid not in (0, os.geteuid()):
        yield f"the signers file {file} belongs to another account"
    elif not [line for line in place.read_text(encoding="utf-8", errors="replace").splitlines() if _is_signer(line)]:
        yield f"the signers file {file} lists nobody"


def _is_signer(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def forgeable(level: ApprovalLevel, *, human: bool = False, signers: Path | None = None) -> tuple[str, ...]:
    """Say what an approval of this level does not rule out on this machine, for the screen and the report."""
    always = (
        "this account can patch rlx itself, and remove or rewrite the ledger as a whole (anchor its head elsewhere)"
    )
    if level == "asserted":
        return ("anyone on this account, an agent too, could have written this approval", always)
    if level == "other user":
        return ("whoever may become that user (sudo, mapped user ids) could have written it", always)
    file = signers or signers_file()
    own = f"this account decides what {file} lists; only {SYSTEM_SIGNERS}, owned by root, is out of its reach"
    listed = () if _is_out_of_reach(file) else (own,)
    touch = (
        () if human else ("a key without touch signs unattended where its passphrase is scripted or its agent open",)
    )
    return (*listed, *touch, always)


def _is_out_of_reach(file: Path) -> bool:
    """Say whether this account can neither write the machine's signers file nor put another in its place."""
    is_reachable = os.geteuid() == 0 or os.access(file, os.W_OK) or os.access(file.parent, os.W_OK)
    return file == SYSTEM_SIGNERS and file.exists() and not is_reachable
