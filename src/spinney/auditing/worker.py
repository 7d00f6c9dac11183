"""A process that plays games: reads them from standard input, and writes each verdict as a line of JSON when it has it.

Started by `runner`; `python -m spinney.auditing.worker`.
"""

from __future__ import annotations

import json
import sys
import warnings


def main() -> None:
    """Play what standard input asks for."""
    from spinney.auditing.battery import Spec
    from spinney.auditing.runner import play_in_turn, verdict_to_dict
    from spinney.errors import PrivacyWarning, SchemaWarning

    for category in (PrivacyWarning, SchemaWarning):
        warnings.simplefilter("ignore", category)
    request = json.load(sys.stdin)
    specs = [Spec(**entry) for entry in request["games"]]
    for verdict in play_in_turn(specs, request["seconds"], request["errors"]):
        print(json.dumps(verdict_to_dict(verdict)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
