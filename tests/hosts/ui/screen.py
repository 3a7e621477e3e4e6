"""Pages in a real browser: their picture, what a reader could not read on them, and what they ask the network for."""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.rig.browser import Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
AUDIT = Path(__file__).with_name("audit.js")
SCREENS = ((1440, "light"), (1440, "dark"), (390, "light"), (390, "dark"))


def browse(address: str, tmp_path: Path, *options: str) -> str:
    """Open an address in a real browser and return the document after its scripts have run."""
    assert CHROMIUM
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--disable-extensions", "--disable-default-apps",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-first-run",
         "--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=3000", *options, address],
        capture_output=True, text=True, timeout=120, start_new_session=True,
    )  # fmt: skip
    return done.stdout


def requests(address: str, folder: Path) -> tuple[set[str], str]:
    """Open an address and return the network addresses that it asked for, and the document.

    The browser asks its maker's servers on its own account, which no page can prevent: these do not count.
    """
    folder.mkdir()
    log = folder / "net.json"
    text = browse(address, folder, "--dump-dom", f"--log-net-log={log}", "--net-log-capture-mode=Everything")
    asked = set(re.findall(r'"url":"((?:http|ws)[^"]+)"', log.read_text()))
    own = re.compile(r"\w+://[^/]*\.(?:google|googleapis|gstatic|gvt1)\.com")
    return {each for each in asked if not own.match(each)}, text


def colours(picture: Image.Image) -> int:
    pixels = np.asarray(picture.convert("RGB").resize((200, 200))).reshape(-1, 3)
    return len(np.unique(pixels, axis=0))


def look(tab: Tab, address: str, width: int, theme: str) -> Image.Image:
    """Open a page as a screen of this width shows it, and return the picture; CI keeps it in RLX_SCREENSHOTS."""
    tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    tab.send("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 500)
    tab.open(address)
    tab.wait_for(
        "!document.querySelector('[data-curves]') || document.documentElement.dataset.drawnMs || !window.uPlot"
    )
    taken = tab.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
    picture = Image.open(io.BytesIO(base64.b64decode(taken["data"])))
    if os.environ.get("RLX_SCREENSHOTS"):
        folder = Path(os.environ["RLX_SCREENSHOTS"])
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "_", address.partition("://")[2].partition("/")[2])[:60] or "runs"
        picture.save(folder / f"{name}_{width}_{theme}.png")
    return picture


def audit(tab: Tab) -> list[str]:
    """Return what a reader could not read on the open page."""
    done = tab.send("Runtime.evaluate", expression=AUDIT.read_text(), returnByValue=True, awaitPromise=True)
    problems: list[str] = done["result"]["value"]
    return problems


def problems_on_all_screens(tab: Tab, address: str) -> list[str]:
    """Look at a page on a desk and on a phone, in both themes, and return what could not be read."""
    problems = []
    for width, theme in SCREENS:
        picture = look(tab, address, width, theme)
        assert picture.width > width - 20  # less a scrollbar
        assert colours(picture) > 12
        problems += [f"{width} px, {theme}: {problem}" for problem in audit(tab)]
    return problems
