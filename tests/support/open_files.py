"""Which files of a folder this process has open, those without a name too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def open_files(folder: Path) -> list[str]:
    """Files in a folder that this process has open, without a name too."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one of the listing itself
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return [link for link in links if str(folder) in link]
