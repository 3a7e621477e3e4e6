"""The example studies run as they stand, from the first command to the last, and what they end with is evidence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli.format import figure, interval, signed

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = ("task new", "study new", "check contract", "study rehearse", "study approve", "study baseline", "next",
         "propose", "check candidate", "launch", "wait", "verdict", "decide", "study report", "study verify",
         "study audit")  # fmt: skip
QUESTIONS = ("What was asked?", "What changed?", "How large is the gain?", "How sure is it?", "What did it cost?",
             "What did not work?")  # fmt: skip
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def rlx(root: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "rlx", *words, "--json"], cwd=root, capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("script", "level"), [("cartpole/study.sh", "sealed"), ("existing_repo/govern.sh", "pinned")]
)  # fmt: skip
def test_a_study_runs_from_its_script_and_ends_in_evidence(tmp_path: Path, script: str, level: str) -> None:
    lab = tmp_path / "lab"
    place = {name: value for name, value in os.environ.items() if name != "RLX_ROOT"}
    done = subprocess.run(
        ["bash", str(EXAMPLES / script), str(lab), sys.executable], env=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    typed = [line.removeprefix("$ rlx ") for line in done.stderr.splitlines() if line.startswith("$ rlx ")]
    places = [next(place for place, line in enumerate(typed) if line.startswith(step)) for step in STEPS]
    assert places == sorted(places), typed

    report = rlx(lab, "study", "report")
    (decided,) = [row for row in report["rows"] if row["candidate"] == "c001"]
    assert decided["status"] in ("confirmed", "advanced", "rejected")
    assert (report["incumbent"] == "c001") == (decided["status"] == "confirmed")
    assert report["level"] == level
    assert report["enforced"] == "landlock"
    if decided["status"] == "confirmed":
        assert len(decided["claimed"]) == 10
        assert decided["interval"][0] > 0
        assert decided["p"] <= 0.05
    text = (lab / report["file"]).read_text()
    answers = {row["question"]: row["answer"] for row in report["answers"]}
    assert all(f"**{question}** {answers[question]}" in text for question in QUESTIONS)
    (failed,) = [row for row in report["rows"] if row["candidate"] == "c002"]
    assert failed["status"] == "rejected"
    assert answers["What did not work?"].startswith("c002 (")
    assert text.splitlines()[2] == "Integrity: the ledger is sound and every score agrees with its file."
    assert "![every candidate, its interval, the head and the incumbent](report.png)" in text.splitlines()
    assert (lab / report["picture"]).read_bytes().startswith(b"\x89PNG")
    links = [part.split(")")[0] for part in text.split("](")[1:] if not part.startswith("#")]
    assert links
    assert all((lab / report["file"]).with_name(link.split("/")[0]).exists() for link in links)
    assert rlx(lab, "study", "verify")["problems"] == []
    page = Path(rlx(lab, "report", report["study"], "--html", "mail.html")["file"])
    _check_mail((lab / page).read_text(), report, rlx(lab, "study", "verify"))
    audit = rlx(lab, "study", "audit")
    assert audit["is_sound"]
    assert audit["anchor"]


def _check_mail(page: str, report: dict[str, Any], verified: dict[str, Any]) -> None:
    """Check that the page holds every number of the report, says what was verified, and loads nothing."""
    assert len(page.encode()) < 5_000_000
    assert "default-src 'none'" in unescape(page)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    shown = unescape(re.sub(r"<[^>]*>", " ", page))
    for row in report["answers"]:
        assert row["answer"] in shown
    for row in report["rows"]:
        figures = [figure(row["score"]), figure(row["p"])]
        if row["effect"] is not None:
            figures += [signed(row["effect"]), interval(row["interval"], signed)]
        for text in figures:
            assert text in shown, (row["candidate"], text)
    for what, count in verified["checked"].items():
        assert f"{count} {what}" in shown
