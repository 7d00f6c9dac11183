"""Whether two states of the code give the same releases, rows, answers and texts, to the last bit.

    python tools/same_results.py --against HEAD~3     # a commit; --only forest for some of the models

Every model of `tests/golden/make.py` is fitted with seeded noise under both states, in a process each, and so are trees
of two and eight columns and forests of many rows. What a model writes, draws, answers and prints is compared file by
file; times and commits are left out. Exit status 1 tells of a difference. Run it before and after a change that must
change nothing. `--answers` compares answers alone, which is quicker.
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
from functools import partial
from itertools import chain
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
    parser.add_argument("--answers", action="store_true", help="compare answers alone, no files, rows or reports")
    parser.add_argument(
        "--write", type=Path, metavar="FOLDER", help="write what the state on PYTHONPATH gives; no comparison"
    )
    options = parser.parse_args(arguments)
    if options.write is not None:
        write(options.write, options.only, answers_only=options.answers)
        return 0
    if options.against is None:
        parser.error("--against names the commit to compare with")
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "state"
        _check_out(options.against, old)
        results = [Path(folder) / "old", Path(folder) / "new"]
        for state, result in zip((old, ROOT), results, strict=True):
            _run(state, result, [f"--only={options.only}", *(["--answers"] if options.answers else [])])
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


def write(folder: Path, only: str, *, answers_only: bool = False) -> None:
    """What the models of this state give, a folder each."""
    warnings.simplefilter("ignore")
    import make  # type: ignore[import-not-found]  # tests/golden/make.py of the state that runs

    for name, fitted in {**make.models(), **_models()}.items():
        if only in name:
            model = fitted()
            parts = [_answers(model.release_)] if answers_only else [_contents(model), _answers(model.release_)]
            for path, content in chain(*parts):
                (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / name / path).write_bytes(content)


def _models() -> dict[str, Callable[[], Any]]:
    """Trees of two and eight columns, and forests with named regressions, for both units of privacy."""
    import spinney as sp

    def entropy() -> Any:
        return sp.UnsafeSeededEntropy(29)

    def tree(n_columns: int, unit: str) -> Callable[[], Any]:
        table, schema = _many_rows(n_columns)
        return lambda: sp.KDTreeSynthesizer("2", unit=unit, moments=True).fit(table, schema, entropy=entropy())

    def forest(unit: str) -> Callable[[], Any]:
        table, schema = _many_rows(8)
        named = {"workload": [("kind", "age")], "analyses": ["hours ~ age + kind", "age ~ pay"]}
        return lambda: sp.ForestSynthesizer("6", "1e-6", unit=unit, **named).fit(table, schema, entropy=entropy())

    units = ("replace-one", "add-remove")
    return {
        **{f"asked-tree-{n}-{unit}": tree(n, unit) for n in (2, 8) for unit in units},
        **{f"asked-forest-{unit}": forest(unit) for unit in units},
    }


def _many_rows(n_columns: int) -> tuple[Any, Any]:
    """A table of 5,000 rows with heaped, skewed, dependent and missing values: its first columns."""
    import numpy as np
    import pyarrow as pa

    import spinney as sp

    rng = np.random.default_rng(31)
    n = 5_000
    age = rng.integers(17, 90, n)
    pay = np.where(rng.random(n) < 0.3, 0.0, np.round(rng.lognormal(9, 1, n), 2))
    hours = np.where(rng.random(n) < 0.5, 40, rng.integers(1, 99, n))
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, n)
    columns = {
        "pay": (np.minimum(pay, 200_000), sp.Real(0, 200_000)),
        "age": (age, sp.Integer(17, 90)),
        "hours": (pa.array(hours, mask=rng.random(n) < 0.1), sp.Integer(1, 99, nullable=True)),
        "kind": (rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]), sp.Category(["a", "b", "c", "d"])),
        "share": (np.round(rng.beta(2, 5, n) * (age / 90), 2), sp.Real(0, 1, multiple_of="0.01")),
        "is_new": (rng.random(n) < age / 120, sp.Boolean()),
        "score": (rng.normal(0, 3, n).clip(-20, 20), sp.Real(-20, 20)),
        "seen": (pa.array(days), sp.Date("2020-01-01", "2022-12-31")),
    }
    chosen = dict(list(columns.items())[:n_columns])
    return pa.table({name: values for name, (values, _) in chosen.items()}), sp.Schema(
        {name: column for name, (_, column) in chosen.items()}
    )


def _contents(model: Any) -> Iterator[tuple[str, bytes]]:
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
        ("report.html", lambda: release.report().to_html()),
    ):
        yield f"texts/{name}", _without_run(_text(show)).encode()


# -------------------------------------------------------------------------------------------------------------- answers

_ROUNDS = (
    {},
    {"statement": "certified"},
    {"statement": "calibrated"},
    {"of": "population"},
    {"force": True},
    {"level": 0.8},
    {"level": 0.99, "statement": "certified"},
)
# How many columns have conditions at once, and the first of them.
_GROUPS = ((2, 0), (2, 1), (2, 3), (2, 5), (3, 0), (3, 4), (5, 1))


def _answers(release: Any) -> Iterator[tuple[str, bytes]]:
    """Questions of every kind, and error bars: a file for each condition, a line for each question and answer."""
    schema = release.asked_schema
    columns = schema.to_dict()["columns"]
    numbers = [name for name, column in columns.items() if "low" in column]
    yield "answers/bars.json", _text(lambda: _json(release.error_bars())).encode()
    pairs = [list(columns)[:2], list(columns)[-2:]]
    yield "answers/trust.txt", "\n".join(_text(lambda pair=pair: _json(release.trust(pair))) for pair in pairs).encode()
    for formula in ("hours ~ age + kind", "age ~ pay", "age ~ share"):
        if hasattr(release, "regression"):
            asked = [partial(release.regression, formula, of=of) for of in ("table", "population")]
            texts = [_text(lambda ask=ask: _json(ask())) for ask in asked]
            yield f"answers/{formula}.txt", "\n".join(texts).encode()
    for number, where in enumerate(_conditions(columns)):
        lines = []
        for place, (name, asked) in enumerate(_questions(release, columns, numbers, where, number)):
            for options in _ROUNDS if place < 2 else (_ROUNDS[0], _ROUNDS[1 + (place + number) % 6]):
                shown = _text(lambda asked=asked, options=options: _json(asked(**options)))
                lines.append(f"{name} {where} {options}: {shown}")
        yield f"answers/{number}.txt", "\n".join(lines).encode()


def _conditions(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """None, one on every column, and two, three and more at once."""
    single: dict[str, Any] = {}
    for place, (name, column) in enumerate(columns.items()):
        if "low" in column and not isinstance(column["low"], str):
            low, length = column["low"], column["high"] - column["low"]
            part = (
                (low + length // 5, low + length // 2)
                if column["type"] == "integer"
                else (low, low + length / (16, 3)[place % 2])
            )
            single[name] = part if place % 3 < 2 else (None, part[1])
        elif "low" in column:
            single[name] = (None, "2010-06-30") if column["low"] < "2010" else ("2020-03-05", "2021-05-06")
        elif column.get("values"):
            single[name] = column["values"][0]
        elif column["type"] == "boolean":
            single[name] = True
    names = list(single)
    nulls = [{name: None} for name, column in columns.items() if column.get("nullable")]
    groups = [names[first : first + n] for n, first in _GROUPS if first + n <= len(names)]
    several = [{name: single[name] for name in group} for group in groups]
    return [{}, *({name: single[name]} for name in names), *nulls, *several]


def _questions(
    release: Any, columns: dict[str, Any], numbers: list[str], where: dict[str, Any], number: int
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Counts, shares, shares among others, means, quantiles, tables and numbers by group, as functions of options."""
    last = dict(list(where.items())[-1:])
    given = {name: wanted for name, wanted in where.items() if name not in last}
    yield "count", lambda **options: release.count(where=where, **options)
    if where:
        yield "proportion", lambda **options: release.proportion(last, given=given or None, **options)
    for name in numbers[number % 2 :: 2] if len(numbers) > 4 else numbers:
        yield f"mean {name}", lambda name=name, **options: release.mean(name, where=where, **options)
        at = (0.5, 0.9, 0.02)[number % 3]
        yield f"quantile {name}", lambda name=name, at=at, **options: release.quantile(name, at, where=where, **options)
    listed = [name for name, column in columns.items() if column.get("values") or column["type"] == "boolean"]
    free = [name for name in listed if name not in where]
    if free:
        yield f"table {free[0]}", lambda **options: release.table(free[0], where=where, simultaneous=True, **options)
        yield f"table {free[-2:]}", lambda **options: release.table(free[-2:], where=where, **options)
    if free and numbers:
        name = numbers[number % len(numbers)]
        yield f"mean {name} by {free[-1]}", lambda **options: release.mean(name, where=where, by=free[-1], **options)


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


def _run(state: Path, result: Path, options: list[str]) -> None:
    paths = os.pathsep.join(str(state / part) for part in ("src", "tests/golden", "tests"))
    command = [sys.executable, str(Path(__file__).resolve()), "--write", str(result), *options]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths}, cwd=state)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
