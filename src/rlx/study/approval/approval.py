"""Approvals of a contract: made here, valid for its exact bytes until an expiry date, and verified at every launch.

Levels, weakest first:

- *asserted*: a row in the ledger. Anyone on this account could have written it.
- *signed*: an SSH signature by a key that a signers file outside the project lists.
- *other user*: a document that another account owns and that the launching account cannot write.

Only *other user*, or a signature whose key was touched, counts as human.

Not covered, if everything runs under one account: someone who can write the ledger can assert an approval. Someone who
can write the signers file, or set XDG_CONFIG_HOME, can list a key of their own (/etc/rlx/signers, owned by root, has
priority). A key without a passphrase, with a scripted one or in an unlocked agent signs unattended. Someone who can
become another user (sudo, containers that map user ids) can write that user's document. The same account can patch rlx.
Nothing revokes an approval: amend the contract, or let it expire. `forgery_risks` lists the risks that apply.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rlx import external_programs
from rlx.errors import NotFound, Refused, UsageError
from rlx.study.approval import ssh_signature
from rlx.study.contract.contract import APPROVAL_LEVELS, ApprovalLevel, Contract

NAMESPACE = "rlx-approval"
SYSTEM_SIGNERS = Path("/etc/rlx/signers")
SECONDS_PER_DAY = 86_400
LATEST = 10**10
"""The latest valid expiry, in the year 2286."""


class Fields(Protocol):
    """An `approved` event of the ledger: fields by name."""

    def get(self, name: str, /, default: Any = None) -> Any: ...


@dataclass(frozen=True)
class Statement:
    """The approved facts; `study` is `task/study`, `expires` is in whole seconds since the epoch.

    `folder` is the identity of the project's folder (see `folder_identity`). An approval without one holds nowhere.
    """

    study: str
    contract: str
    seeds: int
    hours: float
    expires: int
    nonce: str
    evaluator: str = ""
    folder: str = ""

    @classmethod
    def of(cls, contract: Contract, sha256: str, *, now: float, evaluator: str = "", folder: str = "") -> Statement:
        """Return the statement for a settled contract, valid from now for its `expires_days`."""
        if contract.budget is None or contract.automation is None:
            raise Refused("the contract is not settled: it has no budget or no automation", hint="rlx study show")
        return cls(
            study=f"{contract.task}/{contract.study}",
            contract=sha256,
            seeds=contract.budget.seeds,
            hours=contract.budget.hours,
            expires=int(now + contract.automation.expires_days * SECONDS_PER_DAY),
            nonce=secrets.token_hex(16),
            evaluator=evaluator,
            folder=folder,
        )

    @classmethod
    def read(cls, event: Fields) -> Statement:
        """Read the statement of an event; raise `ValueError` if it is incomplete."""
        texts = {name: event.get(name) or "" for name in ("study", "contract", "nonce", "evaluator", "folder")}
        seeds, hours, expires = (event.get(name) for name in ("seeds", "hours", "expires"))
        is_text = all(isinstance(text, str) and "\n" not in text for text in texts.values())
        if not is_text or not isinstance(seeds, int) or not isinstance(hours, (int, float)):
            raise ValueError("does not name the approved contract and budget")
        if not isinstance(expires, (int, float)) or not 0 < expires < LATEST or int(expires) != expires:
            raise ValueError("has no valid expiry date")
        return cls(**texts, seeds=seeds, hours=float(hours), expires=int(expires))

    @classmethod
    def parse(cls, text: str) -> Statement:
        """Read the text of an approval document; raise `ValueError` if it is not one."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError("is not an approval as rlx writes it")
        parsed = cls(
            study=match["study"],
            contract=match["contract"],
            seeds=int(match["seeds"]),
            hours=float(match["hours"]),
            expires=int(match["expires"]),
            nonce=match["nonce"],
            evaluator=match["evaluator"].removeprefix("none"),
            folder=match["folder"] or "",
        )
        if parsed.text() != text:
            raise ValueError("is not an approval as rlx writes it")
        return parsed

    def text(self) -> str:
        """Return the text that is signed or written into a document."""
        until = datetime.fromtimestamp(self.expires, tz=UTC).isoformat()
        folder = ""
        if self.folder:
            folder = f"folder: {self.folder}\n"
        return (
            "rlx approval 1\n"
            f"study: {self.study}\n"
            f"contract: {self.contract}\n"
            f"evaluator: {self.evaluator or 'none'}\n"
            f"budget: {self.seeds} seeds, {float(self.hours)} hours\n"
            f"expires: {self.expires} ({until})\n"
            f"nonce: {self.nonce}\n"
            f"{folder}"
        )

    def fields(self) -> dict[str, Any]:
        return asdict(self)


