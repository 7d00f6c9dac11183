"""Builds the wheel and the source archive, and runs the demo from each in an empty environment: `make wheel-test`.

python tools/wheel_test.py

Each environment has pip and nothing else to begin with, and is in a temporary folder outside of the checkout, so that
what runs is what was built. From the wheel, the demo is run without extras, and then a report and the studio's pages
with theirs, because templates and pictures have to be in the wheel too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path
from urllib.parse import urljoin, urlparse
from urllib.request import HTTPCookieProcessor, build_opener

ROOT = Path(__file__).resolve().parents[1]
OURS = ("spinney/", "spinney_audit/", "spinney_paper/", "spinney_studio/", "spinney-")
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
# Environment of the checkout that would let the sources be found, or keep a cache beside them.
_NOT_OURS = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "SPINNEY_LEDGER")


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; an exception with all that it said where it fails."""
    parts = [str(one) for one in command]
    done = subprocess.run(parts, cwd=cwd, env=environment_variables(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment_variables() -> dict[str, str]:
    """Those of this process, without what leads back to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_OURS}


def environment(folder: Path) -> Path:
    """The programs of a new environment that has pip and nothing else."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    tools = environment(folder / "build")
    run(tools / "python", *_PIP, "hatchling>=1.26", cwd=folder)
    run(tools / "python", "-m", "hatchling", "build", "--directory", folder / "dist", cwd=ROOT)
    (wheel,), (archive,) = (sorted((folder / "dist").glob(kind)) for kind in ("*.whl", "*.tar.gz"))
    return wheel, archive


def check_demo(built: Path, folder: Path) -> Path:
    """Install one of them, with what it depends on, and run the demo; the programs of its environment."""
    programs = environment(folder)
    run(programs / "python", *_PIP, built, cwd=folder)
    run(programs / "spinney", "demo", cwd=folder)
    rows = folder / "spinney-demo" / "synthetic.parquet"
    if not rows.stat().st_size:
        raise SystemExit(f"the demo of {built.name} wrote no rows")
    where = run(programs / "python", "-c", "import spinney; print(spinney.__file__)", cwd=folder)
    if not Path(where.strip()).is_relative_to(folder):
        raise SystemExit(f"the demo of {built.name} was run from {where.strip()}")
    _say(f"{built.name}: installed by pip alone, the demo ran")
    return programs


def check_extras(wheel: Path, programs: Path, folder: Path) -> None:
    """A report, and the studio's first page, which need what is not Python in the wheel."""
    run(programs / "python", *_PIP, f"{wheel}[report,studio]", cwd=folder)
    run(programs / "spinney", "report", "spinney-demo/town.spinney", "--out", "report.html", cwd=folder)
    _say("the wheel with its extras: the report was made")
    check_studio(programs / "spinney", folder)
    _say("the wheel with its extras: the studio shows its first page")


def check_studio(spinney: Path, folder: Path) -> None:
    """Start the studio, go in by its link, and ask for the first page and its style sheet."""
    command = [str(spinney), "studio", "--no-browser"]
    env = environment_variables() | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            link = next(line.strip() for line in server.stdout if line.strip().startswith("http://"))
            visitor = build_opener(HTTPCookieProcessor())
            for page in (link, urljoin(link, "/"), urljoin(link, "/static/studio.css")):
                with visitor.open(page, timeout=30) as answer:
                    if not answer.read():
                        raise SystemExit(f"the studio of the wheel shows nothing at {urlparse(page).path}")
        finally:
            server.terminate()


def check_content(wheel: Path) -> None:
    """Only our packages are in the wheel, without tests and caches."""
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
    strange = [name for name in names if not name.startswith(OURS)]
    if strange or any("__pycache__" in name for name in names):
        raise SystemExit(f"the wheel holds {strange or 'caches'}")
    _say(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # a tool


def main() -> int:
    """Build, install and run."""
    with tempfile.TemporaryDirectory(prefix="spinney-wheel-") as place:
        folder = Path(place).resolve()
        wheel, archive = build(folder)
        check_content(wheel)
        programs = check_demo(wheel, folder / "from-wheel")
        check_extras(wheel, programs, folder / "from-wheel")
        check_demo(archive, folder / "from-archive")
    return 0


if __name__ == "__main__":
    sys.exit(main())
