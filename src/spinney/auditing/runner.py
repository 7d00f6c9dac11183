"""Plays a battery within its time, in this process or in others beside each other.

Other processes are started afresh and told by text what to play, so nothing is shared: no entropy, no compiled state,
no locks. Each draws from the operating system by itself.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from queue import Queue
from threading import Thread
from typing import Any

from spinney.auditing.battery import Spec
from spinney.auditing.claims import Finding, Tally
from spinney.auditing.game import Verdict, run
from spinney.errors import SpinneyError
from spinney.parallel import THREADS
from spinney.progress import Bar, progress_bar

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
        [sys.executable, "-m", "spinney.auditing.worker"],
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


# -------------------------------------------------------------------------------------------------------------- text


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
