"""`sp.audit`: an independent look at our own mechanisms, on the user's machine, with made-up tables."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spinney.auditing.battery import FAMILIES, checked_families, of_release, standard
from spinney.auditing.result import AuditResult
from spinney.auditing.runner import ERROR, play_all
from spinney.errors import ParameterError, PrivacyWarning, SchemaWarning
from spinney.parallel import available_processors
from spinney.release.model import Release
from spinney.release.storage import load
from spinney.shown import as_given

_WORKERS = 2
_SHORT = 15.0  # with fewer seconds than this, starting other processes takes most of them


def audit(
    release: Any = None,
    *,
    seconds: float = 120,
    families: str | Sequence[str] | None = None,
    black_box: bool = False,
    workers: int | None = None,
) -> AuditResult:
    """Play distinguishing games against Spinney's mechanisms, and bound what they leak from below.

    Every game runs the real code on two neighbouring tables, again and again, with entropy of the operating system, and
    guesses which of them it was. Tables are made up, so no private one is needed and nothing is charged to any account.

    Args:
        release: audit the whole method of this release at its epsilon and delta, and its parts with the numbers of its
            charges; a path or a loaded one. By default a standard battery of all mechanisms.
        seconds: about how long to play, on the clock.
        families: the kinds of mechanisms, such as "tables" or ["counts", "decisions"]; by default all.
        black_box: look at rows drawn from whole releases instead of the noisy numbers that these hold.
        workers: how many processes play beside each other; 1 plays in this one. By default 2 where there is time.

    Returns:
        The bounds beside the claims, each with the leak that its game could have missed. `verdict` is "failed" if a
        bound exceeds its claim: then more leaks than was charged, with a confidence of 95 % over all games together. It
        is "could not tell" if no game had the coins to show a leak of four times its claim, "passed in part" if some
        had not, and else "passed". Of a release that was charged nothing there is nothing to play, so that it is
        "nothing to test".

    Raises:
        ParameterError: a value is out of range.
        FileError: the release cannot be read.
    """
    given = _checked_seconds(seconds)
    asked = checked_families(families)
    n_workers = _checked_workers(workers, given)
    if release is not None and black_box:
        raise ParameterError(
            "black_box=True plays with whole fits of its own tables; leave release out, or black_box with it"
        )
    begun = time.perf_counter()
    if release is None:
        specs, of = standard(asked, black_box=black_box), "the standard battery"
        if not specs:
            whole = ", ".join(repr(name) for name in FAMILIES if name.startswith("whole"))
            raise ParameterError(f"black_box=True has games of whole fits only; the families are {whole}")
    else:
        loaded = release if isinstance(release, Release) else load(release)
        of = "a release" if isinstance(release, Release) else f"the release {Path(release).name}"
        if not loaded.card.events:
            return AuditResult((), 1 - ERROR, time.perf_counter() - begun, of)
        specs = of_release(loaded.card, asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.simplefilter("ignore", SchemaWarning)
        verdicts = play_all(specs, seconds=given, workers=n_workers)
    return AuditResult(tuple(verdicts), 1 - ERROR, time.perf_counter() - begun, of, black_box)


def _checked_seconds(seconds: Any) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 1 <= seconds <= 86_400:
        raise ParameterError(f"seconds={as_given(seconds)} is not between 1 and 86400; 120 is a good audit")
    return float(seconds) if math.isfinite(seconds) else 120.0


def _checked_workers(workers: Any, seconds: float) -> int:
    if workers is None:
        return min(_WORKERS, available_processors()) if seconds >= _SHORT else 1
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 64:
        raise ParameterError(f"workers={as_given(workers)} is not a whole number from 1 to 64")
    return workers
