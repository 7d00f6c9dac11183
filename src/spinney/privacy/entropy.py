"""Randomness for noise: from the operating system, in blocks of 32-bit words.

Real noise has no seed. The seeded twin exists so that tests and figures can be repeated; its name says that it
is unsafe. What an object says of itself counts for nothing: a ledger that meets any source but the operating system's
records the fact (`brand_unless_system`).
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import UnsafeEntropy

Words = NDArray[np.uint32]


class Entropy(Protocol):
    """A source of independent, uniform 32-bit words."""

    def words(self, n: int) -> Words:
        """The next `n` words; no word is ever handed out twice."""
        ...


class SystemEntropy:
    """Words from the operating system's cryptographic generator."""

    __slots__ = ()  # nothing can be put on an instance in place of `words`

    def words(self, n: int) -> Words:
        return np.frombuffer(os.urandom(4 * n), dtype=np.uint32)


class UnsafeSeededEntropy:
    """Repeatable words for tests and figures. Noise made from them protects nobody: the seed gives it all back.

    Args:
        seed: the same seed gives the same words, and so the same noise.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, n: int) -> Words:
        """The next words.

        Args:
            n: how many.
        """
        return self._generator.integers(0, 2**32, size=n, dtype=np.uint32)


_SYSTEM_WORDS = SystemEntropy.words


def is_system(entropy: Any) -> bool:
    """Whether noise comes from the operating system: from this class itself, no subclass and no look-alike."""
    return type(entropy) is SystemEntropy and SystemEntropy.words is _SYSTEM_WORDS


def brand_unless_system(ledger: Ledger, entropy: Any, what: str) -> None:
    """Record on the ledger that the noise of `what` did not come from the operating system, where it did not."""
    if is_system(entropy):
        return
    source = "a seeded generator" if type(entropy) is UnsafeSeededEntropy else "another generator than the system's"
    brand = UnsafeEntropy(note=f"{what}: noise from {source}")
    if brand not in ledger.events:
        ledger.brand(brand)
