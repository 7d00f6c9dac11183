"""The studio in a browser: the whole way on the made-up town, wrong input, two tabs, cancelling and restarting."""

from __future__ import annotations

import re
import signal
import time

import pytest

import spinney as sp
from spinney_studio.jobs import Jobs
from spinney_studio.workspace import Root, Workspace
from support.studios import six_columns, spent_draft

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def to_budget(page):
    """From the first page to the budget of the town."""
    page.get_by_role("button", name="Try the town").click()
    page.get_by_role("button", name="Save, and check the table").click()
    page.get_by_role("link", name="Go on to the budget").click()


def to_confirmation(page, *, name="town", **fields):
    to_budget(page)
    page.get_by_label("Make a new ledger").check()
    page.get_by_label("Name", exact=True).fill(name)
    for label, value in fields.items():
        page.get_by_label(label.replace("_", " ")).fill(value)
    page.get_by_role("button", name="See what it buys").click()
    page.locator(".plan").get_by_role("link", name="Go on to the confirmation").click()


def ledger_of(served, name="town"):
    return sp.Ledger.open(served.root / "spinney-studio" / "ledgers" / f"{name}.ledger")


def key_of(page):
    return re.search(r"[0-9a-f]{32}", page.url)[0]


def test_the_whole_way_on_the_made_up_town(page, served, looking):
    """From the first page to a release that the ledger paid for; every page is looked at on the way."""
    looking(page, "start")
    (served.root / "visits").mkdir()
    for name in ("people.csv", "survey.parquet", "register.duckdb"):
        (served.root / name).write_bytes(bytes(20_480))
    page.goto(f"{served.origin}/tables")
    page.get_by_label(re.compile("people.csv")).check()
    looking(page, "tables")
    page.goto(f"{served.origin}/nowhere")
    looking(page)
    page.goto(served.origin)
    page.get_by_role("button", name="Try the town").click()
    page.get_by_label("Largest").first.fill("")
    page.get_by_label("Smallest").nth(1).fill("south")
    page.get_by_role("button", name="Save, and check the table").click()
    alarm = page.get_by_role("alert")
    assert "faults to mend" in alarm.inner_text()
    page.locator("[role=alert]:focus").wait_for()  # the focus is where the faults are
    looking(page, "faults")
    alarm.get_by_role("link").first.click()
    assert page.url.endswith(("#c0-low", "#c0-high", "#c0-type"))
    page.get_by_label("Largest").first.fill("10")
    page.get_by_label("Smallest").nth(1).fill("0")
    page.get_by_role("button", name="Save, and check the table").click()
    page.get_by_text("The table fits the schema").wait_for()
    looking(page, "schema")
    page.get_by_role("link", name="Edit the schema as text").click()
    looking(page, "schema-text")
    page.go_back()

    page.get_by_role("link", name="Go on to the budget").click()
    page.get_by_label("Epsilon").first.fill("a lot")
    page.get_by_label("Make a new ledger").check()
    page.get_by_label("Name", exact=True).fill("town")
    page.get_by_label("Purpose").fill("a map of the town")
    page.get_by_role("button", name="See what it buys").click()
    assert "a lot" in page.get_by_role("alert").inner_text()
    looking(page, themes=("light",))
    page.get_by_label("Epsilon").first.fill("1")
    page.get_by_role("button", name="See what it buys").click()
    page.get_by_role("heading", name="What epsilon 1 buys").wait_for()
    looking(page, "budget")
    page.locator(".plan").get_by_role("link", name="Go on to the confirmation").click()
    looking(page, "confirm")
    assert ledger_of(served).spent == 0
    page.get_by_role("button", name="Spend epsilon 1").click()
    page.get_by_role("heading", name="The release town is made").wait_for()
    looking(page, "done")
    assert ledger_of(served).spent == 1
    assert (served.root / "spinney-studio" / "releases" / "town.spinney").is_file()
    page.get_by_role("link", name="See the ledger").click()
    assert "a map of the town" in page.inner_text("main")
    page.go_back()
    page.get_by_role("link", name="Open the release").click()
    page.get_by_role("heading", name="town").first.wait_for()
    page.goto(served.origin)
    assert page.get_by_role("link", name="town").first.is_visible()
    assert [told for told in page.problems if "404" not in told and "400" not in told] == []


