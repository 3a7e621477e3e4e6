"""Trained runs through every face: dashboard, report, replay, explanation and notebook show the figures of the CLI."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from bench.rig.browser import Tab
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import figure, signed
from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import Run
from tests.conftest import Project, wait_until
from tests.hosts.ui.conftest import TOKEN, Dashboard, serving
from tests.hosts.ui.screen import audit, browse, look, needs_chromium, problems_on_all_screens, requests

ATTACK = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Two configs of two seeds each, with evaluations."""
    root = tmp_path_factory.mktemp("trained")
    (root / "rlx.toml").touch()
    project = Project(root)
    for name, rate in (("quick", 1e-2), ("slow", 1e-5)):
        project.rlx("train", project.config(name, algo={"learning_rate": rate}), "--seeds", "2")
    before = os.environ.get("RLX_ROOT")
    os.environ["RLX_ROOT"] = str(root)
    yield project
    del os.environ["RLX_ROOT"]
    if before is not None:
        os.environ["RLX_ROOT"] = before


@pytest.fixture(scope="module")
def served(trained: Project) -> Iterator[Dashboard]:
    with serving(trained.root) as dashboard:
        yield dashboard


# Dashboard


def test_the_comparison_shows_the_verdict_of_compare_first(served: Dashboard) -> None:
    comparison = document("compare", "quick_001", "slow_001")
    candidate = comparison["candidates"][0]
    text = served.page("/compare?run=quick_001&run=slow_001")
    assert f'class="verdict {candidate["verdict"]}"' in text
    assert escape(candidate["reason"]) in text
    assert escape(candidate["settle"]) in text
    assert signed(candidate["leaning"]) in text
    for side in comparison["runs"]:
        assert all(figure(score) in text for score in side["seeds"].values())
    assert text.index('class="verdict') < text.index("Curves") < text.index("Scores per seed")


def test_one_can_click_from_a_run_to_the_file_behind_a_score(served: Dashboard) -> None:
    assert 'href="/run/quick_001"' in served.page("/")
    compare = served.page("/compare?run=quick_001&run=slow_001")
    target = unescape(re.findall(r'href="(/run/slow_001/file[^"]+)"', compare)[0])
    score = document("compare", "quick_001", "slow_001")["runs"][1]["seeds"]["0"]
    assert f"{score}" in served.page(target).replace(",", "")
    episodes = re.findall(r'href="(/run/quick_001/episodes[^"]+)"', served.page("/run/quick_001"))
    assert "terminated" in served.page(unescape(episodes[-1]))


@needs_chromium
@pytest.mark.parametrize(
    "path",
    ["/", "/?group=1", "/run/quick_001", "/compare?run=quick_001&run=slow_001", "/plot?run=quick_001&run=slow_001",
     "/run/quick_001/files", "/run/quick_001/replay", "/studies", "/sweeps", "/machine", "/run/nothing"],
)  # fmt: skip
def test_pages_can_be_read_on_a_desk_and_on_a_phone_in_both_themes(served: Dashboard, tab: Tab, path: str) -> None:
    assert problems_on_all_screens(tab, served.origin + path) == []


@needs_chromium
def test_the_audit_finds_what_cannot_be_read(served: Dashboard, tab: Tab) -> None:
    look(tab, f"{served.origin}/run/quick_001", 390, "light")
    tab.value("document.body.style.color = '#bbb'; document.querySelector('h2').style.color = '#bbb'")
    tab.value(
        "document.querySelector('main select').closest('label').replaceWith(document.querySelector('main select'))"
    )
    tab.value("document.querySelector('h1').style.width = '900px'")
    tab.value("document.querySelectorAll('section h2')[1].style.cssText = 'position: absolute; left: 30px; top: 130px'")
    found = " ".join(audit(tab))
    for problem in ("contrast 1", "no label", "px wide", "overlap"):
        assert problem in found


@needs_chromium
def test_keys_walk_select_and_compare(served: Dashboard, tab: Tab) -> None:
    look(tab, f"{served.origin}/?sort=name", 1440, "light")

    def press(key: str) -> None:
        tab.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        tab.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    for key in "jxjx":
        press(key)
    assert tab.value("[...document.querySelectorAll('input:checked')].map((box) => box.value).sort().join()") == (
        "quick_001,slow_001"
    )
    press("/")
    assert tab.value("document.activeElement.name") == "name"
    tab.value("document.activeElement.blur()")
    press("c")
    assert tab.wait_for("location.pathname === '/compare' && document.querySelector('.verdict') !== null", seconds=30)


