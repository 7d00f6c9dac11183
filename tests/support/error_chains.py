"""All that an error carries: itself, its causes and contexts, their messages, reprs and notes."""

from __future__ import annotations


def chain(err: BaseException | None, seen: list[BaseException] | None = None) -> list[BaseException]:
    """An error, and every error that can be reached from it, once."""
    seen = [] if seen is None else seen
    if err is None or any(err is other for other in seen):
        return seen
    seen.append(err)
    chain(err.__cause__, seen)
    return chain(err.__context__, seen)


def told(err: BaseException) -> str:
    """All that a logger could print of an error and of those behind it, tracebacks aside."""
    return "\n".join(f"{one}\n{one!r}\n{one.args}\n{getattr(one, '__notes__', '')}" for one in chain(err))
