"""Finds the frameworks that a repository depends on, their pinned versions, and the interpreter that it expects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFact

FRAMEWORKS = {
    "isaaclab": "Isaac Lab", "isaaclab_rl": "Isaac Lab", "mjlab": "mjlab", "holosoma": "holosoma", "rsl_rl": "rsl_rl",
    "rsl_rl_lib": "rsl_rl", "skrl": "skrl", "rl_games": "rl_games", "stable_baselines3": "Stable-Baselines3",
    "sb3_contrib": "SB3-Contrib", "sbx": "SBX", "sbx_rl": "SBX", "rl_zoo3": "RL Baselines3 Zoo", "torch_ac": "torch-ac",
    "minigrid": "MiniGrid", "gymnasium": "Gymnasium", "gym": "Gym", "legged_gym": "legged_gym", "isaacgym": "Isaac Gym",
    "dm_control": "dm_control", "dm_env": "dm_env", "mujoco": "MuJoCo", "brax": "Brax", "torchrl": "TorchRL",
    "tianshou": "Tianshou", "ray": "Ray", "pufferlib": "PufferLib", "lerobot": "LeRobot", "sample_factory":
    "Sample Factory", "hydra": "Hydra", "hydra_core": "Hydra", "tyro": "tyro", "torch": "PyTorch", "jax": "JAX",
    "pettingzoo": "PettingZoo", "d3rlpy": "d3rlpy", "highway_env": "HighwayEnv",
}  # fmt: skip
"""Names of packages, as they are installed or imported, and the frameworks behind them."""
_REQUIREMENT = re.compile(r"^\s*([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*(\(?[=<>!~^].*?)?\)?\s*(?:;.*|#.*)?$")
_PINNED = re.compile(r"[\"']([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*([=<>~!]=?[^\"']*)?[\"']")


def frameworks(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield each framework once: by its requirement with the pin, or else by its first import."""
    seen: set[str] = set()
    for package, pin, file, line in _requirements(repository):
        name = FRAMEWORKS.get(_canonical(package))
        if name and name not in seen:
            seen.add(name)
            yield ScanFact("framework", name, file, line, value=pin or None)
    for python in repository.programs:
        for module, line in python.imports.items():
            name = FRAMEWORKS.get(module.partition(".")[0])
            if name and name not in seen:
                seen.add(name)
                yield ScanFact("framework", name, python.path, line, confidence="medium", detail="imported, not pinned")


def _canonical(package: str) -> str:
    return package.lower().replace("-", "_").replace(".", "_")


def _requirements(repository: ForeignRepository) -> Iterator[tuple[str, str, str, int]]:
    for path in repository.files:
        name = PurePosixPath(path).name
        if path.count("/") > 2:
            continue
        if name == "pyproject.toml":
            yield from _pyproject(repository.text(path), path)
        elif name.startswith("requirements") and name.endswith((".txt", ".in")):
            yield from _lines(repository.text(path), path)
        elif name in ("environment.yml", "environment.yaml", "conda_env.yml", "conda.yaml"):
            yield from _lines(repository.text(path).replace("- ", "  "), path, is_conda=True)
        elif name in ("setup.py", "setup.cfg"):
            for number, line in enumerate(repository.text(path).splitlines(), start=1):
                for match in _PINNED.finditer(line):
                    yield match[1], (match[2] or "").strip(), path, number


def _lines(text: str, path: str, *, is_conda: bool = False) -> Iterator[tuple[str, str, str, int]]:
    for number, line in enumerate(text.splitlines(), start=1):
        match = _REQUIREMENT.match(line)
        if match and not (is_conda and line.rstrip().endswith(":")):
            yield match[1], (match[2] or "").strip(), path, number


def _pyproject(text: str, path: str) -> Iterator[tuple[str, str, str, int]]:
    data = _toml(text)
    project = data.get("project")
    words: list[object] = []
    if isinstance(project, dict):
        words += project.get("dependencies") or []
        for group in (project.get("optional-dependencies") or {}).values():
            words += group
    for group in (data.get("dependency-groups") or {}).values():
        words += [word for word in group if isinstance(word, str)]
    poetry = (data.get("tool") or {}).get("poetry") or {}
    pins = {name: value for name, value in (poetry.get("dependencies") or {}).items() if isinstance(value, str)}
    words += [f"{name}{value}" for name, value in pins.items()]
    for word in words:
        match = _REQUIREMENT.match(str(word))
        if match:
            yield match[1], (match[2] or "").strip(), path, line_of(text, match[1])


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def line_of(text: str, words: str) -> int:
    """Return the first line that contains the words; 1 if none does."""
    at = text.find(words)
    return text.count("\n", 0, max(at, 0)) + 1


def interpreters(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the ways to start the repository's interpreter, the most specific one first; the value is the prefix."""
    names = set(repository.files)
    if "isaaclab.sh" in names:
        yield ScanFact("interpreter", "isaaclab.sh", "isaaclab.sh", 1, value=["./isaaclab.sh", "-p"])
    for folder in (".venv", "venv"):
        if (repository.root / folder / "pyvenv.cfg").is_file() and (repository.root / folder / "bin/python").exists():
            yield ScanFact("interpreter", "venv", f"{folder}/pyvenv.cfg", 1, value=[], detail=f"{folder}/bin/python")
    pyproject = ""
    if "pyproject.toml" in names:
        pyproject = repository.text("pyproject.toml")
    if "uv.lock" in names or "[tool.uv" in pyproject:
        file = "pyproject.toml"
        if "uv.lock" in names:
            file = "uv.lock"
        yield ScanFact("interpreter", "uv", file, 1, value=["uv", "run"])
    if "poetry.lock" in names or "[tool.poetry" in pyproject:
        yield ScanFact(
            "interpreter", "poetry", "pyproject.toml", line_of(pyproject, "[tool.poetry"), value=["poetry", "run"]
        )
    for name in ("environment.yml", "environment.yaml", "conda_env.yml", "conda.yaml"):
        if name in names:
            text = repository.text(name)
            match = re.search(r"^name:\s*(\S+)", text, re.M)
            prefix = ["conda", "run", "--no-capture-output", "-n", match[1] if match else "base"]
            yield ScanFact("interpreter", "conda", name, line_of(text, "name:"), confidence="medium", value=prefix)
    match = re.search(r"requires-python\s*=\s*[\"']([^\"']+)", pyproject)
    if match:
        yield ScanFact("python", match[1], "pyproject.toml", line_of(pyproject, "requires-python"))
