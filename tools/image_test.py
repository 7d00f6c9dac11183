"""Builds the image of the Containerfile and runs it: `make image-test`, where a container engine works.

python tools/image_test.py [--engine podman] [--base IMAGE] [--build-option OPTION ...]

Docker, podman and buildah are tried in this order. Where containers cannot be started but images can be built (inside
another container, say), buildah runs the image in a changed root instead. `--base` names another image with Python
3.11 or newer, and `--build-option=--volume=...` goes to the engine as it is. What is checked: the image runs the demo,
is not run by root, and its first fit compiles nothing. Exit status 2 means that no engine worked.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENGINES = ("docker", "podman", "buildah")
TAG = "localhost/spinney-image-test"
_NO_ENGINE = 2


def run(*command: str, quiet: bool = False) -> str:
    """What a command prints; its end where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if not quiet:
            sys.stderr.write(done.stdout[-2000:] + done.stderr[-2000:])
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout


def build(engine: str, base: str | None, options: Sequence[str]) -> None:
    """Build the image from the checkout."""
    given = ("--build-arg", f"BASE={base}") if base else ()
    run(engine, "build", "--file", str(ROOT / "Containerfile"), *given, *options, "--tag", TAG, str(ROOT))


def runner(engine: str, folder: Path) -> list[str]:
    """The beginning of a command line that runs something in the image, with a folder as /data."""
    volume = ["--volume", f"{folder}:/data"]
    started = [engine, "run", "--rm", "--network", "none", "--entrypoint", "", *volume, TAG]
    if engine != "buildah":
        try:
            run(*started, "true", quiet=True)
        except subprocess.CalledProcessError:
            if engine == "docker" or shutil.which("buildah") is None:
                raise
        else:
            return started
    container = run("buildah", "from", TAG).strip()
    return ["buildah", "run", "--isolation", "chroot", *volume, container, "--"]


def check(engine: str) -> None:
    """Run the demo in the image, ask who runs it, and whether a fit compiles."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o777)
        inside = runner(engine, folder)
        who = run(*inside, "id", "--user").strip()
        if who == "0":
            raise SystemExit("the image is run by root")
        run(*inside, "spinney", "demo", "--out", "/data/demo")
        if not (folder / "demo" / "synthetic.parquet").stat().st_size:
            raise SystemExit("the demo in the image wrote no rows")
        report = json.loads(run(*inside, "spinney", "warm-up", "--json"))
        if report["compiled"]:
            raise SystemExit(f"the cache of the image lacks {report['compiled']} compiled loops")
        print(f"{engine}: the image runs the demo as user {who}, with all of its loops compiled")  # noqa: T201


def main() -> int:
    """Try the engines in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=ENGINES, help="the engine to use; by default the first that works")
    parser.add_argument("--base", help="the image to build on; by default that of the Containerfile")
    parser.add_argument("--build-option", action="append", default=[], help="an option of the engine's build")
    given = parser.parse_args()
    for engine in [given.engine] if given.engine else ENGINES:
        if shutil.which(engine) is None:
            continue
        try:
            run(engine, "info", quiet=True)
            build(engine, given.base, given.build_option)
        except subprocess.CalledProcessError:
            print(f"{engine} is here and cannot build the image")  # noqa: T201
            continue
        check(engine)
        return 0
    print(f"no container engine works here; install one of {', '.join(ENGINES)}")  # noqa: T201
    return _NO_ENGINE


if __name__ == "__main__":
    sys.exit(main())
