"""Releases and ledgers in a browser: a release alone, conditions, questions, pairs by keyboard, downloads, requests."""

from __future__ import annotations

import io

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from browser.conftest import SCREENSHOTS, WIDTH, Served, keep_picture, look
from spinney.privacy.accounts.sqlite import SqliteStore
from support.shown_releases import put_releases

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def served(chromium, tmp_path_factory):
    """A studio over a folder with releases, and a ledger with requests of somebody else."""
    root = tmp_path_factory.mktemp("views")
    put_releases(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "user", lambda _self: "analyst")
        ledger = sp.Ledger.create(root / "people.ledger", limit="3", delta="1e-5", approval=True)
        for purpose in ("map of the town", "a second look"):
            ledger.request("0.5", "1e-6", purpose=purpose)
    running = Served(root)
    yield running
    running.end()


@pytest.fixture(scope="module")
def page(chromium, served):
    """One tab for all tests, which has come in."""
    context = chromium.new_context(
        viewport={"width": WIDTH, "height": 900}, color_scheme="light", accept_downloads=True
    )
    context.set_default_timeout(25_000)
    tab = context.new_page()
    tab.goto(served.link)
    tab.wait_for_url(f"{served.origin}/")
    yield tab
    context.close()


def ready(page, name: str | None = None, *, themes: tuple[str, ...] = ("light", "dark")) -> None:
    """Wait until a page that works has worked, and its pictures are there; then look at it."""
    page.wait_for_selector("[data-reload]", state="detached")
    page.evaluate("for (const one of document.images) one.loading = 'eager'")
    for _ in range(200):
        if page.evaluate("[...document.images].every((one) => one.complete)"):
            break
        page.wait_for_timeout(50)
    assert page.evaluate("[...document.images].filter((one) => !one.naturalWidth).length") == 0
    page.evaluate("scrollTo(0, 0)")
    look(page, name, themes=themes)


def test_a_release_alone_is_opened_by_path_and_by_hand(page, served):
    """An analyst opens a file without a table; a damaged one is refused in clear words."""
    page.goto(f"{served.origin}/releases")
    ready(page, "releases", themes=("light",))
    page.get_by_label("A release file").set_input_files(
        {"name": "bad.spinney", "mimeType": "application/octet-stream", "buffer": b"not a release"}
    )
    page.locator("form[data-drop] button[type=submit]").click()
    page.get_by_role("alert").wait_for()
    assert "bad.spinney" in page.get_by_role("alert").inner_text()
    page.get_by_label("Path").fill("people.spinney")
    page.locator("form[action='/releases/at'] button").click()
    page.get_by_role("heading", name="What is promised, and to whom").wait_for()
    ready(page, "release")
    assert page.get_by_text("The card and the released numbers agree").is_visible()


def test_a_condition_shows_columns_and_rows_under_it(page, served):
    page.get_by_role("link", name="Columns", exact=True).click()
    page.get_by_role("heading", name="Every column").wait_for()
    ready(page, "release-columns", themes=("light",))
    page.get_by_text("Columns and their values").click()
    page.get_by_role("button", name="region", exact=True).click()
    field = page.get_by_label("A condition, or nothing for all rows")
    assert field.input_value() == "region = north"
    field.fill("age in 30..40 and sexx = male")
    page.get_by_role("button", name="Show").click()
    assert "did you mean 'sex'" in page.locator("#where-fault").inner_text()
    page.get_by_label("A condition, or nothing for all rows").fill("age in 30..40 and sex = male")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("heading", name="How many meet it").wait_for()
    ready(page, "release-condition", themes=("light",))
    ages = [int(text) for text in page.locator("table.rows tbody td:first-child").all_inner_texts()]
    assert len(ages) == 12
    assert all(30 <= age <= 40 for age in ages)
    assert set(page.locator("table.rows tbody td:nth-child(2)").all_inner_texts()) == {"male"}


