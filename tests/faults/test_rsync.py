"""The two rsync lines of the guide, typed while a run trains, cut in the middle and repeated."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import Project, wait_until

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "clusters.md"
REASON = "RSYNC IS NOT TESTED: no rsync here (apt install rsync)"


def lines(source: Path, target: Path) -> list[list[str]]:
    """Return the lines of the guide, from one folder of this machine to another."""
    found = re.findall(r"^(rsync .*) HOST:PROJECT/runs/ runs/$", GUIDE.read_text(), flags=re.M)
    assert len(found) == 2
    return [[*shlex.split(line), f"{source}/runs/", f"{target}/runs/"] for line in found]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("rsync") is None, reason=REASON)
def test_a_run_copied_while_it_trains_is_listed_and_resumed_on_the_other_side(project: Project, tmp_path: Path) -> None:
    target = Project(tmp_path / "other")
    shutil.copytree(project.root, target.root)
    (target.root / "runs").mkdir(exist_ok=True)
    config = project.config(checkpoint={"save_every": 500})
    options = ["-s", "algo.total_timesteps=20000", "--seeds", "1"]
    project.rlx("train", config, *options, "--detach")
    run = next((project.root / "runs").iterdir())
    wait_until(lambda: list((run / "seed_0" / "checkpoints").glob("step_*")))
    for _ in range(3):
        for argv in lines(project.root, target.root):
            child = subprocess.Popen([*argv[:1], "--bwlimit=200", *argv[1:]])
            time.sleep(0.1)
            child.kill()  # cut off in the middle
            child.wait()
        listed = target.rlx("ls", "--json").stdout
        assert run.name in listed
    project.rlx("stop", run.name)
    for argv in lines(project.root, target.root):
        subprocess.run(argv, check=True)
    assert '"status":"interrupted"' in target.rlx("ls", "--json").stdout
    assert "resumed exact" in target.rlx("resume", run.name).stdout
    project.rlx("resume", run.name)
    policies = [place / "runs" / run.name / "seed_0/checkpoints/latest/policy.safetensors"
                for place in (project.root, target.root)]  # fmt: skip
    assert policies[0].read_bytes() == policies[1].read_bytes()
