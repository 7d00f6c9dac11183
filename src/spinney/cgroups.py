"""Limits of the machine or container that this process runs in: processors and memory.

Docker, Kubernetes and batch systems limit a process by control groups, of version 1 or 2, which neither
`os.cpu_count` nor the size of the machine tells. A group may have limits of its own and lies within others that have
theirs: the smallest holds. Where there are no control groups, or none can be read, only the machine limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

# Version 1 writes "no limit" as the largest multiple of a page that a signed word can hold.
_BOUNDLESS = 1 << 60
# The numbers of the kernel are words of 64 bits; longer ones are none of its.
_LARGEST = 1 << 64


@cache
def cpu_quota(root: Path = Path("/")) -> float | None:
    """How many processors this process may keep busy, such as 1.5; None where there is no limit."""
    quotas = []
    for folder in _folders(root, "cpu"):
        found = _numbers(folder / "cpu.max")  # version 2: quota and period in one file
        if found is None:
            found = _numbers(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")
        if found is not None and len(found) == 2 and min(found) > 0:  # -1 is no quota
            quotas.append(found[0] / found[1])
    return min(quotas, default=None)


@cache
def memory_quota(root: Path = Path("/")) -> int | None:
    """How many bytes this process and those beside it in the container may take; None where there is no limit."""
    limits = []
    for folder in _folders(root, "memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            found = _numbers(folder / name)
            if found is not None and 0 < found[0] < _BOUNDLESS:
                limits.append(found[0])
    return min(limits, default=None)


@cache
def total_memory() -> int | None:
    """The bytes of memory of the machine, or of the container where that is less; None where nobody tells."""
    known = [memory_quota()]
    with suppress(AttributeError, OSError, ValueError):  # a system that is not POSIX, or does not say
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in known if size is not None and size > 0), default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's group and of all groups around it, of both versions.

    Inside a container the path may be one of the machine's, and not be there: the folder at the top is the container's.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    base = root / "sys/fs/cgroup"
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        tops = [base / controllers, base / controller] if controllers else [base, base / "unified"]
        group = PurePosixPath(path.lstrip("/"))
        for top in dict.fromkeys(tops):
            yield from (top / part for part in (group, *group.parents))


def _numbers(*files: Path) -> list[int] | None:
    """The whole numbers in files; None where there are none, or one is `max`, which is no limit."""
    try:
        found = [int(word) for file in files for word in file.read_text().split()]
    except (OSError, ValueError):
        return None
    return found if found and max(map(abs, found)) < _LARGEST else None
