"""`sp.audit`: distinguishing games against our own mechanisms, on made-up tables. No private table is read.

Every game plays a mechanism on two neighbouring tables and bounds from below what its output reveals
(`game.py`); a bound above the claim is a broken guarantee. `battery.py` says which games are played. They are
played within a stated time, in this process or in others, which share nothing: no entropy, no compiled state,
no locks.

    page     the result as one page of HTML
    runner   games dealt out to processes, within the time
    JSON     verdicts as data that travels between processes
    result   `AuditResult`: every game with its claim and its lower bound
    audit    `audit`, and the check of its options
    worker   the process that plays
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from spinney.documents import Document, Documented, Facts, Table
from spinney.errors import ParameterError, PrivacyWarning, SchemaWarning, SpinneyError
from spinney.machine import THREADS, available_processors, load_optional
from spinney.progress import Bar, progress_bar
from spinney.release.file import load
from spinney.release.release import Release
from spinney.report.draw import new_figure, to_svg
from spinney.text import aligned, as_given
from spinney_audit.battery import FAMILIES, Spec, checked_families, of_release, standard
from spinney_audit.game import POWER, TELLING, Finding, Tally, Verdict, run

# ----------------------------------------------------------------------------------------------------------------- page
# The audit as one self-contained HTML page: bars of lower bounds beside claims, and every game in a table.


_COLOURS = {"exceeds": "#b3261e", "open": "#9a9a9a", "": "#2f6f4f"}


def page(result: AuditResult) -> str:
    """The page as text. Everything in it is escaped, and nothing is loaded from elsewhere."""
    jinja2 = load_optional("jinja2", "a page of an audit")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((Path(__file__).parent / "templates" / "audit.html").read_text("utf-8"))
    looks = [_look_of(verdict.finding) for verdict in result.verdicts]
    rows = [(cells(verdict), look, verdict.path) for verdict, look in zip(result.verdicts, looks, strict=True)]
    verdict = result.verdict.replace(" ", "-")
    return str(template.render(heads=HEADS, rows=rows, summary=result.summary(), verdict=verdict, bars=_bars(result)))


def _look_of(finding: Finding) -> str:
    """The class of a row of the table."""
    return "exceeds" if finding.exceeds else "" if finding.tells else "open"


def _bars(result: AuditResult) -> str:
    """Of each family the bound that comes nearest to its claim, as a share of it, in SVG."""
    families = list(result.families.items())[::-1]
    axes = new_figure(7, 0.6 + 0.32 * len(families)).subplots()
    colours = [_COLOURS[_look_of(verdict.finding)] for _, verdict in families]
    axes.barh([name for name, _ in families], [ratio_of(verdict) for _, verdict in families], color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("lower bound, as a share of the claim")
    axes.spines[["top", "right"]].set_visible(False)
    nearest = "The bound of each family that comes nearest to its claim; the table holds the same numbers."
    return to_svg(axes, name="bounds", title="Lower bounds beside claims", description=nearest)


# --------------------------------------------------------------------------------------------------------------- runner
# Plays a battery within its time, in this process or in others beside each other.
#
# Other processes are started afresh and told by text what to play, so nothing is shared: no entropy, no compiled
# state, no locks. Each draws from the operating system by itself.


# What an audit may be wrong about a sound library with, over all its games together.
ERROR = 0.05
# The part of the time that is left for starting and judging.
_SPARE = 0.08
_SHORTEST = 0.3
_LONG = 86_400.0


def play_all(specs: Sequence[Spec], *, seconds: float, workers: int, error: float = ERROR) -> list[Verdict]:
    """Verdicts in the order of the games, each of which may be wrong with its part of `error`.

    Parts are those of the time: games that take long have few coins, and need more of it.
    """
    whole = sum(spec.weight for spec in specs)
    errors = [error * spec.weight / whole for spec in specs]
    if workers == 1:
        return _in_this_process(specs, seconds, errors)
    with progress_bar(len(specs), "playing games", unit="game") as bar:
        return _beside(specs, seconds, errors, workers, bar)


def _in_this_process(specs: Sequence[Spec], seconds: float, errors: Sequence[float]) -> list[Verdict]:
    order = sorted(range(len(specs)), key=lambda place: -specs[place].weight)
    found: dict[int, Verdict] = {}
    with progress_bar(len(specs), "playing games", unit="game") as bar:
        hand, parts = [specs[place] for place in order], [errors[place] for place in order]
        for place, verdict in zip(order, play_in_turn(hand, seconds, parts), strict=True):
            found[place] = verdict
            bar.update()
    return [found[place] for place in range(len(specs))]


def play_in_turn(specs: Sequence[Spec], seconds: float, errors: Sequence[float]) -> Iterator[Verdict]:
    """Play games one after the other; what one needs less, or more, the others share by their weights.

    The first ones may take all that is left where they need it to tell anything: few games that tell something are
    worth more than many that do not.

    A game whose bound exceeds its claim is played again, with as many new coins, and the second verdict counts: so
    sound mechanisms are taken for broken ones in fewer than one audit of 1 / `error` squared.
    """
    begun = time.perf_counter()
    for place, (spec, error) in enumerate(zip(specs, errors, strict=True)):
        left = (1 - _SPARE) * seconds - (time.perf_counter() - begun)
        weight = sum(other.weight for other in specs[place:])
        given = max(_SHORTEST, left * spec.weight / weight)
        game = spec.make()
        verdict = run(game, seconds=given, error=error, most_seconds=left)
        again = verdict.finding.exceeds
        yield run(game, seconds=_LONG, error=error, most_coins=verdict.n_coins) if again else verdict


def _beside(specs: Sequence[Spec], seconds: float, errors: Sequence[float], workers: int, bar: Bar) -> list[Verdict]:
    """The games dealt out to processes so that all have about as much to do.

    Those that need most come first: what making and judging games takes is then lost to those that have coins to spare.
    """
    dealt: list[list[int]] = [[] for _ in range(min(workers, len(specs)))]
    loads = [0.0] * len(dealt)
    for place in sorted(range(len(specs)), key=lambda place: -specs[place].weight):
        least = loads.index(min(loads))
        dealt[least].append(place)
        loads[least] += specs[place].weight
    said: Queue[tuple[int, Any]] = Queue()
    threads = [
        Thread(
            target=_listen, args=([(place, specs[place], errors[place]) for place in hand], seconds, said), daemon=True
        )
        for hand in dealt
    ]
    for thread in threads:
        thread.start()
    found: dict[int, Verdict] = {}
    while len(found) < len(specs):
        place, answer = said.get()
        if isinstance(answer, str):
            raise SpinneyError(f"a process that played games ended early; run the audit with one worker: {answer}")
        found[place] = verdict_from_dict(answer)
        bar.update()
    return [found[place] for place in range(len(specs))]


def _listen(hand: Sequence[tuple[int, Spec, float]], seconds: float, said: Queue[tuple[int, Any]]) -> None:
    """Start a process, hand it its games, and pass on what it says."""
    errors, games = [error for *_, error in hand], [spec.to_dict() for _, spec, _ in hand]
    request = {"seconds": seconds, "errors": errors, "games": games}
    # A process for each core: threads of its own would only be in the way of others.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", THREADS: "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "spinney_audit.audit"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        left = [place for place, *_ in hand]
        for line in process.stdout:
            said.put((left.pop(0), json.loads(line)))
        if left:
            said.put((-1, process.stderr.read()[-2000:].strip().rpartition("\n")[2] or "no message"))


# ----------------------------------------------------------------------------------------------------------------- JSON
# Verdicts as JSON, which is all that travels between processes.


def verdict_to_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON-ready data."""
    return {
        "family": verdict.family,
        "title": verdict.title,
        "path": verdict.path,
        "unit": verdict.unit,
        "currency": verdict.finding.currency,
        "claim": verdict.finding.claim,
        "bound": verdict.finding.bound,
        "could_miss": None if math.isinf(verdict.finding.could_miss) else verdict.finding.could_miss,
        "ceiling": verdict.finding.ceiling,
        "exceeds": verdict.finding.exceeds,
        "could_exceed": verdict.finding.could_exceed,
        "tells": verdict.finding.tells,
        "coins": verdict.n_coins,
        "guesses": {name: getattr(verdict.tally, name) for name in Tally.__slots__},
        "direction": verdict.direction,
        "seconds": round(verdict.seconds, 2),
        "seconds_to_tell": round(verdict.seconds_to_tell, 2),
        "processor_seconds": round(verdict.processor_seconds, 2),
    }


