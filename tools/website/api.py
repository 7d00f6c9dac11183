"""Pages of the API reference, one directive for each public name; mkdocstrings fills them from docstrings.

Columns and rules answer many questions of the engine that users never ask; of these only the class with its arguments
is shown. Of everything else all public methods are, with those that are inherited.
"""

from __future__ import annotations

from importlib.util import find_spec

import spinney
import spinney.errors
import spinney.metrics
from spinney_paper import kernels

_COLUMNS = ["Real", "Integer", "Boolean", "Category", "Date", "Datetime", "Time", "Identifier", "Ignore"]
_RULES = ["AtMost", "EmptyWhen", "Implies", "Derived", "Sum", "First", "NeverAfter"]
_GROUPS = {
    "schemas": ("Schemas and tables", ["Schema", "Place", "Tables", "Link", "CSV"]),
    "columns": ("Columns", _COLUMNS),
    "rules": ("Rules", _RULES),
    "synthesizers": (
        "Fit",
        [
            *("synthesize", "check", "plan", "KDTreeSynthesizer", "ForestSynthesizer", "LinkedSynthesizer"),
            *("GridSynthesizer", "PaperTreeSynthesizer"),
        ],
    ),
    "releases": ("Releases and answers", ["Release", "load", "analyse", "combine", "buy_answer", "plot"]),
    "accounts": ("Ledgers, audits, entropy", ["Ledger", "audit", "UnsafeSeededEntropy"]),
}
_HIDDEN = {"to_members", "from_members", "verify_contents", "verify_model", "unverified", "get_metadata_routing"}
_ALONE = "    options:\n      members: []\n"
_ALL = "    options:\n      inherited_members: true\n      filters: ['!^_', '!^({})$']\n".format(
    "|".join(sorted(_HIDDEN))
)


def api_pages() -> dict[str, str]:
    """Markdown of the pages by their paths, in the order of the navigation."""
    public = [name for name in spinney.__all__ if not name.startswith("_")]
    groups = {key: (title, [name for name in names if name in public]) for key, (title, names) in _GROUPS.items()}
    placed = {name for _, names in groups.values() for name in names} | {"SpinneyError"}
    others = [name for name in public if name not in placed]
    if others:
        groups["others"] = ("Others", others)
    pages = {}
    for key, (title, names) in groups.items():
        text = f"# {title}\n\n`import spinney as sp`; the [library page](../library.md) has an overview.\n\n"
        for name in names:
            text += f"::: spinney.{name}\n{_ALONE if name in _COLUMNS + _RULES else _ALL}\n"
        pages[f"reference/api/{key}.md"] = text
    pages["reference/api/metrics.md"] = _metrics()
    pages["reference/api/errors.md"] = _errors()
    return pages


def _metrics() -> str:
    text = "# Metrics\n\n`from spinney import metrics`.\n"
    text += "Every metric reads the real table and adds no noise: none is private "
    text += "([compare with the real table](../../how-to/compare.md)).\n\n"
    text += "".join(f"::: {metric_path(name)}\n{_ALL}\n" for name in spinney.metrics.__all__)
    text += "\n## Kernel distances\n\n`from spinney_paper import kernels`; these are not private either.\n\n"
    return text + "".join(f"::: spinney_paper.kernels.{name}\n{_ALL}\n" for name in kernels.__all__)


def metric_path(name: str) -> str:
    """Where a metric is to be found; one that is called as its module is, would be taken for the module."""
    path = f"spinney.metrics.{name}"
    return f"{path}.{name}" if find_spec(path) is not None else path


def error_names() -> list[str]:
    """The errors and warnings that a caller may catch, in the order of their file."""
    return [
        name
        for name, value in vars(spinney.errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and not name.startswith("_")
    ]


def _errors() -> str:
    text = "# Errors\n\n`sp.SpinneyError` is the base of all of them; the others are in `spinney.errors`.\n\n"
    return text + "".join(f"::: spinney.errors.{name}\n{_ALONE}\n" for name in error_names())
