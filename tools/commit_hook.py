"""A build hook of hatchling: the commit that a wheel or a source archive is built from, as a file beside the sources.

A source archive has the file already when a wheel is built from it, and no git: then there is nothing to do.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "src/spinney/_commit.txt"
_LENGTHS = (40, 64)


class CommitHook(BuildHookInterface):
    """Adds the file to what is built, where git knows the commit."""

    PLUGIN_NAME = "custom"
    _folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a target is built; an editable install reads `.git` itself."""
        root = Path(self.root)
        if version == "editable" or (root / FILE).is_file():
            return
        found = commit(root)
        if found is None:
            return
        self._folder = tempfile.mkdtemp(prefix="spinney-commit-")
        written = Path(self._folder) / "_commit.txt"
        written.write_text(f"{found}\n", encoding="ascii")
        build_data["force_include"][str(written)] = FILE if self.target_name == "sdist" else FILE.removeprefix("src/")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Called when a target is built."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def commit(root: Path) -> str | None:
    """What is checked out in a folder that is the top of a repository; None where that is not known."""
    asked = ["git", "-C", str(root), "rev-parse", "--show-toplevel", "HEAD"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=20).stdout.split("\n")
    except (OSError, subprocess.SubprocessError):
        return None
    is_ours = Path(told[0]).resolve() == root.resolve()
    return told[1] if is_ours and len(told[1]) in _LENGTHS else None
