"""Opens every page of the site from disk in Chromium: what it asks a network for, breaks, or is wider than a phone.

Needs playwright (the group `test`) and a Chromium of this machine.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tqdm import tqdm

_PHONE = {"width": 360, "height": 800}
_DESK = {"width": 1400, "height": 900}
_SWITCHES = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
_OWN = ("file:", "data:", "blob:")


def faults_in_browser(site: Path) -> list[str]:
    """One line for each fault of each page, and one if the search finds nothing.

    Args:
        site: the folder of the built site.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_SWITCHES)
        faults = [fault for scheme in ("light", "dark") for fault in _faults_in(browser, site, scheme)]
        return faults + _faults_of_search(browser, site)


def _faults_in(browser: Any, site: Path, scheme: str) -> list[str]:
    page = browser.new_context(viewport=_PHONE, color_scheme=scheme).new_page()
    asked: list[str] = []
    broken: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: broken.append(f"{page.url}: {error}"))
    faults = []
    for path in tqdm(sorted(site.rglob("*.html")), desc=f"pages, {scheme}", disable=None):
        if path.name != "404.html":  # whose addresses begin at the root of a server
            page.goto(path.as_uri())
            name, excess = path.relative_to(site), page.evaluate("document.documentElement.scrollWidth - innerWidth")
            faults += [f"{name}: is {excess} pixels wider than a phone"] if excess > 0 else []
            faults += [f"{name}: asks for {url}" for url in asked if not url.startswith(_OWN)]
            asked.clear()
    return faults + broken


def _faults_of_search(browser: Any, site: Path) -> list[str]:
    page = browser.new_context(viewport=_DESK).new_page()
    page.goto((site / "index.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("ledger", delay=20)
    page.wait_for_timeout(3000)
    has_found = "matching" in page.inner_text(".md-search-result__meta")
    return [] if has_found else ["index.html: the search finds nothing"]
