"""A lab with its study and a sweep through dashboard and report: the figures are those of the CLI's JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from unittest import mock

import pytest

from bench.rig.browser import Tab
from rlx.errors import Refused
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import figure, signed
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.try_attempt import LabIdea, try_attempt
from tests.conftest import Project
from tests.hosts.ui.conftest import Dashboard, serving
from tests.hosts.ui.screen import needs_chromium, problems_on_all_screens, requests
from tests.loop.lab.lab_project import RIGHT, WRONG, edit, press_lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SPACE = ("-p", "algo.learning_rate=log:1e-4:1e-2", "-p", "algo.gamma=0.9,0.98,0.99")
SIZE = ("--trials", "3", "--race", "2", "--confirm", "10")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab in which one idea was kept and one refused, and a sweep whose winner was trained on fresh seeds."""
    lab = press_lab(tmp_path_factory.mktemp("searched"), ladder=((8, 2),))
    with mock.patch.dict(os.environ, {"RLX_ROOT": str(lab.root)}):
        edit(lab, "candidate/env.py", WRONG, RIGHT)
        idea = LabIdea("pay for the right button", predicts=16.0)
        assert try_attempt(lab, lab.root, idea, say=lambda _: None).status == "keep"
        with pytest.raises(Refused):
            try_attempt(lab, lab.root, LabIdea("the same again"), say=lambda _: None)
        project = Project(lab.root)
        project.rlx("sweep", project.config(), *SPACE, *SIZE, "--name", "rates")
        yield lab


@pytest.fixture(scope="module")
def served(lab: Lab) -> Iterator[Dashboard]:
    with serving(lab.root) as dashboard:
        yield dashboard


def study_address(lab: Lab) -> str:
    return f"/study/{lab.study.task_name}/{lab.study.name}"


@needs_chromium
@pytest.mark.parametrize("path", ["/lab", "/studies", "study", "/sweeps", "/sweep/rates", "/machine", "/"])
def test_pages_with_results_can_be_read_on_every_screen(lab: Lab, served: Dashboard, tab: Tab, path: str) -> None:
    address = study_address(lab) if path == "study" else path
    assert problems_on_all_screens(tab, served.origin + address) == []


def test_the_study_page_has_the_figures_of_status_and_log(lab: Lab, served: Dashboard) -> None:
    text = served.page(study_address(lab))
    status = document("status", lab.study.full_name)
    assert f"{status['spent']['seeds']} of " in text
    assert escape(document("next", lab.study.full_name)["command"]) in text
    rows = document("study", "log", lab.study.full_name)["rows"]
    for row in status["candidates"]:
        assert signed(row["effect"]) in text
        assert figure(row["p"]) in text
    assert all(figure(row["score"]) in text for row in rows if row.get("score") is not None)


def test_a_number_of_a_study_leads_to_its_line_and_its_file(lab: Lab, served: Dashboard) -> None:
    text = served.page(study_address(lab))
    lines = [unescape(found) for found in re.findall(r'href="([^"]+ledger.jsonl#L\d+)"', text)]
    for address in lines[:5]:
        path, _, mark = address.partition("#")
        assert f'id="{mark}"' in served.page(path)
    evidence = unescape(re.findall(r'href="(/study/[^"]+path=evidence[^"]+)"', text)[0])
    assert "return" in served.page(evidence)


def test_the_sweep_page_has_the_figures_of_show(served: Dashboard) -> None:
    text = served.page("/sweep/rates")
    found = document("sweep", "show", "rates")
    for trial in found["trials"]:
        assert figure(trial["score"]) in text
        assert f'href="/run/{trial["run"]}"' in text
    assert escape(found["confirmation"]["line"]) in text
    assert signed(found["confirmation"]["optimism"]) in text


@needs_chromium
def test_reports_of_a_study_a_lab_and_a_sweep_open_without_a_request(lab: Lab, tmp_path: Path) -> None:
    project = Project(lab.root)
    texts = {}
    for subject in (lab.study.name, lab.name, "rates"):
        out = tmp_path / f"{subject}.html"
        project.rlx("report", subject, "--html", str(out))
        assert out.stat().st_size < 5_000_000
        asked, texts[subject] = requests(out.as_uri(), tmp_path / subject)
        assert asked == set()
        assert "What did not work" in texts[subject]
    study = texts[lab.study.name]
    checked = document("study", "verify", lab.study.full_name)
    assert checked["problems"] == []
    for what, count in checked["checked"].items():
        assert f"{count} {what}" in study
    written = document("study", "report", lab.study.full_name)
    for row in written["rows"]:
        assert figure(row["score"]) in study
        assert row["effect"] is None or signed(row["effect"]) in study
    assert "Learning curves" in study