_FORM = re.compile(
    r"rlx approval 1\n"
    r"study: (?P<study>\S+)\n"
    r"contract: (?P<contract>[0-9a-f]{64})\n"
    r"evaluator: (?P<evaluator>none|[0-9a-f]+)\n"
    r"budget: (?P<seeds>\d+) seeds, (?P<hours>[\d.e+-]+) hours\n"
    r"expires: (?P<expires>\d{1,10}) \([^)\n]*\)\n"
    r"nonce: (?P<nonce>[0-9a-f]+)\n"
    r"(?:folder: (?P<folder>[0-9a-f.]+)\n)?"
)


def signers_file(*, system: Path = SYSTEM_SIGNERS) -> Path:
    """Return the file that lists signers: the machine's if there is one, else the user's."""
    if system.is_file():
        return system
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "rlx" / "signers"


def has_signers(root: Path, *, signers: Path | None = None) -> bool:
    """Return whether the signers file lists anybody."""
    file = signers or signers_file()
    return not any(_signers_problems(file, root))


def default_level(*, unattended: bool, has_signers: bool) -> ApprovalLevel:
    """Return the minimum approval level of a new contract."""
    if unattended and has_signers:
        return "signed"
    return "asserted"


def assert_approval(statement: Statement, *, by: str) -> dict[str, Any]:
    """Return the fields of an asserted approval."""
    return {**statement.fields(), "level": "asserted", "by": by, "human": False}


def sign_approval(statement: Statement, *, key: Path, root: Path, signers: Path | None = None) -> dict[str, Any]:
    """Sign a statement and return the event's fields; refused if the key does not belong to a signer."""
    file = signers or signers_file()
    for problem in _signers_problems(file, root):
        raise Refused(problem, hint=f"one line per signer in {SYSTEM_SIGNERS} or {file}: NAME ssh-ed25519 AAAA…")
    if not key.is_file():
        raise NotFound(f"no key `{key}`", hint="ssh-keygen -t ed25519-sk (with touch), or ssh-keygen -t ed25519")
    armoured = external_programs.ssh_sign(statement.text().encode(), key=key, namespace=NAMESPACE)
    who = external_programs.ssh_verify(statement.text().encode(), signature=armoured, signers=file, namespace=NAMESPACE)
    if who is None:
        raise Refused(f"`{key}` is not the key of a signer in {file}", hint="let its owner list it there")
    is_human = ssh_signature.read(armoured).needs_touch
    return {**statement.fields(), "level": "signed", "by": who, "human": is_human, "signature": armoured}


