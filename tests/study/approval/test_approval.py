"""Approvals with real keys and real accounts: what stands, and every way in which it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.errors import NotFound, Refused, UsageError
from rlx.study.approval import approval, ssh_signature
from rlx.study.approval.approval import NAMESPACE, Statement
from rlx.study.contract.contract import Contract
from tests.study.keys import SecurityKey

NOW = 1_800_000_000.0
SHA = "ab" * 32
has_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="NO ssh-keygen HERE: signatures are not tested")
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT HERE: approvals by another user are not tested")
NOBODY = 65534


def contract() -> Contract:
    budget = {"seeds": 60, "hours": 4, "per_seed_minutes": 5}
    return Contract.model_validate({"study": "first", "task": "lift", "budget": budget, "automation": {}})


def statement(**changes: Any) -> Statement:
    made = Statement.of(contract(), SHA, now=NOW, evaluator="cd" * 32)
    return Statement(**{**made.fields(), **changes})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


class Signer:
    """A key pair and the file that lists it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.key, self.signers = folder / "key", folder / "signers"
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.key), *options]
        subprocess.run(argv, check=True)
        self.signers.write_text(f"ada {(folder / 'key.pub').read_text()}")
        self.signers.chmod(0o600)


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def found(event: dict[str, Any], root: Path, signers: Path | None = None, **changes: Any) -> tuple[str, ...]:
    given = {"contract_sha256": SHA, "now": NOW, "minimum": "asserted", **changes}
    return approval.problems(event, root=root, signers=signers, **given)


