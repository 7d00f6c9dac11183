"""Randomness for noise: from the operating system, in blocks of 32-bit words.

Real noise has no seed. The seeded twin exists so that tests and figures can be repeated; its name says that it
is unsafe, and a ledger that meets it records the fact.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


class Entropy(Protocol):
    """A source of independent, uniform 32-bit words."""

    is_unsafe: bool

    def words(self, n: int) -> Words:
        """The next `n` words; no word is ever handed out twice."""
        ...


class SystemEntropy:
    """Words from the operating system's cryptographic generator."""

    is_unsafe = False

    def words(self, n: int) -> Words:
        return np.frombuffer(os.urandom(4 * n), dtype=np.uint32)


class UnsafeSeededEntropy:
    """Repeatable words for tests and figures. Noise made from them protects nobody: the seed gives it all back."""

    is_unsafe = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, n: int) -> Words:
        return self._generator.integers(0, 2**32, size=n, dtype=np.uint32)
