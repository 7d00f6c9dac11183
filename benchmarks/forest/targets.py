"""What is wanted, beside what was measured: mean, deviation over repetitions, verdict.

Lines without a target are reported and judge nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.forest.peers import Peer
from benchmarks.forest.trials import PURE, Setting, Trial

FRAUD_AREAS = {
    Setting("10"): 0.955,
    Setting("1"): 0.93,
    Setting("0.1"): 0.70,
    Setting("10", PURE): 0.95,
    Setting("1", PURE): 0.90,
}
ADULT_DISTANCES = {Setting("1"): (0.010, 0.043), Setting("1", quality="high"): (0.009, 0.034)}
ADULT_AREA = 0.89
FIT_SECONDS = {"adult": 2.0, "creditcard": 10.0}
PEAK_GIB = 1.5
WIDE_SECONDS = 180.0
TIMES_FASTER_THAN_MST = 100.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: values over repetitions, and what is wanted of their mean."""

    what: str
    values: tuple[float, ...]
    wanted: float | None = None
    unit: str = ""
    is_floor: bool = False  # whether more is better

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def noise_std(self) -> float | None:
        """Over repetitions; none where there was one alone."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def is_missed(self) -> bool:
        """Whether there is a target and the mean does not reach it."""
        if self.wanted is None:
            return False
        return not (self.mean >= self.wanted if self.is_floor else self.mean <= self.wanted)

    def cells(self) -> tuple[str, str, str, str, str]:
        """What, mean, noise_std, wanted, verdict."""
        spread = "" if self.noise_std is None else f"{self.noise_std:.2g}"
        if self.wanted is None:
            return self.what, f"{self.mean:.4g} {self.unit}".strip(), spread, "", ""
        sign = ">=" if self.is_floor else "<="
        verdict = "MISSED" if self.is_missed else "MET"
        return self.what, f"{self.mean:.4g} {self.unit}".strip(), spread, f"{sign} {self.wanted:g}", verdict


def trial_lines(trials: Sequence[Trial], real_area: float | None) -> list[Line]:
    """The lines of one table, setting by setting, and the real rows' area, where classifiers were trained."""
    name = trials[0].table
    n_classifiers = 12 if name == "creditcard" else 4
    lines = []
    for setting in dict.fromkeys(trial.setting for trial in trials):
        those = [trial for trial in trials if trial.setting == setting]
        tv1, tv2 = ADULT_DISTANCES.get(setting, (None, None)) if name == "adult" else (None, None)
        area = FRAUD_AREAS.get(setting) if name == "creditcard" else ADULT_AREA if name == "adult" else None
        head = f"{name}, {setting}"
        lines += [
            Line(f"{head}: KS", tuple(t.ks for t in those)),
            Line(f"{head}: KS of the worst column", tuple(t.worst_ks for t in those)),
            Line(f"{head}: TV1", tuple(t.tv1 for t in those)),
            Line(f"{head}: TV2", tuple(t.tv2 for t in those)),
            Line(f"{head}: TV1, equal bins", tuple(t.tv1_equal for t in those), tv1),
            Line(f"{head}: TV2, equal bins", tuple(t.tv2_equal for t in those), tv2),
        ]
        areas = tuple(t.area for t in those if t.area is not None)
        lines += [Line(f"{head}: AUC of {n_classifiers}", areas, area, is_floor=True)] if areas else []
        lines += [
            Line(
                f"{head}: fit",
                tuple(t.fit_seconds for t in those),
                FIT_SECONDS.get(name) if setting == Setting("1") else None,
                "s",
            ),
        ]
    reference = [] if real_area is None else [Line(f"{name}, real rows: AUC of {n_classifiers}", (real_area,))]
    return [*lines, *reference]


def limit_lines(peak: float | None, wide: dict[tuple[str, int], float]) -> list[Line]:
    """Memory, where it was measured, and time by kind of structure and number of columns."""
    lines = [Line("creditcard: peak memory of a process that fits", (peak,), PEAK_GIB, "GiB")] if peak else []
    few, many = min(columns for _, columns in wide), max(columns for _, columns in wide)
    for kind in dict.fromkeys(kind for kind, _ in wide):
        ratio = wide[kind, many] / wide[kind, few]
        lines += [
            Line(f"{few} columns x 100,000 rows, {kind}: fit", (wide[kind, few],), None, "s"),
            Line(f"{many} columns x 100,000 rows, {kind}: fit", (wide[kind, many],), WIDE_SECONDS, "s"),
            Line(f"fit time of {many} columns over that of {few}, {kind}", (ratio,), None, "x"),
        ]
    return lines


def peer_lines(peers: Sequence[Peer], ours: Trial) -> list[Line]:
    """Each peer's distances and seconds, and how much faster we were on the same rows, drawing included."""
    our_seconds = ours.fit_seconds + ours.sample_seconds
    lines = [
        Line("adult, epsilon 1, ours: TV1", (ours.tv1,)),
        Line("adult, epsilon 1, ours: TV2", (ours.tv2,)),
        Line("adult, epsilon 1, ours: TV1, equal bins", (ours.tv1_equal,)),
        Line("adult, epsilon 1, ours: TV2, equal bins", (ours.tv2_equal,)),
        Line("adult, epsilon 1, ours: fit and rows", (our_seconds,), None, "s"),
    ]
    for peer in peers:
        head = f"adult, epsilon 1, {peer.name}"
        bins = "" if peer.cut == "quantiles" else ", equal bins"
        if peer.tv1 is not None and peer.tv2 is not None:
            lines += [Line(f"{head}: TV1{bins}", (peer.tv1,)), Line(f"{head}: TV2{bins}", (peer.tv2,))]
        if peer.cut != "quantiles":
            continue  # the same run in other bins, for its distances alone
        wanted = TIMES_FASTER_THAN_MST if peer.name == "MST" else None
        lines += [
            Line(f"{head}: fit and rows ({peer.note})", (peer.seconds,), None, "s"),
            Line(f"{head}: time over ours", (peer.seconds / our_seconds,), wanted, "x", is_floor=True),
            Line(f"{head}: processor time over ours", (peer.cpu_seconds / ours.cpu_seconds,), None, "x"),
        ]
    return lines


HEADS = ("what", "mean", "sd", "wanted", "")


def table(lines: Sequence[Line]) -> str:
    """For the terminal."""
    return "\n".join(f"{a:<66} {b:>12} {c:>9} {d:>10} {e}".rstrip() for a, b, c, d, e in _rows(lines))


def markdown(lines: Sequence[Line]) -> str:
    """For a page."""
    head, *rows = ("| " + " | ".join(row) + " |" for row in _rows(lines))
    return "\n".join([head, "|---|---:|---:|---:|---|", *rows]) + "\n"


def _rows(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    return [HEADS, *(line.cells() for line in lines)]