def as_nobody(tell: Callable[[], str]) -> str:
    """Return what a function says in a process of another account's; an error by its text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = tell()
        except BaseException as error:
            said = str(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


class TestAsserted:
    """The weakest: it stands for its contract until its day, and is never counts as human."""

    def test_it_stands(self, root: Path) -> None:
        event = approval.assert_approval(statement(), by="ada")
        assert found(event, root) == ()
        assert event["human"] is False
        assert event["expires"] == NOW + 7 * 86_400

    def test_one_changed_byte_of_the_contract_voids_it(self, root: Path) -> None:
        event = approval.assert_approval(statement(), by="ada")
        assert "voids an approval" in found(event, root, contract_sha256="ac" + SHA[2:])[0]

    def test_it_expires(self, root: Path) -> None:
        event = approval.assert_approval(statement(), by="ada")
        assert found(event, root, now=event["expires"] - 1.0) == ()
        assert "expired at" in found(event, root, now=float(event["expires"]))[0]

    @pytest.mark.parametrize("minimum", ["signed", "other user"])
    def test_it_is_too_weak_where_more_is_asked_for(self, root: Path, minimum: str) -> None:
        event = approval.assert_approval(statement(), by="ada")
        assert found(event, root, minimum=minimum) == (f"the approval is asserted; the contract requires {minimum}",)

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"human": True}, "never counts as human"),
            ({"level": "signed"}, "does not exist"),
            ({"level": "other user"}, "names no document"),
            ({"level": "root"}, "unknown approval level"),
            ({"level": None}, "unknown approval level"),
            ({"expires": float("inf")}, "expiry"),
            ({"expires": float("nan")}, "expiry"),
            ({"expires": 10**12}, "expiry"),
            ({"expires": None}, "expiry"),
            ({"seeds": "many"}, "does not name the approved"),
            ({"nonce": "a\nb"}, "does not name the approved"),
        ],
    )
    def test_it_cannot_be_made_more(self, root: Path, change: dict[str, Any], says: str) -> None:
        event = {**approval.assert_approval(statement(), by="ada"), **change}
        assert any(says in line for line in found(event, root, root.parent / "none")), change

    def test_all_reasons_are_told(self, root: Path) -> None:
        event = {**approval.assert_approval(statement(), by="ada"), "human": True}
        assert len(found(event, root, contract_sha256="0" * 64, now=NOW * 2, minimum="signed")) == 4

    def test_a_contract_that_is_not_settled_cannot_be_approved(self) -> None:
        with pytest.raises(Refused, match="not settled"):
            Statement.of(Contract(study="a", task="b"), SHA, now=NOW)

    def test_every_approval_has_a_nonce_of_its_own(self) -> None:
        assert statement().nonce != statement().nonce


@has_ssh
class TestSigned:
    """A signature by a listed key over contract, budget, day and nonce."""

    def test_it_stands(self, root: Path, signer: Signer) -> None:
        event = approval.sign_approval(statement(), key=signer.key, root=root, signers=signer.signers)
        assert (event["level"], event["by"], event["human"]) == ("signed", "ada", False)
        assert found(event, root, signer.signers, minimum="signed") == ()
        again = json.loads(json.dumps(event))
        assert found(again, root, signer.signers, minimum="signed") == ()

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("contract", "cc" * 32),
            ("seeds", 61),
            ("hours", 4.0001),
            ("expires", int(NOW) + 9_000_000),
            ("nonce", "00"),
            ("study", "lift/second"),
            ("evaluator", "ee" * 32),
        ],
    )
    def test_any_altered_term_breaks_it(self, root: Path, signer: Signer, field: str, value: object) -> None:
        event = approval.sign_approval(statement(), key=signer.key, root=root, signers=signer.signers)
        sha = str(value) if field == "contract" else SHA
        told = found({**event, field: value}, root, signer.signers, contract_sha256=sha)
        assert told
        assert "no signer in" in told[0]

    def test_a_key_that_is_not_listed_is_refused_and_does_not_stand(
        self, root: Path, signer: Signer, tmp_path: Path
    ) -> None:
        (tmp_path / "other").mkdir()
        stranger = Signer(tmp_path / "other")
        with pytest.raises(Refused, match="is not the key of a signer"):
            approval.sign_approval(statement(), key=stranger.key, root=root, signers=signer.signers)
        event = approval.sign_approval(statement(), key=stranger.key, root=root, signers=stranger.signers)
        assert "no signer in" in found(event, root, signer.signers)[0]

    def test_a_signer_who_is_struck_off_no_longer_counts(self, root: Path, signer: Signer) -> None:
        event = approval.sign_approval(statement(), key=signer.key, root=root, signers=signer.signers)
        signer.signers.write_text("# nobody\n\n")
        assert "is empty" in found(event, root, signer.signers)[0]
        signer.signers.unlink()
        assert "does not exist" in found(event, root, signer.signers)[0]

    def test_a_signature_for_another_purpose_does_not_count(self, root: Path, signer: Signer) -> None:
        from rlx import external_programs

        said = statement()
        armoured = external_programs.ssh_sign(said.text().encode(), key=signer.key, namespace="git")
        event = {**said.fields(), "level": "signed", "by": "ada", "human": False, "signature": armoured}
        assert "no signer in" in found(event, root, signer.signers)[0]

    @pytest.mark.parametrize("armoured", [None, "", "nonsense", "-----BEGIN SSH SIGNATURE-----\n"])
    def test_no_signature_is_none(self, root: Path, signer: Signer, armoured: str | None) -> None:
        event = {**statement().fields(), "level": "signed", "by": "ada", "human": False, "signature": armoured}
        assert found(event, root, signer.signers)

    def test_it_cannot_be_called_human_nor_anothers(self, root: Path, signer: Signer) -> None:
        event = approval.sign_approval(statement(), key=signer.key, root=root, signers=signer.signers)
        assert "was not touched" in found({**event, "human": True}, root, signer.signers)[0]
        assert "ada signed it, not eve" in found({**event, "by": "eve"}, root, signer.signers)[0]

    def test_a_signers_file_inside_the_project_is_refused(self, root: Path, signer: Signer) -> None:
        inside = root / "signers"
        inside.write_bytes(signer.signers.read_bytes())
        with pytest.raises(Refused, match="is inside the project"):
            approval.sign_approval(statement(), key=signer.key, root=root, signers=inside)
        event = approval.sign_approval(statement(), key=signer.key, root=root, signers=signer.signers)
        assert "is inside the project" in found(event, root, inside)[0]
        link = root.parent / "link"
        link.symlink_to(inside)
        assert "is inside the project" in found(event, root, link)[0]

    def test_a_signers_file_that_others_may_write_is_refused(self, root: Path, signer: Signer) -> None:
        event = approval.sign_approval(statement(), key=signer.key, root=root, signers=signer.signers)
        signer.signers.chmod(0o666)
        assert "other accounts can write" in found(event, root, signer.signers)[0]

    def test_a_key_with_a_passphrase_does_not_sign_unattended(
        self, root: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        locked = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a secret", "-f", str(signer.key)]
        subprocess.run(locked, check=True)
        script = (
            "import sys; from pathlib import Path; from rlx import external_programs as tools\n"
            f"tools.ssh_sign(b'x', key=Path({str(signer.key)!r}), namespace='rlx-approval')"
        )
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("SSH_", "DISPLAY"))}
        done = subprocess.run(
            [sys.executable, "-c", script], env=plain, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            start_new_session=True, timeout=60,
        )  # fmt: skip
        assert done.returncode != 0
        assert "did not sign" in done.stderr

    def test_a_key_that_is_not_there_says_how_one_is_made(self, root: Path, signer: Signer) -> None:
        with pytest.raises(NotFound, match="no key") as caught:
            approval.sign_approval(statement(), key=root / "none", root=root, signers=signer.signers)
        assert "ed25519-sk" in str(caught.value.hint)


@has_ssh
class TestTouched:
    """A security key's signature is human where the key says that it was touched."""

    def event(self, tmp_path: Path, *, is_touched: bool) -> tuple[dict[str, Any], Path]:
        key, said = SecurityKey(), statement()
        signers = tmp_path / "signers"
        signers.write_text(f'ada namespaces="{NAMESPACE}" {key.line}\n')
        signers.chmod(0o600)
        armoured = key.sign(said.text().encode(), namespace=NAMESPACE, is_touched=is_touched)
        fields = {"level": "signed", "by": "ada", "human": True, "signature": armoured}
        return {**said.fields(), **fields}, signers

    def test_a_touched_key_is_human(self, root: Path, tmp_path: Path) -> None:
        event, signers = self.event(tmp_path, is_touched=True)
        assert found(event, root, signers, minimum="signed") == ()
        made = ssh_signature.read(event["signature"])
        assert made.needs_touch
        assert made.key == "sk-ssh-ed25519@openssh.com"

    def test_an_untouched_one_is_not(self, root: Path, tmp_path: Path) -> None:
        event, signers = self.event(tmp_path, is_touched=False)
        assert any("was not touched" in line or "no signer in" in line for line in found(event, root, signers))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN SSH SIGNATURE-----\n!!\n-----END SSH SIGNATURE-----",
        "-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----",
        "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAf////8=\n-----END SSH SIGNATURE-----",
    ],
)
def test_what_is_no_signature_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="SSH signature"):
        ssh_signature.read(text)


