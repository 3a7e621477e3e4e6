"""The architecture holds: imports point downwards, light commands stay light, the README's tree is true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rlx"
HEAVY = ("numpy", "torch", "gymnasium", "stable_baselines3", "pydantic", "matplotlib", "yaml")


def test_imports_point_downwards_only() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["ls"], ["info", "some_001"], ["tag", "some_001", "good"]])
def test_light_commands_import_nothing_heavy(argv: list[str], tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()
    code = (
        "import sys\n"
        "from rlx.hosts.cli.main import call\n"
        f"call({argv!r})\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "RLX_ROOT": str(tmp_path)},
    )
    assert "HEAVY []" in done.stdout, done.stdout + done.stderr


def test_importing_rlx_costs_nothing_heavy() -> None:
    code = f"import sys, rlx; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_imported() -> None:
    import rlx

    assert all(getattr(rlx, name) is not None for name in rlx.__all__)


def test_the_tree_in_the_readme_is_the_tree_there_is() -> None:
    block = (ROOT / "README.md").read_text().split("src/rlx/\n")[1].split("docs/ ")[0]
    drawn = set(re.findall(r"^  ([a-z]+(?:/|\.py))\s", block, flags=re.M))
    there = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    there |= {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert drawn == there


def test_every_module_says_what_lives_there() -> None:
    silent = [str(path) for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')]
    assert silent == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "util", "common", "core", "helpers", "helper", "base", "manager", "misc"}
    assert [path for path in PACKAGE.rglob("*.py") if path.stem in banned] == []


def test_tests_mirror_the_tree() -> None:
    strays = []
    for test in (ROOT / "tests").rglob("test_*.py"):
        relative = test.relative_to(ROOT / "tests")
        if len(relative.parts) < 2 or relative.parts[0] in ("faults", "hosts_real"):
            continue
        if not any((above / relative.parent).is_dir() for above in (PACKAGE, ROOT)):
            strays.append(str(relative))
    assert strays == []
