"""What a forest says that it measured, compared with its charges, its leaves and its model.

Laws of noise are those that were paid for. Weights of leaves follow from raw counts, and the model from weights and
tables, by what a fit does (`refit`): a file whose model is another one was changed after it was made. The tilt by sums
of products was fitted by drawn rows, so it is not made again.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.measured import MeasuredColumn, NoiseLaw
from spinney.forest.release.redraw import refitter
from spinney.privacy.events import ComposedRelease, DiscreteLaplaceCounts
from spinney.privacy.parts import GaussianTables
from spinney.release.contradictions import check
from spinney.release.spread import CHANCE, TableSum, check_spread, farthest, laplace_log_moment

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

# By how much weights, as parts of the total, and shares of cells may come out otherwise on another machine: a fit stops
# on its way, and where it stops hangs on the last digits of sums.
_WEIGHTS_SLACK = 1e-6
_SHARES_SLACK = 1e-4
_STD_SLACK = 1e-9


def check_measured(release: ForestRelease) -> list[str]:
    """Raw counts have the noise that was paid for, and leaves weigh what raw counts say."""
    measured = release.measured
    if measured is None:
        return []
    _check_noise(release)
    names, total = release.variables, measured.total
    several = [tuple(names[number] for number in t.columns) for t in measured.tables if len(t.columns) > 1]
    check(several == list(release.looked_at), "the tables in the file are not those that were counted together")
    check(release.card.n_rows is None or total == release.card.n_rows, "the total is not the number of rows")
    _check_rows(release)
    if not _has_prior(release):
        refit = refitter(release)
        numbers = refit.observed()
        is_total = abs(refit.total(numbers) - total) <= _WEIGHTS_SLACK * total
        check(is_total, "the total is not the one that the counts give")
        for name, model, wanted in zip(names, refit.models, refit.columns(numbers), strict=True):
            is_same = bool(np.abs(model.weights - wanted.weights).max() <= _WEIGHTS_SLACK * total)
            check(is_same, f"the leaves of {name!r} do not weigh what their counts give")
    n_counts = sum(len(column.noisy) for column in measured.columns if column is not None)
    n_boxes = sum(len(table.noisy) for table in measured.tables)
    return [f"{n_counts} raw counts of leaves and {n_boxes} of boxes have the noise that was paid for"]


def check_model(release: ForestRelease) -> list[str]:
    """The model is the one that a fit to the counts in the file gives."""
    if release.measured is None or _has_prior(release):
        return []
    refit = refitter(release)
    _, wanted = refit.fit(refit.observed())
    is_same = wanted.tree.cliques == release.model.tree.cliques
    is_same = is_same and all(
        bool(np.abs(found - law).max() <= _SHARES_SLACK)
        for found, law in zip(release.model.beliefs, wanted.beliefs, strict=True)
    )
    check(is_same, "the model is not the one that the counts in the file give")
    return ["the model was fitted again to the counts in the file, and is the same"]


def check_spread_of_tables(release: ForestRelease) -> list[str]:
    """Columns and tables all count the same rows, and differ by their noise."""
    if release.measured is None:
        return []
    sums = [_sum(column.noisy, column.noise) for column in release.measured.columns if _is_of_all(column)]
    sums += [_sum(table.noisy, table.noise) for table in release.measured.tables]
    return check_spread(sums, release.card.n_rows, "columns and tables")


def unverified_of_forest(release: ForestRelease) -> list[tuple[str, str]]:
    """What of a forest nothing else in its file bears out."""
    found = []
    if release.measured is None:
        found.append(
            ("the noise of counts, and that the model follows from them", "files of that version hold no counts")
        )
    elif _has_prior(release):
        found.append(("that weights and model follow from the counts", "the rows of the prior are not in the file"))
    if release.products is not None:
        found.append(("the factors of pairs that no table holds", "they were fitted by drawn rows"))
    told = "laws of noise are stated by the file itself; totals tell much less noise than stated, and no more"
    return [*found, ("noise that is smaller than stated by little", told)]


def _is_of_all(column: MeasuredColumn | None) -> TypeGuard[MeasuredColumn]:
    """Whether every row is in one of the counted leaves; of places, those outside a shape are not."""
    return column is not None and column.kind != "place"


def _sum(noisy: NDArray[np.int64], law: NoiseLaw) -> TableSum:
    return TableSum(float(noisy.sum(dtype=np.float64)), len(noisy) * law.std**2, law.law == "discrete gaussian")


def _check_rows(release: ForestRelease) -> None:
    """Every row is in one leaf of each column, so raw counts add up to a public number of rows, but for noise.

    Of n discrete Gaussian draws of variance parameter v, ln M(s) is at most n v s^2 / 2 (Canonne and others 2020), so
    that the least bound over s is sqrt(2 n v ln(2 / chance)).
    """
    n_rows = release.card.n_rows
    if n_rows is None or release.measured is None:
        return
    for name, column in zip(release.variables, release.measured.columns, strict=True):
        if not _is_of_all(column):
            continue
        n, scale = len(column.noisy), float(column.noise.scale)
        if column.noise.law == "discrete gaussian":
            slack = math.sqrt(2 * n * scale * math.log(2 / CHANCE))
        else:
            slack = farthest(lambda s, n=n, rate=scale: n * laplace_log_moment(rate, s), scale)  # type: ignore[misc]
        total = float(column.noisy.sum(dtype=np.float64))
        is_likely = abs(total - n_rows) <= slack
        check(is_likely, f"the counts of {name!r} do not add up to about n_rows={n_rows}: noise explains {slack:,.0f}")


def _check_noise(release: ForestRelease) -> None:
    """Every count has noise of a law that its stage was charged for, and no more tables are there than were paid."""
    assert release.measured is not None
    paid = _paid(release)
    used: Counter[tuple[str, NoiseLaw]] = Counter((table.stage, table.noise) for table in release.measured.tables)
    for column in release.measured.columns:
        if column is None:
            continue
        stage = "places" if column.kind == "place" else "one-way"
        is_class = (stage, column.noise) not in paid and column.kind != "place"
        used["classes" if is_class else stage, column.noise] += 1 + len(column.groups)
        if column.piles is not None:
            used["spikes", column.piles.noise] += 1
    for (stage, law), times in used.items():
        check((stage, law) in paid, f"counts of {stage} have other noise than was paid for")
        check(times <= paid[stage, law], f"more counts of {stage} are in the file than were paid for")
    n_piles, n_paid = (sum(counts[key] for key in counts if key[0] == "spikes") for counts in (used, paid))
    check(n_piles == n_paid, "piles were paid for whose counts are not in the file")
    tilt = release.measured.tilt
    if tilt is not None:
        held = [law.std for stage, law in paid if stage == "cliques"]
        is_held = any(abs(tilt.held_std - std) <= _STD_SLACK * std for std in held)
        check(is_held, "the tilt was fitted with other noise of tables than was paid for")


def _paid(release: ForestRelease) -> Counter[tuple[str, NoiseLaw]]:
    """How many tables of each stage and law the charges paid for."""
    paid: Counter[tuple[str, NoiseLaw]] = Counter()
    for event in release.card.events:
        if isinstance(event, ComposedRelease):
            for part in event.parts:
                if isinstance(part, GaussianTables) and part.stage is not None:
                    paid[part.stage, NoiseLaw("discrete gaussian", part.variance)] += part.times
        elif isinstance(event, DiscreteLaplaceCounts) and event.stage is not None:
            paid[event.stage, NoiseLaw("discrete laplace", event.epsilon / event.sensitivity)] += event.times or 0
    return paid


def _has_prior(release: ForestRelease) -> bool:
    """Whether public rows had their say in weights and model, which the file does not hold."""
    return release.card.parameters.get("prior") is not None
