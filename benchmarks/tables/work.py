"""Many releases by one process or several; in a module of its own, because other processes import what they run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from benchmarks.tables.releases import Measured, Release
from spinney.errors import PrivacyWarning, SchemaWarning

Work = Callable[[Release], Measured]


def measure_all(works: Sequence[tuple[Work, Release]], *, n_jobs: int) -> Iterator[Measured]:
    """Releases as they are measured: in order by one process, as they come by several."""
    if n_jobs == 1:
        for work, release in works:
            yield _quietly(work, release)
        return
    for name in ("SPINNEY_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    # Numba's threads do not survive a fork.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_quietly, work, release) for work, release in works]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # where one failed, the others need not begin


def _quietly(work: Work, release: Release) -> Measured:
    """Without remarks about schemas, which anybody could have stated, and about delta, which all tables share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        return work(release)
