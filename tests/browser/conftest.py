"""A studio that really runs, and a browser that looks at it: Chromium of this machine, driven by Playwright.

Where there is no Chromium the tests are skipped. `SPINNEY_SCREENSHOTS=FOLDER` keeps pictures of the pages there.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENSHOTS = os.environ.get("SPINNEY_SCREENSHOTS")
LARGEST_PICTURE = 120_000
WIDTH, NARROW, WIDE = 1200, 360, 2000


class Served:
    """`spinney studio` as a process of its own."""

    def __init__(self, root: Path, *options: str) -> None:
        self.root, self._options = root, options
        self.start()

    def start(self) -> None:
        self._log = (self.root / ".studio.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "spinney", "studio", "--root", self.root, "--no-browser", *self._options],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(self.root.parent)},  # so that pictures say ~/tables
        )
        self.link = self._printed_link()
        self.origin = self.link.partition("/open")[0]

    @property
    def printed(self) -> str:
        return (self.root / ".studio.log").read_text()

    def _printed_link(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = re.search(r"http://127\.0\.0\.1:\d+/open\?key=\S+", self.printed)
            if found:
                return found[0]
            assert self.process.poll() is None, self.printed
            time.sleep(0.05)
        raise AssertionError(f"no link: {self.printed}")

    def end(self, sign: int = signal.SIGINT) -> None:
        """End it; with SIGKILL it cannot put anything in order."""
        self.process.send_signal(sign)
        self.process.wait(30)
        self._log.close()


@pytest.fixture(scope="session")
def chromium():
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def served(tmp_path):
    """A studio over an empty folder, ended at the end of the test."""
    (tmp_path / "tables").mkdir()
    running = Served(tmp_path / "tables")
    yield running
    if running.process.poll() is None:
        running.end()


@pytest.fixture
def page(chromium, served):
    """A tab that has come into the studio."""
    context = chromium.new_context(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
    context.set_default_timeout(60_000)
    tab = context.new_page()
    tab.problems = []
    tab.on("console", lambda message: tab.problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda err: tab.problems.append(str(err)))
    tab.goto(served.link)
    tab.wait_for_url(f"{served.origin}/")
    yield tab
    context.close()


def look(page, name: str | None = None, *, themes: tuple[str, ...] = ("light", "dark")) -> None:
    """Look at a page as it stands: axe in light and dark, no scrolling sideways, and a picture where one is wanted."""
    from axe_playwright_python.sync_playwright import Axe

    for theme in themes:
        page.emulate_media(color_scheme=theme)
        found = Axe().run(page).response["violations"]
        grave = [one for one in found if one["impact"] in ("serious", "critical")]
        told = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in grave]
        assert not grave, f"{name or page.url} in {theme}: {told}"
    page.emulate_media(color_scheme="light")
    for width in (NARROW, WIDE, WIDTH):
        page.set_viewport_size({"width": width, "height": 900})
        across = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert across <= 0, f"{name or page.url} scrolls sideways by {across} px at {width} px"
    if SCREENSHOTS and name:
        keep_picture(page, name)


def keep_picture(page, name: str) -> None:
    """A picture of the page, below 120 kB."""
    path = Path(SCREENSHOTS or ".") / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    height = min(page.evaluate("document.documentElement.scrollHeight"), 1500)
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.screenshot(path=path, animations="disabled")
    page.set_viewport_size({"width": WIDTH, "height": 900})
    small(path)
    assert path.stat().st_size < LARGEST_PICTURE, f"{path} has {path.stat().st_size:,} bytes"


def small(path: Path) -> None:
    """Write a picture with a palette, where Pillow is there: text pages need few colours."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


@pytest.fixture
def looking():
    """`look`, for tests in other folders too."""
    return look
