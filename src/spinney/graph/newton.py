"""Steps to the bottom of a smooth convex function of many numbers: L-BFGS with a scale of its own for each number.

A step multiplies the gradient by an estimate of the inverse curvature, learnt from how the gradient changed over the
last few steps (Liu and Nocedal 1989) on top of a diagonal that the caller knows. It is shortened until the value falls.

Sums over vectors are compiled loops: those of numpy may wake threads, which costs more than the sum where others work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, compiled_loosely

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats], tuple[float, Floats]]  # of a point and its image: value and gradient

_REMEMBERED = 10
_MOST_CUTS = 25
# A step must bring at least this part of what the slope promises.
_ENOUGH = 1e-4


class Curvature:
    """What is known of the inverse curvature: a diagonal, and the last steps with the gradient's changes over them."""

    def __init__(self, scale: Floats) -> None:
        self.scale = scale
        self.n_learnt = 0
        self._steps = np.empty((_REMEMBERED, len(scale)))
        self._changes = np.empty((_REMEMBERED, len(scale)))
        self._products = np.empty(_REMEMBERED)  # step · change

    def direction(self, gradient: Floats) -> Floats:
        """Minus the inverse curvature times the gradient."""
        return _direction(gradient, self.scale, self._steps, self._changes, self._products, self.n_learnt)

    def learn(self, step: Floats, change: Floats) -> None:
        """Remember a step, unless rounding spoilt it: the function is convex, so gradients change along the step."""
        product = dot(step, change)
        if product > 1e-10 * math.sqrt(dot(step, step) * dot(change, change)):
            place = self.n_learnt % _REMEMBERED
            self._steps[place], self._changes[place], self._products[place] = step, change, product
            self.n_learnt += 1

    def forget(self) -> None:
        self.n_learnt = 0


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Where a function was looked at, and what it is there."""

    at: Floats
    value: float
    gradient: Floats
    image: Floats  # of the point, under a map that the function begins with


def descend(
    function: Function,
    start: Point,
    curvature: Curvature,
    n_steps: int,
    *,
    image: Callable[[Floats], Floats] | None = None,
    farthest: float = math.inf,
) -> Point:
    """A point reached in at most `n_steps` steps, each to a lower value.

    Fewer steps where no lower value can be found. The function begins with a map by which an image moves along
    `image(direction)` as a point does along a direction; none where it is the point itself. No step moves an image by
    more than `farthest` anywhere.
    """
    at, value, gradient, at_image = start.at, start.value, start.gradient, start.image
    for _ in range(n_steps):
        direction = curvature.direction(gradient)
        slope = dot(gradient, direction)
        if not slope < 0:
            curvature.forget()
            direction = curvature.direction(gradient)
            slope = dot(gradient, direction)
        way = direction if image is None else image(direction)
        length = 1 / max(1.0, _largest(way) / farthest)
        for _ in range(_MOST_CUTS):
            new = _ahead(at, direction, length)
            new_image = new if image is None else _ahead(at_image, way, length)
            new_value, new_gradient = function(new, new_image)
            if new_value <= value + _ENOUGH * length * slope:
                break
            excess = new_value - value - slope * length
            best = -slope * length / (2 * excess) if math.isfinite(excess) and excess > 0 else 0.1  # of a parabola
            length *= min(max(best, 0.1), 0.5)
        else:
            break
        curvature.learn(new - at, new_gradient - gradient)
        at, value, gradient, at_image = new, new_value, new_gradient, new_image
    return Point(at, value, gradient, at_image)


@compiled_loosely
def dot(a: Floats, b: Floats) -> float:
    """The sum of products."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def _ahead(at: Floats, direction: Floats, length: float) -> Floats:
    """The point so far along a direction; minus infinity stays where it is."""
    found = np.empty_like(at)
    for i in range(len(at)):
        found[i] = at[i] + length * direction[i]
    return found


@compiled_loosely
def _largest(way: Floats) -> float:
    """The largest of all absolute values."""
    largest = 0.0
    for i in range(len(way)):
        largest = max(largest, abs(way[i]))
    return largest


@compiled_loosely
def _direction(
    gradient: Floats, scale: Floats, steps: Floats, changes: Floats, products: Floats, n_learnt: int
) -> Floats:
    """The two-loop recursion: steps are taken out of the gradient from the latest back, and put in again on the way."""
    n_remembered = min(n_learnt, len(steps))
    rest, shares = -gradient, np.empty(len(steps))
    for age in range(1, n_remembered + 1):
        place = (n_learnt - age) % len(steps)
        share = dot(steps[place], rest) / products[place]
        shares[place] = share
        change = changes[place]
        for i in range(len(rest)):
            rest[i] -= share * change[i]
    factor = 1.0
    if n_remembered:
        place = (n_learnt - 1) % len(steps)
        change, scaled = changes[place], 0.0
        for i in range(len(rest)):
            scaled += change[i] * change[i] * scale[i]
        factor = products[place] / scaled
    for i in range(len(rest)):
        rest[i] *= factor * scale[i]
    for age in range(n_remembered, 0, -1):
        place = (n_learnt - age) % len(steps)
        step = steps[place]
        share = shares[place] - dot(changes[place], rest) / products[place]
        for i in range(len(rest)):
            rest[i] += share * step[i]
    return rest
