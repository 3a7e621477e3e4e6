"""Renders without a display: SDL's dummy driver for pygame, EGL or OSMesa for MuJoCo.

MuJoCo draws through OpenGL, and the library that gives it a context must be chosen before it is imported; a wrong
choice ends in a crash or in foreign tracebacks. So each one is tried first, through ctypes, with a real context.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rlx.errors import RlxError

if TYPE_CHECKING:
    import gymnasium


def prepare_display(render_mode: str | None) -> None:
    """Let pygame and MuJoCo draw without a display, without taking our signals and without greetings."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")
    if render_mode is None or render_mode == "human":
        return
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")  # without a sound card ALSA complains on stderr
    choose_opengl()


def choose_opengl() -> None:
    """Choose what MuJoCo draws with, before it is imported."""
    os.environ.setdefault("EGL_LOG_LEVEL", "fatal")
    library = opengl_library()
    if library is not None:
        os.environ["MUJOCO_GL"] = library
        os.environ.setdefault("PYOPENGL_PLATFORM", library)
    elif os.environ.get("MUJOCO_GL", "").lower() in _PROBES:
        del os.environ["MUJOCO_GL"]  # MuJoCo could not even be imported with it


@cache
def opengl_library() -> str | None:
    """Return what MuJoCo draws with: `egl` or `osmesa`, the one MUJOCO_GL names first; None where neither works.

    Also None where MuJoCo is not installed, or MUJOCO_GL names something else (`glfw`, which needs a display).
    """
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if find_spec("mujoco") is None or (chosen and chosen not in _PROBES):
        return None
    return next((name for name in sorted(_PROBES, key=lambda name: name != chosen) if _PROBES[name]()), None)


def refuse_undrawable(env: gymnasium.Env[Any, Any], *, label: str) -> None:
    """Raise if an environment is MuJoCo's and neither EGL nor OSMesa can draw it."""
    has_other_means = os.environ.get("MUJOCO_GL") or os.environ.get("DISPLAY")
    if opengl_library() is None and not has_other_means and _is_simulated_by_mujoco(env):
        raise RlxError(
            f"{label} cannot be drawn: neither EGL nor OSMesa gives an OpenGL context here",
            hint="apt-get install libegl1 (or libosmesa6): MuJoCo draws with it; training needs neither",
        )


def _is_simulated_by_mujoco(env: gymnasium.Env[Any, Any]) -> bool:
    held = getattr(env.unwrapped, "__dict__", {}).values()
    return any(type(value).__module__.partition(".")[0] == "mujoco" for value in held)


def _has_egl() -> bool:
    """Do what `mujoco.egl` does: a context without a surface on the first device that can be initialised."""
    egl = _library("libEGL.so.1", "libEGL.so")
    if egl is None:
        return False
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    pointer = ctypes.c_void_p
    number = ctypes.c_int
    query = _extension(egl, b"eglQueryDevicesEXT", number, number, pointer, pointer)
    display_of = _extension(egl, b"eglGetPlatformDisplayEXT", pointer, number, pointer, pointer)
    if query is None or display_of is None:
        return False
    devices = (pointer * 16)()
    count = number()
    query(len(devices), devices, ctypes.byref(count))
    for device in devices[: count.value]:
        display = display_of(_EGL_PLATFORM_DEVICE, device, None)
        if display and egl.eglInitialize(pointer(display), None, None):
            try:
                return _has_context(egl, pointer(display))
            finally:
                egl.eglTerminate(pointer(display))
    return False


def _has_context(egl: ctypes.CDLL, display: ctypes.c_void_p) -> bool:
    attributes = (ctypes.c_int * len(_EGL_CONFIG))(*_EGL_CONFIG)
    config = ctypes.c_void_p()
    count = ctypes.c_int()
    egl.eglChooseConfig(display, attributes, ctypes.byref(config), 1, ctypes.byref(count))
    if count.value < 1 or not egl.eglBindAPI(_EGL_OPENGL_API):
        return False
    egl.eglCreateContext.restype = ctypes.c_void_p
    context = ctypes.c_void_p(egl.eglCreateContext(display, config, None, None))
    is_current = bool(context) and bool(egl.eglMakeCurrent(display, None, None, context))
    egl.eglMakeCurrent(display, None, None, None)
    if context:
        egl.eglDestroyContext(display, context)
    return is_current


def _has_osmesa() -> bool:
    mesa = _library("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")
    if mesa is None:
        return False
    mesa.OSMesaCreateContextExt.restype = ctypes.c_void_p
    context = ctypes.c_void_p(mesa.OSMesaCreateContextExt(_GL_RGBA, 24, 8, 0, None))
    if not context:
        return False
    pixels = (ctypes.c_float * (8 * 8 * 4))()
    is_current = bool(mesa.OSMesaMakeCurrent(context, pixels, _GL_FLOAT, 8, 8))
    mesa.OSMesaMakeCurrent(None, None, _GL_FLOAT, 0, 0)
    mesa.OSMesaDestroyContext(context)
    return is_current


def _library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _extension(egl: ctypes.CDLL, name: bytes, *types: Any) -> Callable[..., Any] | None:
    address = egl.eglGetProcAddress(name)
    return ctypes.CFUNCTYPE(*types)(address) if address else None


_PROBES: dict[str, Callable[[], bool]] = {"egl": _has_egl, "osmesa": _has_osmesa}
_GL_RGBA = 0x1908
_GL_FLOAT = 0x1406
_EGL_PLATFORM_DEVICE = 0x313F
_EGL_OPENGL_API = 0x30A2
_EGL_CONFIG = (
    *(0x3024, 8, 0x3023, 8, 0x3022, 8, 0x3021, 8, 0x3025, 24, 0x3026, 8),  # red, green, blue, alpha, depth, stencil
    *(0x303F, 0x308E, 0x3033, 0x0001, 0x3040, 0x0008, 0x3038),  # an RGB buffer, off screen, for OpenGL; the end
)
"""The configuration MuJoCo asks for."""
