"""Whether two states of the code give the same releases, rows, answers and texts, to the last bit.

    python tools/same_results.py --against HEAD~3     # a commit; --only forest for some of the models

Every model of `tests/golden/make.py` is fitted with seeded noise under both states, in a process each. What it writes,
draws, answers and prints is compared file by file; times and commits are left out. Exit status 1 tells
of a difference. Run it before and after a change that must change nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_N_ROWS = 300
_FRAMES = ("pyarrow", "pandas", "polars")
# What may differ between two runs: times, commits, alone or in a version, and digests of files that hold these.
_RUN = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00| UTC|Z)?|\b[0-9a-f]{40}([0-9a-f]{24})?\b|\+g[0-9a-f]{12}"
)


def main(arguments: list[str]) -> int:
    """Compare two states, or write what one gives; 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", help="the state to compare the working tree with")
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose names hold this text")
    parser.add_argument(
        "--write", type=Path, metavar="FOLDER", help="write what the state on PYTHONPATH gives; no comparison"
    )
    options = parser.parse_args(arguments)
    if options.write is not None:
        write(options.write, options.only)
        return 0
    if options.against is None:
        parser.error("--against names the commit to compare with")
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "state"
        _check_out(options.against, old)
        results = [Path(folder) / "old", Path(folder) / "new"]
        for state, result in zip((old, ROOT), results, strict=True):
            _run(state, result, options.only)
        return compare(*results)


def compare(old: Path, new: Path) -> int:
    """1 if a file is in one folder only, or differs; a line for each such file, and one for all."""
    names = [{path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} for folder in (old, new)]
    differences = [f"only in the {'old' if name in names[0] else 'new'} state: {name}" for name in names[0] ^ names[1]]
    for name in sorted(names[0] & names[1]):
        texts = [(folder / name).read_bytes() for folder in (old, new)]
        if texts[0] != texts[1]:
            differences.append(f"differs: {name}\n{_first_difference(*texts)}")
    summary = f"{len(names[0] | names[1])} files compared, {len(differences)} differ"
    sys.stdout.write("\n".join([*sorted(differences), summary, ""]))
    return int(bool(differences))


def _first_difference(old: bytes, new: bytes) -> str:
    """The first line that differs in both, or how many bytes there are."""
    try:
        pairs = zip(old.decode().splitlines(), new.decode().splitlines(), strict=False)
    except UnicodeDecodeError:
        return f"    {len(old)} and {len(new)} bytes"
    before, after = next(((a, b) for a, b in pairs if a != b), ("(shorter)", "(longer)"))
    start = next((place for place, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    return "\n".join(
        f"    {sign} {line[max(start - 60, 0) : start + 100]}" for sign, line in (("-", before), ("+", after))
    )


def write(folder: Path, only: str) -> None:
    """What the models of this state give, a folder each."""
    warnings.simplefilter("ignore")
    import make  # type: ignore[import-not-found]  # tests/golden/make.py of the state that runs

    for name, fitted in make.models().items():
        if only in name:
            for path, content in _results(fitted):
                (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / name / path).write_bytes(content)


def _results(fitted: Callable[[], Any]) -> Iterator[tuple[str, bytes]]:
    model = fitted()
    release = model.release_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spinney"
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                yield f"file/{name}", _without_run(content.decode()).encode() if name.endswith(".json") else content
    for frame in _FRAMES:
        yield f"rows/{frame}.csv", _csv(lambda frame=frame: release.sample(_N_ROWS, seed=5, frame=frame))
    for name, show in (
        ("card.txt", lambda: str(release.card)),
        ("card.html", release.card._repr_html_),
        ("explain.txt", lambda: str(release.explain())),
        ("bars.json", lambda: _json(release.error_bars())),
        ("report.html", lambda: release.report().to_html()),
    ):
        yield f"texts/{name}", _without_run(_text(show)).encode()
    for number, question in enumerate(_questions(release.asked_schema)):
        yield f"answers/{number}.txt", _text(lambda question=question: _json(question(release))).encode()


def _questions(schema: Any) -> Iterator[Callable[[Any], Any]]:
    """Counts, means, quantiles and tables of every column, alone and by halves and values of others."""
    columns = schema.to_dict()["columns"]
    conditions: list[dict[str, Any]] = [{}]
    for name, column in columns.items():
        if "low" in column and not isinstance(column["low"], str):
            conditions.append({name: (column["low"], column["low"] + (column["high"] - column["low"]) / 2)})
        elif column.get("values"):
            conditions.append({name: column["values"][0]})
    for where in conditions:
        yield lambda release, where=where: release.count(where=where)
        yield lambda release, where=where: release.proportion(where=where)
        for name, column in columns.items():
            if "low" in column:
                yield lambda release, name=name, where=where: release.mean(name, where=where)
                yield lambda release, name=name, where=where: release.quantile(name, 0.9, where=where)
            elif column.get("values"):
                yield lambda release, name=name, where=where: release.table([name], where=where)
    yield from (lambda release, pair=pair: release.trust(pair) for pair in [list(columns)[:2], list(columns)[-2:]])


def _csv(draw: Callable[[], Any]) -> bytes:
    def drawn() -> str:
        rows = draw()
        for name in ("to_pylist", "to_dicts"):
            if hasattr(rows, name):
                return repr(getattr(rows, name)())
        return repr(rows.to_dict("records")) if hasattr(rows, "columns") else repr(rows)

    return _text(drawn).encode()


def _text(show: Callable[[], str]) -> str:
    """What is shown, or the error, which must be the same as well."""
    try:
        return show()
    except Exception as error:  # whatever it is, it is compared
        return f"{type(error).__name__}: {error}"


def _json(answer: Any) -> str:
    shown = answer.to_dict() if hasattr(answer, "to_dict") else repr(answer)
    return f"{json.dumps(shown, indent=1, default=str, ensure_ascii=False)}\n{answer}"


def _without_run(text: str) -> str:
    return _RUN.sub("", text)


def _check_out(commit: str, folder: Path) -> None:
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def _run(state: Path, result: Path, only: str) -> None:
    paths = os.pathsep.join(str(state / part) for part in ("src", "tests/golden", "tests"))
    command = [sys.executable, str(Path(__file__).resolve()), "--write", str(result), "--only", only]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths}, cwd=state)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