def read_approval_document(document: Path) -> dict[str, Any]:
    """Return the fields of an approval document that another user owns."""
    path = document.absolute()
    for problem in _document_problems(path):
        raise Refused(problem, hint="another account must write it: rlx study approve --document FILE")
    try:
        statement = Statement.parse(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UsageError(f"{path} {error}", hint="rlx study approve --document FILE writes one") from None
    owner = pwd.getpwuid(path.stat().st_uid).pw_name
    return {**statement.fields(), "level": "other user", "by": owner, "human": True, "document": str(path)}


def strength(event: Fields) -> tuple[int, bool]:
    """Return the strength of an approval for comparison: its level, then whether it is a human's."""
    ranks = {level: rank for rank, level in enumerate(APPROVAL_LEVELS)}
    return ranks.get(event.get("level"), -1), bool(event.get("human"))


def problems(
    event: Fields,
    contract_sha256: str,
    *,
    now: float,
    minimum: ApprovalLevel,
    root: Path,
    signers: Path | None = None,
) -> tuple[str, ...]:
    """Return why an approval is not valid now: contract, expiry, level, signature or document, all checked again."""
    level = event.get("level")
    try:
        statement = Statement.read(event)
    except ValueError as error:
        return (f"the approval {error}",)
    if level not in APPROVAL_LEVELS:
        return (f"unknown approval level `{level}`",)
    invalid = []
    if statement.contract != contract_sha256:
        invalid.append("the contract has changed since it was approved; any change voids an approval")
    if not now < statement.expires:
        invalid.append(
            f"the approval expired at {datetime.fromtimestamp(statement.expires, tz=UTC):%Y-%m-%d %H:%M} UTC"
        )
    if APPROVAL_LEVELS.index(level) < APPROVAL_LEVELS.index(minimum):
        invalid.append(f"the approval is {level}; the contract requires {minimum}")
    return (*invalid, *proof_problems(event, root=root, signers=signers))


def proof_problems(event: Fields, *, root: Path, signers: Path | None = None) -> Iterator[str]:
    """Yield the claims of an approval that cannot be verified: its signature, its document, that it is human."""
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
        yield "an asserted approval never counts as human"


def _signature_problems(event: Fields, statement: Statement, root: Path, file: Path) -> Iterator[str]:
    signers_problems = list(_signers_problems(file, root))
    if signers_problems:
        yield from signers_problems
        return
    armoured = event.get("signature")
    if not isinstance(armoured, str):
        yield "the approval claims to be signed, but has no signature"
        return
    who = external_programs.ssh_verify(statement.text().encode(), signature=armoured, signers=file, namespace=NAMESPACE)
    if who is None:
        yield f"no signer in {file} made this signature for this contract, budget and expiry"
        return
    if who != event.get("by"):
        yield f"{who} signed it, not {event.get('by')}"
    if event.get("human") and not ssh_signature.read(armoured).needs_touch:
        yield "it claims to be human, but its key was not touched"


def _other_user_problems(event: Fields, statement: Statement) -> Iterator[str]:
    name = event.get("document")
    if not isinstance(name, str):
        yield "the approval claims to be another user's, but names no document"
        return
    document_problems = list(_document_problems(Path(name)))
    if document_problems:
        yield from document_problems
        return
    if Path(name).read_text(encoding="utf-8", errors="replace") != statement.text():
        yield f"{name} approves something else"
    owner = pwd.getpwuid(Path(name).stat().st_uid).pw_name
    if owner != event.get("by"):
        yield f"{name} belongs to {owner}, not to {event.get('by')}"


def _document_problems(path: Path) -> Iterator[str]:
    """Yield why a document does not count as another user's approval on this account."""
    uid = os.geteuid()
    try:
        status = path.lstat()
    except OSError:
        yield f"the approval document {path} does not exist"
        return
    if not stat.S_ISREG(status.st_mode):
        yield f"{path} is not a regular file"
    elif uid == 0:
        yield "this account is root, which can write every other user's document"
    elif status.st_uid == uid:
        yield f"{path} belongs to this account"
    elif os.access(path, os.W_OK):
        yield f"this account can write {path}"
    elif not os.access(path, os.R_OK):
        yield f"this account cannot read {path}"
    elif not _is_account(status.st_uid):
        yield f"the owner of {path} (uid {status.st_uid}) is not an account of this machine"


def _is_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _signers_problems(file: Path, root: Path) -> Iterator[str]:
    place = file.resolve()
    if place.is_relative_to(root.resolve()):
        yield f"the signers file {file} is inside the project, where jobs and agents can write"
    elif not place.is_file():
        yield f"the signers file {file} does not exist"
    elif place.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield f"other accounts can write the signers file {file}"
    elif place.stat().st_uid not in (0, os.geteuid()):
        yield f"the signers file {file} belongs to another account"
    else:
        lines = [line.strip() for line in place.read_text(encoding="utf-8", errors="replace").splitlines()]
        if all(not line or line.startswith("#") for line in lines):
            yield f"the signers file {file} is empty"


def forgery_risks(level: ApprovalLevel, *, human: bool = False, signers: Path | None = None) -> tuple[str, ...]:
    """Return what an approval of this level does not rule out on this machine, for the contract view and the report."""
    always = "this account can patch rlx, and delete or rewrite the whole ledger (anchor its head elsewhere)"
    if level == "asserted":
        return ("anyone on this account, also an agent, could have written this approval", always)
    if level == "other user":
        return ("anyone who can become that user (sudo, mapped user ids) could have written it", always)
    file = signers or signers_file()
    risks = []
    if not _is_out_of_reach(file):
        risks.append(f"this account can edit {file}; only {SYSTEM_SIGNERS}, owned by root, is out of its reach")
    if not human:
        risks.append("a key without touch can sign unattended if its passphrase is scripted or its agent is unlocked")
    return (*risks, always)


def _is_out_of_reach(file: Path) -> bool:
    """Return whether this account can neither write nor replace the machine's signers file."""
    is_reachable = os.geteuid() == 0 or os.access(file, os.W_OK) or os.access(file.parent, os.W_OK)
    return file == SYSTEM_SIGNERS and file.exists() and not is_reachable
