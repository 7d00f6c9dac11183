"""How strongly columns depend on each other, by the law of their states. Sees released numbers only.

    distance    total variation between the joint law and the product of its marginals: the share of rows that would
                have to move for the columns to be independent, from 0 to below 1
    bits        the divergence of the two; for a pair, mutual information

Given a further column, both are averages over its states. A model fitted to noisy tables holds some of the noise, so
columns that are independent show a little of either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Strength:
    """How far columns are from independence."""

    distance: float
    bits: float


def strength(law: Floats, given: int | None = None) -> Strength:
    """How far the axes of a table of probabilities are from independence, given one of them or none."""
    joint = law[None] if given is None else np.moveaxis(law, given, 0)
    independent = _independent(joint)
    is_held = joint > 0
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=is_held)
    return Strength(
        distance=float(np.abs(joint - independent).sum() / 2),
        bits=max(0.0, float((joint * np.log2(ratio, out=np.zeros_like(ratio), where=is_held)).sum())),
    )


def _independent(joint: Floats) -> Floats:
    """The table with the same marginals in every layer of the first axis, its other axes independent there."""
    layers = joint.reshape(joint.shape[0], -1).sum(axis=1)
    shape = [-1, *[1] * (joint.ndim - 1)]
    product: Floats = layers.reshape(shape)
    for axis in range(1, joint.ndim):
        others = tuple(other for other in range(1, joint.ndim) if other != axis)
        marginal = joint.sum(axis=others, keepdims=True)
        weight = layers.reshape(shape)
        product = product * np.divide(marginal, weight, out=np.zeros_like(marginal), where=weight > 0)
    return product