def test_a_pair_is_chosen_by_keyboard(page, served):
    """One stop of the Tab key, arrows between cells, Enter shows the pair and puts the focus on it."""
    page.get_by_role("link", name="Pairs", exact=True).click()
    page.get_by_role("heading", name="How strongly columns depend").wait_for()
    page.wait_for_load_state()
    cells = page.locator("a.cell")
    assert cells.count() == 6
    assert page.locator("a.cell[tabindex='0']").count() == 1
    page.locator("a.cell[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    chosen = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert chosen.startswith("sex and region")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="sex by region").wait_for()
    page.locator("#pair-h:focus").wait_for()
    ready(page, "release-pairs")


def test_a_question_is_put_together_and_answered(page, served):
    page.get_by_role("link", name="Questions", exact=True).click()
    page.get_by_label("What is asked for").select_option("mean")
    page.get_by_label("Of the column").select_option("income")
    page.get_by_label("By", exact=True).select_option("region")
    page.get_by_label("Where", exact=True).fill("age in 30..60")
    page.get_by_role("button", name="Ask").first.click()
    page.get_by_role("heading", name="mean(income) by region where age in 30..60").wait_for()
    assert page.get_by_role("region", name="Answers").locator("tbody tr").count() == 4
    ready(page, "release-questions", themes=("light",))
    page.get_by_label("Question", exact=True).fill("median(regoin)")
    page.get_by_role("button", name="Ask").last.click()
    assert "did you mean 'region'" in page.locator("#q-fault").inner_text()


def test_downloads_are_what_was_asked_for(page, served):
    """Rows of a seed and a condition as CSV and as Parquet, the file itself, and the report in a page of its own."""
    page.get_by_role("link", name="Downloads", exact=True).click()
    ready(page, "release-downloads", themes=("light",))
    page.get_by_label("How many rows").fill("200")
    page.get_by_label("Seed").fill("5")
    page.get_by_label("Where", exact=True).fill("age in 30..40")
    wanted = sp.load(served.root / "people.spinney").sample(200, seed=5, where={"age": (30, 40)}, frame="pyarrow")
    with page.expect_download() as csv:
        page.get_by_role("button", name="Draw and download").click()
    rows = pacsv.read_csv(io.BytesIO(csv.value.path().read_bytes()))
    assert csv.value.suggested_filename == "people-synthetic.csv"
    assert rows["age"].to_pylist() == wanted["age"].to_pylist()
    assert rows["region"].to_pylist() == wanted["region"].to_pylist()
    page.get_by_label("Parquet").check()
    with page.expect_download() as parquet:
        page.get_by_role("button", name="Draw and download").click()
    assert pq.read_table(parquet.value.path()).equals(wanted)
    with page.expect_download() as file:
        page.get_by_role("link", name="Release file").click()
    assert file.value.path().read_bytes() == (served.root / "people.spinney").read_bytes()
    page.get_by_label("Title").fill("Persons of a made-up land")
    page.get_by_role("button", name="Show it").click()
    page.get_by_role("heading", name="Persons of a made-up land").wait_for()
    assert page.evaluate("window.origin") == "null"  # a sandbox of its own
    page.go_back()


def test_the_map_is_drawn(page, served):
    page.goto(f"{served.origin}/releases/at?path=town.spinney")
    page.get_by_role("heading", name="The map of lon and lat").wait_for()
    ready(page, themes=("dark",))
    page.emulate_media(color_scheme="dark")
    page.locator("figure.map").scroll_into_view_if_needed()
    if SCREENSHOTS:
        keep_picture(page, "release-map")
    page.emulate_media(color_scheme="light")


def test_releases_stand_side_by_side(page, served):
    page.goto(f"{served.origin}/compare")
    ready(page, themes=("light",))
    page.get_by_label("people people.spinney").check()
    page.get_by_label("people-small").check()
    page.get_by_role("button", name="Show them side by side").click()
    page.get_by_role("heading", name="What each promises").wait_for()
    assert page.get_by_role("img", name="Distribution of income").count() == 2
    ready(page, "compare", themes=("light",))


def test_requests_are_approved_and_denied(page, served):
    """Somebody else's requests: one is approved and one denied, each after a confirmation, and both are on record."""
    page.goto(f"{served.origin}/ledgers?place=people.ledger")
    page.get_by_role("heading", name="What is spent, and what is left").wait_for()
    ready(page, "ledger")
    page.get_by_role("link", name=": decide").last.click()
    ready(page, "ledger-request", themes=("light",))
    page.get_by_label("approve request").check()
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("decided by").wait_for()
    page.get_by_role("link", name="people.ledger").click()
    page.get_by_role("link", name=": decide").click()
    page.get_by_label("Why").fill("too much for a draft")
    page.get_by_label("deny request").check()
    page.get_by_role("button", name="Deny").click()
    page.get_by_text("too much for a draft").wait_for()
    states = [request.state for request in sp.Ledger.open(served.root / "people.ledger").requests]
    assert states == ["approved", "denied"]
    page.goto(f"{served.origin}/ledgers")
    ready(page, themes=("dark",))
