"""The glossary: fifteen words, each explained in a few lines and used elsewhere, and a table of our names."""

import re
from pathlib import Path

from support.in_one_test import in_one_test

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/explain/glossary.md"
PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if page != GLOSSARY]
WORDS = (
    "Differential privacy",
    "Epsilon",
    "Delta",
    "Unit of privacy",
    "Person",
    "Weight",
    "Hidden level",
    "Schema",
    "Bounds",
    "Release",
    "Card",
    "Ledger",
    "Cell",
    "Leaf",
    "Forest",
)
# How pages write what the glossary names in other words.
ALSO = {"Differential privacy": "differentially private", "Unit of privacy": "replace-one", "Leaf": "leaves"}


def entries() -> dict[str, str]:
    """The text of every entry, by its word."""
    words, names, _ = GLOSSARY.read_text().partition("\n## Names in files, code and output\n")
    assert names
    _, *parts = re.split(r"^## ", words, flags=re.MULTILINE)
    return {word: text.strip() for word, _, text in (part.partition("\n") for part in parts)}


def test_the_glossary_has_these_fifteen_words():
    """A word more or less is a decision, so it is made here too."""
    assert tuple(entries()) == WORDS
    assert len(WORDS) == 15


@in_one_test("word", WORDS)
def test_an_entry_is_short_and_leads_to_a_page(word):
    """One to three sentences, one a line, with a link to where the word is used."""
    lines = entries()[word].splitlines()
    assert 1 <= len(lines) <= 3
    assert all(line.endswith(".") for line in lines)
    assert re.search(r"\]\((\.\./)?[\w/-]+\.md", lines[-1])


@in_one_test("word", WORDS)
def test_a_word_is_used_on_other_pages(word):
    """What only the glossary says nobody must know."""
    spelt = re.compile(rf"\b({word}|{ALSO.get(word, word)})s?\b", re.IGNORECASE)
    assert sum(bool(spelt.search(page.read_text())) for page in PAGES) >= 2


def test_links_to_an_entry_name_one():
    """Pages that link to a word of the glossary link to one that is there, and several do."""
    known = {word.lower().replace(" ", "-") for word in WORDS}
    named = [anchor for page in PAGES for anchor in re.findall(r"glossary\.md#([\w-]+)", page.read_text())]
    assert set(named) <= known
    assert len(set(named)) >= 6
    assert "docs/explain/glossary.md" in (ROOT / "README.md").read_text()


def test_links_inside_pages_lead_to_headings():
    """Anchors of the glossary's own links are headings of the pages that they name."""
    for page, anchor in re.findall(r"\]\(([^)#]+)#([^)]+)\)", GLOSSARY.read_text()):
        headings = re.findall(r"^#+ (.+)$", (GLOSSARY.parent / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{page} has no heading for #{anchor}"
