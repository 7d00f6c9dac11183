"""What one running studio is: its workspace, its doors, its port, and the entries of its navigation."""

from __future__ import annotations

from dataclasses import dataclass, field

from spinney.studio.doors import Doors
from spinney.studio.jobs import Jobs
from spinney.studio.ledgers.known import KnownLedgers
from spinney.studio.releases.beside import Beside
from spinney.studio.releases.opened import Shelf
from spinney.studio.workspace import Workspace

LARGEST_UPLOAD = 2 << 30  # bytes; larger tables are opened where they are


@dataclass(slots=True)
class Studio:
    """One running studio."""

    workspace: Workspace
    port: int
    ledger: str | None = None  # the one that is offered first
    doors: Doors = field(default_factory=Doors)
    nav: tuple[tuple[str, str], ...] = ()
    largest_upload: int = LARGEST_UPLOAD
    jobs: Jobs = field(init=False)
    beside: Beside = field(default_factory=Beside)
    shelf: Shelf = field(init=False)
    ledgers: KnownLedgers = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.workspace)
        self.shelf = Shelf(self.workspace)
        self.ledgers = KnownLedgers(self.workspace, self.ledger)

    def new_link(self) -> str:
        """An address that opens the studio once."""
        return f"http://127.0.0.1:{self.port}/open?key={self.doors.new_link()}"