def verdict_from_dict(described: dict[str, Any]) -> Verdict:
    """Read what `verdict_to_dict` wrote."""
    return Verdict(
        described["family"],
        described["title"],
        described["path"],
        described["unit"],
        Finding(
            described["currency"],
            described["claim"],
            described["bound"],
            described["ceiling"],
            math.inf if described["could_miss"] is None else described["could_miss"],
        ),
        described["coins"],
        Tally(**described["guesses"]),
        described["direction"],
        described["seconds"],
        described["seconds_to_tell"],
        described["processor_seconds"],
    )


# --------------------------------------------------------------------------------------------------------------- result
# AuditResult: every game with its claim and its lower bound, as text, data and a page.


HEADS = ("family", "neighbours", "unit", "by", "claim", "bound", "could miss", "coins", "seconds", "result")
PASSED, IN_PART, NOTHING, FAILED = "passed", "passed in part", "could not tell", "failed"
UNCHARGED = "nothing to test"


@dataclass(frozen=True)
class AuditResult(Documented):
    """What an audit found. `str()` of it is a table; nothing in it comes from a private table.

    Attributes:
        verdicts: the games, in order.
        confidence: with which all bounds hold together.
        seconds: how long everything took.
        of: what was audited: the standard battery, or a release by the name of its file.
        black_box: whether only rows drawn from releases were looked at.
    """

    verdicts: tuple[Verdict, ...]
    confidence: float
    seconds: float
    of: str
    black_box: bool = False

    @property
    def verdict(self) -> str:
        """What the audit comes to: "failed", "could not tell", "passed in part", "passed" or "nothing to test".

        A game whose bound stays below its claim has passed only if it would have caught a leak of four times its claim.
        There are no games of a release that was charged nothing.
        """
        if not self.verdicts:
            return UNCHARGED
        if self.failures:
            return FAILED
        if len(self.open) == len(self.verdicts):
            return NOTHING
        return IN_PART if self.open else PASSED

    @property
    def passed(self) -> bool:
        """Whether no lower bound exceeds its claim, and at least one game could have told if one should have."""
        return self.verdict in (PASSED, IN_PART)

    @cached_property
    def open(self) -> tuple[Verdict, ...]:
        """The games that were too short to tell: a leak of four times their claim could have gone unseen."""
        return tuple(verdict for verdict in self.verdicts if not verdict.finding.tells)

    @cached_property
    def failures(self) -> tuple[Verdict, ...]:
        """The games whose mechanism does not keep its promise, at the stated confidence."""
        return tuple(verdict for verdict in self.verdicts if verdict.finding.exceeds)

    @cached_property
    def families(self) -> dict[str, Verdict]:
        """Of each family the game whose bound comes nearest to its claim, or exceeds it furthest."""
        best: dict[str, Verdict] = {}
        for verdict in self.verdicts:
            if verdict.family not in best or ratio_of(verdict) > ratio_of(best[verdict.family]):
                best[verdict.family] = verdict
        return best

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "of": self.of,
            "verdict": self.verdict,
            "passed": self.passed,
            "could_not_tell": len(self.open),
            "confidence": self.confidence,
            "black_box": self.black_box,
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(sum(verdict.processor_seconds for verdict in self.verdicts), 1),
            "games": [{**verdict_to_dict(verdict), "ratio": ratio_of(verdict)} for verdict in self.verdicts],
        }

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> AuditResult:
        """Read what `to_dict` wrote."""
        games = tuple(verdict_from_dict(game) for game in described["games"])
        return cls(games, described["confidence"], described["seconds"], described["of"], described["black_box"])

    def to_html(self) -> str:
        """The result as one self-contained page. Needs jinja2 and matplotlib."""
        return page(self)

    def document(self) -> Document:
        """The games as notebooks show them, and what they come to."""
        games = Table("games", HEADS, [cells(verdict) for verdict in self.verdicts], is_open=True)
        return Document(f"Audit of {self.of}", [games, Facts([("", line) for line in self.summary()])])

    def __str__(self) -> str:
        if not self.verdicts:
            return "\n".join(self.summary())
        rows = aligned([HEADS, *map(cells, self.verdicts)], right=range(4, len(HEADS) - 1))
        return "\n".join([*rows, "", *self.summary()])

    def summary(self) -> list[str]:
        """What it comes to, in sentences."""
        if self.verdict == UNCHARGED:
            return [
                f"No game was played on {self.of}: it was charged nothing, so its epsilon is 0, and it should hold "
                "nothing of the table but what was stated.",
                f"{UNCHARGED}: `spinney verify` checks what the file holds, and `spinney audit` without a release "
                "plays against the mechanisms.",
            ]
        what = "rows drawn from releases" if self.black_box else "noisy numbers"
        said = [
            f"{len(self.verdicts)} games on {self.of}, looking at {what}, in {self.seconds:.0f} seconds.",
            f"All bounds hold together with a confidence of {self.confidence:.0%}.",
            "A leak below `could miss` could have gone unseen, and so could any that the guesses do not see in full; "
            f"one above it that they see in full is found in {POWER:.0%} of audits.",
            *self._of_the_whole(),
        ]
        if self.open:
            longest = max(verdict.seconds_to_tell for verdict in self.open)
            said.append(
                f"{len(self.open)} of {len(self.verdicts)} games were too short to tell: each could have missed a leak "
                f"of {TELLING:g} times its claim. Each needs longer here, at least up to {_rounded(longest)} seconds."
            )
        if self.failures:
            names = ", ".join(f"{verdict.family} ({verdict.title}, {verdict.unit})" for verdict in self.failures)
            return [
                *said,
                f"FAILED: the lower bound exceeds the claim of {names}. Do not publish what this code releases.",
            ]
        if self.verdict == NOTHING:
            return [*said, "COULD NOT TELL: no game had the coins to show a leak; give more --seconds."]
        n_passed = len(self.verdicts) - len(self.open)
        which = f"{n_passed} of {len(self.verdicts)} games" if self.open else "all games"
        return [*said, f"{self.verdict}: the bounds of {which} stay below their claims. That is no proof of privacy."]

    def _of_the_whole(self) -> list[str]:
        """What the games of whole fits came to, which come nearest to what a release promises."""
        said = []
        for verdict in self.verdicts:
            if not verdict.family.startswith("whole"):
                continue
            finding = verdict.finding
            unseen = "any leak" if math.isinf(finding.could_miss) else f"up to {finding.could_miss:.3g}"
            said.append(
                f"{verdict.family} ({verdict.title}, {verdict.unit}): {finding.currency} is at least "
                f"{finding.bound:.3g} of {finding.claim:.3g}, and could have been missed: {unseen}; {outcome(verdict)}."
            )
        if not said:
            said.append("No whole fit was played: these games are about parts of a fit, each by itself.")
        return said


