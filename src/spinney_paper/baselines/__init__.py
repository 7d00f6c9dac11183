"""Rival systems behind Spinney's front door: the same `fit`, the same card with their own guarantee, the same files.

They are here to be compared with, as published where that is private and repaired where it is not. Algorithm 1 and 2 of
Balog et al. (2018) publish weighted points; DP-MERF (Harder et al. 2021) a generator of labelled rows. All are
(epsilon, delta)-private, while Spinney's own are pure.
"""

from spinney_paper.baselines.balog import BalogAlgorithm1, BalogAlgorithm2
from spinney_paper.baselines.merf import DPMERF

__all__ = ["DPMERF", "BalogAlgorithm1", "BalogAlgorithm2"]
