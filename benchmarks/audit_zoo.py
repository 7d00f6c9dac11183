"""Every sabotaged mechanism of the tests against the audit: which game catches it, and in how many seconds.

    python -m benchmarks.audit_zoo [--seconds 20] [--only NAME] [--out FILE]

Each sabotage is played by itself, at an error probability of 5 % spread over all of them, for a second at first and
longer while it is not caught, up to `--seconds`; and the same game without sabotage, for as long as it took, which must
not be flagged.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from spinney.errors import PrivacyWarning, SchemaWarning
from spinney_audit.audit import ERROR
from spinney_audit.game import run


def main() -> int:
    from support.audit_zoo import ZOO, Caught, made

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for category in (PrivacyWarning, SchemaWarning):
        warnings.simplefilter("ignore", category)
    entries = [(zoo, name, entry) for zoo, cages in ZOO.items() for name, entry in cages.items()]
    error = ERROR / (2 * len(entries))
    found, n_missed = [], 0
    for zoo, name, entry in entries:
        if options.only and options.only not in f"{zoo}: {name}":
            continue
        record = {"zoo": zoo, "sabotage": name}
        if not isinstance(entry, Caught):
            record |= {"caught": None, "why": entry}
            print(f"{zoo:13} {name:40} not visible: {entry}", flush=True)
            found.append(record)
            continue
        seconds, caught = 1.0, False
        while True:
            game, sabotage = made(entry)
            with sabotage:
                begun = time.perf_counter()
                verdict = run(game, seconds=seconds, error=error)
                taken = time.perf_counter() - begun
            caught = verdict.finding.exceeds
            if caught or seconds >= options.seconds:
                break
            seconds = min(3 * seconds, options.seconds)
        sound = run(entry.game(), seconds=seconds, error=error)
        claim, bound = verdict.finding.claim, verdict.finding.bound
        record |= {
            "caught": caught,
            "game": f"{game.family}: {game.title}",
            "unit": game.unit.value,
            "currency": verdict.finding.currency,
            "claim": claim,
            "bound": bound,
            "seconds": round(taken, 1),
            "coins": verdict.n_coins,
            "sound_bound": sound.finding.bound,
            "sound_claim": sound.finding.claim,
            "sound_is_flagged": sound.finding.exceeds,
        }
        n_missed += not caught or sound.finding.exceeds
        said = "caught" if caught else "MISSED"
        flagged = "  SOUND ONE FLAGGED" if sound.finding.exceeds else ""
        print(
            f"{zoo:13} {name:40} {said}: bound {bound:.3f} of {claim:.3f} in {taken:.1f} s by {game.family} "
            f"({game.title}); sound {sound.finding.bound:.3f} of {sound.finding.claim:.3f}{flagged}",
            flush=True,
        )
        found.append(record)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return int(n_missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
