"""How to check a release: what was verified here and now, digests, versions, and the commands that repeat it."""

from __future__ import annotations

import platform
from typing import Any

from spinney.release.model import Release
from spinney.release.storage import FORMAT_VERSION, digest
from spinney.release.verification import verification
from spinney.schema.digests import schema_digest
from spinney.shown import brief
from spinney.version import full_version


def evidence_part(release: Release) -> dict[str, Any]:
    """Digests, versions and checks as plain data."""
    try:
        checks, problem = list(verification(release).checks), None
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as err:  # as `load` does
        checks, problem = [], f"it could not be verified: {brief(str(err))}"
    return {
        "digest": digest(release),
        "schema_digest": schema_digest(release.schema if release.card.people is None else release.card.people),
        "fitted_with": release.card.spinney_version,
        "reported_with": full_version(),
        "python": platform.python_version(),
        "format_version": FORMAT_VERSION,
        "checks": checks,
        "problem": problem,
        "commands": [
            {"command": "spinney verify RELEASE", "does": "computes the guarantee again from the charges in the file"},
            {
                "command": "spinney verify RELEASE --schema schema.toml --ledger people.ledger --key office.pub.pem",
                "does": "also checks it against the schema that was stated beforehand, the ledger and the signature",
            },
            {
                "command": "spinney audit RELEASE",
                "does": "plays games against the code that made it, and sets what they find beside what is claimed",
            },
            {"command": "spinney card RELEASE", "does": "prints the card that this report is made from"},
            {
                "command": "spinney report RELEASE --out report.html",
                "does": "makes a page of the same release, digest included; add --ledger and what was stated",
            },
            {
                "command": "spinney sample RELEASE --out rows.csv",
                "does": "draws rows, at no cost, as often as you like",
            },
        ],
    }
