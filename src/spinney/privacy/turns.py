"""Turns: threads look at accounts and change them one at a time.

One lock for all ledgers, since charges are rare and locks cannot be pickled. Whoever needs the lock of a database as
well takes this one first, always: two orders would be a deadlock.

A fork waits until no thread has its turn. A child would wait for a thread that it does not have, and for locks of a
database that SQLite, in its memory, believes to be held by this very process.
"""

from __future__ import annotations

import os
from threading import RLock

_TURNS = [RLock()]


def turn() -> RLock:
    """The lock that threads of this process hold while they look at accounts and change them."""
    return _TURNS[0]


def _hold_turn() -> None:
    _TURNS[0].acquire()


def _give_turn_back() -> None:
    _TURNS[0].release()


def _renew_turn() -> None:
    _TURNS[0] = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_turn, after_in_parent=_give_turn_back, after_in_child=_renew_turn)
