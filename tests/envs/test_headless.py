"""What draws without a display is found by trying; each case in a process of its own, as libraries load once."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

DRIVERS = (
    "import os; from rlx.envs.headless import prepare_display\n"
    "for mode in (None, 'human', 'rgb_array'):\n"
    "    prepare_display(mode); print(mode, *(os.environ.get(f'SDL_{kind}DRIVER') for kind in ('VIDEO', 'AUDIO')))\n"
)
CHOICE = "from rlx.envs.headless import opengl_library; print(opengl_library())"
DRAWING = (
    "from pathlib import Path; from rlx.config.schema import Env; from rlx.envs.make import make_env\n"
    "from rlx.errors import RlxError\n"
    "try: env = make_env(Env(id='Hopper-v5'), root=Path(), render_mode='rgb_array')\n"
    "except RlxError as error: print(error, '|', error.hint); raise SystemExit(error.exit_code)\n"
    "env.reset(seed=0); frame = env.render(); env.close()\n"
    "import os; print(os.environ['MUJOCO_GL'], os.environ['PYOPENGL_PLATFORM'], frame.shape, frame.std() > 20)\n"
)


def has(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def python(code: str, *, broken: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run code with some variables; `broken` is a folder with libraries that do not load."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "EGL_LOG_LEVEL") and not name.startswith("SDL_")
    }
    if broken is not None:
        kept["LD_LIBRARY_PATH"] = str(broken)
    return subprocess.run([sys.executable, "-c", code], env={**kept, **changes}, capture_output=True, text=True)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a folder whose EGL and OSMesa are empty files."""
    for name in ("libEGL.so.1", "libEGL.so", "libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"):
        (tmp_path / name).touch()
    return tmp_path


def test_pygame_gets_no_display_and_no_sound_where_frames_are_wanted() -> None:
    assert python(DRIVERS).stdout.splitlines() == ["None None None", "human None None", "rgb_array dummy dummy"]


@pytest.mark.skipif(not has("libEGL.so.1"), reason="needs libegl1")
def test_egl_comes_first_and_is_quiet() -> None:
    done = python(CHOICE)
    assert (done.stdout, done.stderr) == ("egl\n", "")


@pytest.mark.skipif(not has("libOSMesa.so.8"), reason="needs libosmesa6")
def test_osmesa_takes_over_where_egl_has_no_driver() -> None:
    done = python(CHOICE, __EGL_VENDOR_LIBRARY_DIRS="/nonexistent")
    assert (done.stdout, done.stderr) == ("osmesa\n", "")


@pytest.mark.skipif(not has("libOSMesa.so.8"), reason="needs libosmesa6")
def test_what_you_chose_is_tried_first() -> None:
    assert python(CHOICE, MUJOCO_GL="osmesa").stdout == "osmesa\n"
    assert python(CHOICE, MUJOCO_GL="egl", __EGL_VENDOR_LIBRARY_DIRS="/nonexistent").stdout == "osmesa\n"
    assert python(CHOICE, MUJOCO_GL="glfw").stdout == "None\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "needs"), [("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8")], ids=["egl", "osmesa"]
)
def test_hopper_is_drawn_by_either_without_a_word(library: str, needs: str) -> None:
    if not has(needs):
        pytest.skip(f"needs {needs}")
    hidden = {"__EGL_VENDOR_LIBRARY_DIRS": "/nonexistent"} if library == "osmesa" else {}
    done = python(DRAWING, **hidden)
    assert (done.stdout, done.stderr) == (f"{library} {library} (480, 480, 3) True\n", "")


@pytest.mark.parametrize("chosen", [{}, {"MUJOCO_GL": "osmesa"}], ids=["nothing chosen", "osmesa chosen"])
def test_where_neither_works_one_line_names_the_package(broken: Path, chosen: dict[str, str]) -> None:
    done = python(DRAWING, broken=broken, **chosen)
    assert done.returncode == 1
    assert done.stdout.startswith("`Hopper-v5` cannot be drawn: neither EGL nor OSMesa gives an OpenGL context here")
    assert "apt-get install libegl1 (or libosmesa6)" in done.stdout
    assert done.stderr == ""


def test_what_is_not_mujoco_is_drawn_without_opengl(broken: Path) -> None:
    done = python(
        DRAWING.replace("Hopper-v5", "CartPole-v1").split("import os;")[0] + "print(frame.shape)", broken=broken
    )
    assert (done.stdout, done.stderr) == ("(400, 600, 3)\n", "")
