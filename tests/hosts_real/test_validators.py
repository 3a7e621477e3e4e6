"""What the hosts' own validators say about the plug-in and its skills."""

from __future__ import annotations

import pytest

from rlx.hosts.agents import packaged_skills
from tests.hosts_real.conftest import PLUGIN, ROOT, Client


@pytest.mark.parametrize("skill", [skill.name for skill in packaged_skills.skills()])
def test_the_agent_skills_validator_accepts_every_skill(agentskills: Client, skill: str) -> None:
    done = agentskills.run("validate", str(PLUGIN / "skills" / skill))
    assert "Valid skill" in done.stdout


@pytest.mark.parametrize("folder", [ROOT, PLUGIN, PLUGIN.parent])
def test_claude_code_validates_strictly(claude: Client, folder: object) -> None:
    assert "Validation passed" in claude.run("plugin", "validate", "--strict", str(folder)).stdout