def ratio_of(verdict: Verdict) -> float:
    """The bound over the claim."""
    return verdict.finding.bound / verdict.finding.claim if verdict.finding.claim > 0 else 0.0


def cells(verdict: Verdict) -> tuple[str, ...]:
    """A game as cells of a table."""
    finding = verdict.finding
    return (
        verdict.family,
        verdict.title,
        verdict.unit,
        finding.currency,
        f"{finding.claim:.3f}",
        f"{finding.bound:.3f}",
        "any leak" if math.isinf(finding.could_miss) else f"{finding.could_miss:.3f}",
        f"{verdict.n_coins:,}",
        f"{verdict.seconds:.1f}",
        outcome(verdict),
    )


def outcome(verdict: Verdict) -> str:
    """What one game came to, in a word or two."""
    if verdict.finding.exceeds:
        return "EXCEEDED"
    if verdict.finding.tells:
        return "below the claim"
    return "too short to tell" if verdict.finding.could_exceed else "could not have failed"


def _rounded(seconds: float) -> str:
    """A number of seconds to two digits, rounded up."""
    unit = 10 ** max(math.floor(math.log10(max(seconds, 1))) - 1, 0)
    return f"{math.ceil(seconds / unit) * unit:,.0f}"


# ---------------------------------------------------------------------------------------------------------------- audit
# `sp.audit`: an independent look at our own mechanisms, on the user's machine, with made-up tables.


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


# --------------------------------------------------------------------------------------------------------------- worker
# A process that plays games: it reads them from standard input, and writes each verdict as a line of JSON when
# it has it.
#
# The runner starts it with `python -m spinney_audit.audit`.


def main() -> None:
    """Play what standard input asks for."""
    from spinney.errors import PrivacyWarning, SchemaWarning
    from spinney_audit.battery import Spec

    for category in (PrivacyWarning, SchemaWarning):
        warnings.simplefilter("ignore", category)
    request = json.load(sys.stdin)
    specs = [Spec(**entry) for entry in request["games"]]
    for verdict in play_in_turn(specs, request["seconds"], request["errors"]):
        print(json.dumps(verdict_to_dict(verdict)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
