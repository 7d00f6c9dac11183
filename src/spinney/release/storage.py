"""The release file: a zip archive of `card.json` and `bins.arrow`, nothing else and no pickle.

Zip checks every byte by CRC, and both members open with everyday tools. Time stamps are fixed, so equal
releases are equal files.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from spinney.errors import FileError
from spinney.files import write_whole
from spinney.partition.bins import NoisyBins
from spinney.release.card import Card
from spinney.release.frames import check_frame_kind
from spinney.release.model import Release
from spinney.schema.lattice import Axis, Lattice

FORMAT = "spinney-release"
FORMAT_VERSION = 1

# Ladders serve private bounds only and never reach a release.
_AXIS_FIELDS = [name for name in Axis.__dataclass_fields__ if name != "edges"]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release to one file, whole or not at all."""
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "placement": release.placement,
        "card": release.card.to_dict(),
        "axes": [_axis_to_dict(axis) for axis in release.bins.lattice.axes],
    }

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            text = json.dumps(described, indent=2, ensure_ascii=False)
            archive.writestr(zipfile.ZipInfo("card.json", _EPOCH), text.encode())
            archive.writestr(zipfile.ZipInfo("bins.arrow", _EPOCH), _bins_to_arrow(release.bins))

    write_whole(path, write, overwrite=overwrite)


def load(path: str | Path) -> Release:
    """Read a release file. The schema and the card are in it."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            described = json.loads(archive.read("card.json"))
            data = archive.read("bins.arrow")
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r}") from None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError) as err:
        raise FileError(f"{str(path)!r} is not a Spinney release, or is damaged: fetch or save it again") from err
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    _check_format(path, described)
    try:
        lattice = Lattice(tuple(_axis_from_dict(axis) for axis in described["axes"]))
        card, bins = Card.from_dict(described["card"]), _bins_from_arrow(data, lattice)
        check_frame_kind(card.frame)
        if [axis.name for axis in lattice.axes] != list(card.schema) or card.n_bins != len(bins):
            raise ValueError("the card describes other bins")
        return Release(bins, card, placement=described["placement"])
    except (KeyError, TypeError, ValueError, pa.ArrowException) as err:
        raise FileError(f"{str(path)!r} is a Spinney release with inconsistent contents") from err


def _check_format(path: Path, described: Any) -> None:
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney release")
    version = described.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise FileError(
            f"{str(path)!r} has format version {version!r}, and this Spinney reads up to {FORMAT_VERSION}; upgrade it"
        )


def _bins_to_arrow(bins: NoisyBins) -> bytes:
    columns: dict[str, Any] = {f"code_{word}": bins.codes[:, word] for word in range(bins.lattice.n_words)}
    columns |= {"depth": bins.depths.astype(np.int32), "noisy_count": bins.noisy_counts}
    table = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _bins_from_arrow(data: bytes, lattice: Lattice) -> NoisyBins:
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    codes = np.empty((table.num_rows, lattice.n_words), dtype=np.uint64)
    for word in range(lattice.n_words):
        codes[:, word] = table[f"code_{word}"].to_numpy()
    depths = table["depth"].to_numpy().astype(np.int64)
    noisy_counts = table["noisy_count"].to_numpy().astype(np.int64)
    if table.num_rows and not (depths.min() >= 0 and depths.max() <= lattice.depth and noisy_counts.min() >= 1):
        raise ValueError("bins out of range")
    return NoisyBins(lattice, codes, depths, noisy_counts)


def _axis_to_dict(axis: Axis) -> dict[str, Any]:
    return {name: getattr(axis, name) for name in _AXIS_FIELDS}


def _axis_from_dict(described: dict[str, Any]) -> Axis:
    if set(described) != set(_AXIS_FIELDS):
        raise ValueError("an axis with other entries than ours")
    return Axis(**described)