@needs_chromium
def test_hostile_names_execute_nothing_in_a_browser(served: Dashboard, trained: Project, tmp_path: Path) -> None:
    source = trained.root / "runs" / "slow_001"
    target = trained.root / "runs" / ATTACK.replace("/", "∕")
    shutil.copytree(source, target)
    try:
        run = Run(target)
        writer = MetricsWriter(run.seed(0).metrics_path)
        writer.write(2000, {ATTACK: 1.0})
        writer.close()
        (target / "logs" / "seed_0.log").write_text(f"{ATTACK}</pre>{ATTACK}")
        wait_until(lambda: "document.title=" in served.page("/"))  # the list may be some seconds old
        for path in ("/", f"/run/{quote(run.name, safe='')}"):
            sign = "&" if "?" in path else "?"
            text = browse(f"{served.origin}{path}{sign}token={TOKEN}", tmp_path, "--dump-dom")
            assert "document.title=" in text  # it is there, as text
            title = re.findall(r"<title>(.*?)</title>", text)[0]
            assert title.endswith("– rlx")
    finally:
        shutil.rmtree(target)


def test_the_command_prints_its_address_and_ends_with_ctrl_c(trained: Project) -> None:
    process = trained.start("ui", "--port", "0", "--json")
    assert process.stdout
    address = json.loads(process.stdout.readline())["address"]
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=.{20,})", address)
    assert found
    reply = Dashboard(trained.root, int(found[1])).ask(found[2])
    assert reply.status == 303
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    assert process.stderr
    assert "Ctrl-C ends it" in process.stderr.read()
    process.stderr.close()


# Report


@needs_chromium
def test_a_report_opens_offline_without_a_request(trained: Project, served: Dashboard, tmp_path: Path) -> None:
    trained.rlx("replay", "quick_001", "--steps", "20")
    out = tmp_path / "report.html"
    trained.rlx("report", "slow_001", "quick_001", "--html", str(out))
    assert out.stat().st_size < 5_000_000
    assert requests(f"{served.origin}/?token={TOKEN}", tmp_path / "control")[0]
    asked, text = requests(out.as_uri(), tmp_path / "offline")
    assert asked == set()
    comparison = document("compare", "slow_001", "quick_001")
    assert escape(comparison["candidates"][0]["reason"]) in text
    assert "What did not work" in text
    assert 'data-replay=""' in text
    assert "return so far" in text


def test_a_report_needs_a_name_that_ends_in_html(trained: Project) -> None:
    refused = trained.rlx("report", "quick_001", "--html", "report.pdf", code=2)
    assert "a report is an HTML page" in refused.stderr
    assert "no run" in trained.rlx("report", "nothing", "--html", "x.html", code=3).stderr


def test_a_report_makes_its_folder_or_names_the_obstacle(trained: Project) -> None:
    trained.rlx("report", "quick_001", "--html", "reports/new/quick.html")
    assert (trained.root / "reports" / "new" / "quick.html").stat().st_size > 1000
    refused = trained.rlx("report", "quick_001", "--html", "rlx.toml/quick.html", code=2)
    assert "cannot write rlx.toml/quick.html" in refused.stderr
    assert "hint: name another file with --html" in refused.stderr


# Replay and explanation


def test_frame_i_of_a_replay_is_step_i(trained: Project, tmp_path: Path) -> None:
    from rlx.config.schema import Env
    from rlx.envs.make import make_env

    out = tmp_path / "replay.html"
    told = json.loads(trained.rlx("replay", "quick_001", "--episode", "1", "--out", str(out), "--json").stdout)
    steps = json.loads(Path(told["data"]).read_text())["steps"]
    assert [row["step"] for row in steps] == list(range(told["episode"]["length"] + 1))
    assert sum(row["reward"] for row in steps[:-1]) == pytest.approx(told["episode"]["return"])
    assert steps[-1]["action"] is None
    env = make_env(Env(id="CartPole-v1"), root=trained.root, render_mode="rgb_array")
    observation, _ = env.reset(seed=told["episode"]["seed"])
    for row in steps[:6]:
        assert list(row["observation"].values()) == pytest.approx(observation.tolist())
        frame = np.asarray(Image.open(io.BytesIO(base64.b64decode(row["frame"]))), dtype=float)
        rendered = Image.fromarray(env.render()).resize((frame.shape[1], frame.shape[0]))
        assert np.abs(frame - np.asarray(rendered, dtype=float)).mean() < 4.0
        assert sum(row["distribution"]["probabilities"]) == pytest.approx(1.0, abs=1e-5)
        assert 0.0 <= row["entropy"] <= 0.7
        observation, *_ = env.step(int(row["action"][0]))
    env.close()