def test_a_link_works_once_and_other_origins_are_refused(page, served, chromium, looking):
    """Another browser with the same link is told how to get a new one; a page of another origin gets nothing."""
    other = chromium.new_context().new_page()
    other.goto(served.link)
    assert "Each link opens the studio once" in other.inner_text("main")
    other.set_viewport_size({"width": 1200, "height": 900})
    looking(other, "used-link")
    elsewhere = chromium.new_context().new_page()
    elsewhere.route("http://evil.example/", lambda route: route.fulfill(body="<title>evil</title>", status=200))
    elsewhere.goto("http://evil.example/")
    answer = elsewhere.evaluate(
        "url => fetch(url, {method: 'POST', credentials: 'include'}).then(() => 'read', () => 'refused')",
        f"{served.origin}/tables/town",
    )
    assert answer == "refused"
    assert list((served.root / "spinney-studio" / "drafts").iterdir()) == []
    other.context.close()
    elsewhere.context.close()
    cookies = page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert page.evaluate("document.cookie") == ""


def test_two_tabs_and_a_server_that_is_killed_charge_once(page, served, chromium):
    """Drafts, the release that was being made and the ledger are there after a start anew, with a new link.

    The draft is made without JavaScript on a narrow screen: all forms work, and pages that wait load themselves again.
    """
    plain = chromium.new_context(java_script_enabled=False, viewport={"width": 360, "height": 800})
    plain.add_cookies(page.context.cookies())
    draft = plain.new_page()
    draft.goto(served.origin)
    to_confirmation(draft)
    key, confirmation = key_of(draft), draft.url.removeprefix(served.origin)
    plain.close()
    served.end(signal.SIGKILL)
    served.start()
    page.goto(served.link)
    page.get_by_role("link", name="town").wait_for()
    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(served.origin + confirmation)
    page.get_by_role("button", name="Spend epsilon 1").dblclick()
    other.get_by_role("button", name="Spend epsilon 1").click()
    other.get_by_role("heading", name=re.compile("Making the release|is made")).wait_for()
    page.get_by_role("heading", name=re.compile("Making the release|is made")).wait_for()
    assert page.url == other.url
    served.end(signal.SIGKILL)  # the worker goes on
    served.start()
    page.goto(served.link)
    page.wait_for_url(f"{served.origin}/")
    page.goto(f"{served.origin}/jobs/{key}")
    page.get_by_role("heading", name="The release town is made").wait_for()
    assert ledger_of(served).spent == 1
    assert len(list((served.root / "spinney-studio" / "releases").glob("*.spinney"))) == 1


def test_a_job_that_is_cancelled_says_that_it_was_charged(page, served, looking):
    """A job that a server before this one has begun: it is found, moves by itself, and can be stopped."""
    six_columns(served.root)
    workspace = Workspace(Root(served.root))
    key, jobs = spent_draft(workspace), Jobs(workspace)
    jobs.start(key)
    ledger = sp.Ledger.open(served.root / "big.ledger")
    end = time.monotonic() + 40
    while not ledger.charges and time.monotonic() < end:
        time.sleep(0.05)
    page.goto(f"{served.origin}/jobs/{key}")
    page.get_by_role("heading", name="Making the release").wait_for()
    looking(page, "running", themes=("light",))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="was cancelled").wait_for()
    assert page.get_by_role("heading", name="It was charged").is_visible()
    looking(page, "cancelled")
    assert ledger.spent == 1
    assert workspace.releases() == []
    while jobs.workers.is_alive(f"fit {key}"):
        time.sleep(0.05)


def test_a_file_is_dropped_and_the_keyboard_goes_everywhere(page, served):
    """A file dropped on the first page is opened; buttons and fields are reached by Tab, the skip link first."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"Browse the folder", "Send it", "Try the town"} <= reached
    page.evaluate(
        """() => {
        const carried = new DataTransfer();
        carried.items.add(new File(["x,y\\n1,2\\n3,4\\n"], "dropped.csv", {type: "text/csv"}));
        const dropped = new DragEvent("drop", {dataTransfer: carried, bubbles: true});
        document.querySelector("[data-drop]").dispatchEvent(dropped);
        }"""
    )
    page.wait_for_url("**/schema")
    assert "dropped" in page.inner_text("h1")
    assert (served.root / "spinney-studio" / "tables" / "dropped.csv").is_file()
