"""The report of a release, as the studio shows it and hands it out: the page and its JSON twin.

What the studio has on record of a release is used: the ledger that paid for it, and when it was made.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spinney.privacy.ledger import Ledger
from spinney.release.in_ledger import find_charge
from spinney.report.contents import ReportContents, report_contents
from spinney.report.page import report_html, report_json
from spinney.report.promise_part import together_part
from spinney.studio.releases.loaded import LEVEL, contents, loaded

STATED = ("title", "purpose", "contact", "licence")
# Where the ledger of a release is, its population, and its head: what was worked out of it holds as long as that stays.
LedgerAt = tuple[str, str | None, str]


def report_page(path: str, digest: str, stated: tuple[str, ...], made: str, ledger: LedgerAt | None) -> str:
    """The report as one page; `stated` are the texts of `STATED`, in their order."""
    return report_html(_contents(path, digest, stated, made, ledger))


def report_twin(path: str, digest: str, stated: tuple[str, ...], made: str, ledger: LedgerAt | None) -> str:
    """The same as JSON."""
    return report_json(_contents(path, digest, stated, made, ledger))


def promised_together(path: str, digest: str, ledger: LedgerAt) -> dict[str, Any]:
    """What all releases on the ledger of a release promise together."""
    release, account = loaded(path, digest), Ledger.open(ledger[0], population=ledger[1])
    return together_part(release.card, account, has_this=find_charge(account, release) is not None)


@lru_cache(maxsize=4)
def _contents(path: str, digest: str, stated: tuple[str, ...], made: str, ledger: LedgerAt | None) -> ReportContents:
    if not any((*stated, made, ledger)):
        return contents(path, digest)
    texts = {name: text or None for name, text in zip(STATED, stated, strict=True)}
    account = None if ledger is None else Ledger.open(ledger[0], population=ledger[1])
    return report_contents(loaded(path, digest), level=LEVEL, ledger=account, made=made or None, **texts)
