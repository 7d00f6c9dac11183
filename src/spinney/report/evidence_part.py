"""How to check a release: what was verified here and now, digests, versions, and the commands that repeat it."""

from __future__ import annotations

import platform
from importlib import import_module
from typing import Any

from spinney.release.model import Release
from spinney.release.storage import FORMAT_VERSION, digest
from spinney.release.verification import verification
from spinney.schema.digests import schema_digest
from spinney.shown import brief


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
        "reported_with": import_module("spinney").__version__,
        "python": platform.python_version(),
        "format_version": FORMAT_VERSION,
        "checks": checks,
        "problem": problem,
        "commands": [
            {"command": "spinney verify RELEASE", "does": "computes the guarantee again from the charges in the file"},
            {"command": "spinney card RELEASE", "does": "prints the card that this report is made from"},
            {"command": "spinney report RELEASE --out report.html", "does": "makes this page again, digest included"},
            {
                "command": "spinney sample RELEASE --out rows.csv",
                "does": "draws rows, at no cost, as often as you like",
            },
        ],
    }