class TestOtherUser:
    """A document that another account owns."""

    @pytest.fixture
    def document(self) -> Any:
        """A folder that every account can reach, as a shared one would be."""
        folder = Path("/var/tmp") / f"rlx-approval-{os.getpid()}"
        folder.mkdir(mode=0o755)
        path = folder / "approval.txt"
        path.write_text(statement().text())
        path.chmod(0o644)
        yield path
        shutil.rmtree(folder)

    @is_root
    def test_it_stands_for_somebody_who_cannot_write_it(self, document: Path) -> None:
        assert as_nobody(lambda: self.judged(document)) == "other user by root, human True: ()"

    @is_root
    def test_it_does_not_for_who_can_write_it(self, document: Path) -> None:
        document.chmod(0o666)
        assert "this account can write" in as_nobody(lambda: self.judged(document))
        os.chown(document, NOBODY, NOBODY)
        assert "belongs to this account" in as_nobody(lambda: self.judged(document))
        os.chown(document, 0, 0)
        document.chmod(0o600)
        assert "this account cannot read" in as_nobody(lambda: self.judged(document))

    def judged(self, document: Path) -> str:
        event = approval.read_approval_document(document)
        told = found(event, document.parent / "project", minimum="other user")
        return f"{event['level']} by {event['by']}, human {event['human']}: {told}"

    @is_root
    def test_root_cannot_be_bound_by_it(self, document: Path) -> None:
        os.chown(document, NOBODY, NOBODY)
        with pytest.raises(Refused, match="this account is root"):
            approval.read_approval_document(document)

    def test_an_account_that_does_not_exist_is_nobodys_word(
        self, document: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
        assert approval.read_approval_document(document)["by"] == "root"
        monkeypatch.setattr(approval, "_is_account", lambda uid: False)
        with pytest.raises(Refused, match="is not an account"):
            approval.read_approval_document(document)

    def test_another_text_or_owner_does_not_stand(self, document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
        event = approval.read_approval_document(document)
        assert found(event, document.parent / "project", minimum="other user") == ()
        assert "not to eve" in found({**event, "by": "eve"}, document.parent / "p")[0]
        assert "approves something else" in found({**event, "seeds": 600}, document.parent / "p")[0]
        document.unlink()
        assert "does not exist" in found(event, document.parent / "p")[0]
        document.symlink_to("/etc/hostname")
        assert "is not a regular file" in found(event, document.parent / "p")[0]
        document.unlink()
        document.write_text("rlx approval 1\n")
        with pytest.raises(UsageError, match="is not an approval"):
            approval.read_approval_document(document)

    def test_a_document_reads_back(self) -> None:
        said = statement(hours=0.1 + 0.2)
        assert Statement.parse(said.text()) == said
        bare = statement(evaluator="")
        assert Statement.parse(bare.text()) == bare
        for bad in (said.text() + "\n", said.text().replace("seeds", "sides"), said.text().replace("(2", "(3")):
            with pytest.raises(ValueError, match="is not an approval"):
                Statement.parse(bad)


def test_signers_are_listed_by_the_machine_or_by_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    system = tmp_path / "etc" / "signers"
    assert approval.signers_file(system=system) == tmp_path / "config" / "rlx" / "signers"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert approval.signers_file(system=system).parts[-3:] == (".config", "rlx", "signers")
    system.parent.mkdir()
    system.write_text("ada ssh-ed25519 AAAA\n")
    assert approval.signers_file(system=system) == system


def test_an_unattended_study_asks_for_a_signature_where_somebody_can_sign(tmp_path: Path) -> None:
    file = tmp_path / "signers"
    project = tmp_path / "project"
    assert not approval.has_signers(project, signers=file)
    file.write_text("ada ssh-ed25519 AAAA\n")
    file.chmod(0o600)
    assert approval.has_signers(project, signers=file)
    assert approval.default_level(unattended=True, has_signers=True) == "signed"
    assert approval.default_level(unattended=True, has_signers=False) == "asserted"
    assert approval.default_level(unattended=False, has_signers=True) == "asserted"


def test_what_stays_forgeable_is_said_plainly(tmp_path: Path) -> None:
    file = tmp_path / "signers"
    assert "also an agent" in approval.forgery_risks("asserted")[0]
    assert any("can edit" in line for line in approval.forgery_risks("signed", signers=file))
    assert any("without touch" in line for line in approval.forgery_risks("signed", signers=file))
    assert not any("without touch" in line for line in approval.forgery_risks("signed", human=True, signers=file))
    assert "sudo" in approval.forgery_risks("other user")[0]
    assert all("patch rlx" in approval.forgery_risks(level)[-1] for level in ("asserted", "signed", "other user"))