def test_a_replay_and_its_page_agree(trained: Project, served: Dashboard) -> None:
    trained.rlx("replay", "slow_001", "--seed", "0", "--episode", "worst", "--steps", "10")
    text = served.page("/run/slow_001/replay")
    assert "slow_001, seed 0, best" in text
    assert 'type="application/json"' in text
    bad = trained.root / "runs" / "slow_001" / "replays" / "bad.json"
    bad.write_text('{"steps": [{"frame": 1}]}')
    assert served.ask("/run/slow_001/replay?name=bad").status == 409
    assert served.ask("/run/slow_001/replay?name=../../metadata").status == 404
    bad.unlink()


@needs_chromium
def test_the_scrubber_shows_the_figures_of_its_step(trained: Project, served: Dashboard, tab: Tab) -> None:
    from rlx.hosts.ui.replay_view import spelt

    told = json.loads(trained.rlx("replay", "quick_001", "--episode", "2", "--steps", "30", "--json").stdout)
    steps = json.loads(Path(told["data"]).read_text())["steps"]
    tab.open(f"{served.origin}/run/quick_001/replay?name={Path(told['data']).stem}")
    for number in (0, 3, len(steps) - 1):
        move = f"s => {{ s.value = {number}; s.dispatchEvent(new Event('input')); }}"
        tab.value(f"({move})(document.querySelector('[data-scrub]'))")
        cells = "[...document.querySelectorAll('[data-value]')]"
        shown = tab.value(f"Object.fromEntries({cells}.map((cell) => [cell.dataset.value, cell.textContent]))")
        assert shown["step"] == str(number)
        assert shown == {name: spelt(steps[number], name) for name in shown}
        assert steps[number]["frame"] in tab.value("document.querySelector('[data-frame]').src")
        chosen = steps[number]["action"]
        marked = tab.value("[...document.querySelectorAll('.chosen')].map((e) => Number(e.dataset.option))")
        assert marked == (chosen or [])


def test_the_run_page_lists_replays_and_names_empty_logs(trained: Project, served: Dashboard) -> None:
    trained.rlx("tag", "slow_001", "star")
    trained.rlx("replay", "slow_001", "--episode", "best", "--steps", "5")
    text = served.page("/run/slow_001")
    assert 'href="/run/slow_001/replay?name=slow_001_seed_' in text
    assert "★ " in text
    assert '<span class="tag">star</span>' not in text
    assert re.search("Empty: .*supervisor", text)
    trained.rlx("untag", "slow_001", "star")


def test_an_explanation_ranks_the_parts_of_the_observation(trained: Project) -> None:
    told = json.loads(trained.rlx("explain", "quick_001", "--episodes", "2", "--json").stdout)
    assert {feature["name"] for feature in told["features"]} == {f"obs[{index}]" for index in range(4)}
    importances = [feature["permutation"] for feature in told["features"]]
    assert importances == sorted(importances, reverse=True)
    assert told["completeness"] < 0.01
    assert Path(told["picture"]).stat().st_size > 1000
    assert len(told["slice"]["values"]) == 25


# Notebook


def test_objects_show_themselves_in_a_notebook(trained: Project) -> None:
    import rlx
    from rlx.compare.comparison import compare

    run = rlx.open("quick_001")
    assert run._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "quick_001" in run._repr_html_()
    comparison = compare([rlx.open("slow_001"), run])
    assert comparison.document()["candidates"][0]["verdict"] in comparison._repr_html_()
    assert comparison._repr_png_()
    assert len(rlx.plot("quick_001", "slow_001").axes[0].lines) >= 6
