"""From a name, a path or PATH:NAME to the reader of what lies there."""

from __future__ import annotations

from pathlib import Path

from pasca.datasets.arrays import Npz
from pasca.datasets.csr_npz import is_csr_npz, read_csr_npz
from pasca.datasets.digits import read_digits
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Parts
from pasca.datasets.planetoid import planetoid_names, read_planetoid
from search_space.errors import DataError


def read(data: str | Path, options: LoadOptions) -> Parts:
    """Find out what `data` is and read it.

    Raises:
        DataError: nothing is there, nothing readable is there, or several data sets are.
    """
    if str(data) == "digits":
        return read_digits()
    path, name = Path(data), None
    if not path.exists() and ":" in str(data):
        head, _, name = str(data).rpartition(":")
        path = Path(head)
    if path.is_dir():
        return _read_folder(path, name)
    if not path.exists():
        raise DataError(
            f"{data}: no such folder or file; give a path, PATH:NAME, or the name of the embedded set: digits"
        )
    if path.suffix == ".npz":
        return _read_npz(path)
    raise DataError(f"{path}: no reader knows this kind of file")


def _read_folder(folder: Path, name: str | None) -> Parts:
    sets = planetoid_names(folder)
    if name in sets:
        return read_planetoid(folder, str(name))
    if name is not None:
        candidate = folder / (name if name.endswith(".npz") else f"{name}.npz")
        if candidate.is_file():
            return _read_npz(candidate)
        raise DataError(f"{folder}: there is no data set {name!r}; it holds {_listing(folder)}")
    complete = [found for found, missing in sets.items() if not missing]
    if len(complete) == 1:
        return read_planetoid(folder, complete[0])
    arrays = sorted(folder.glob("*.npz"))
    if not complete and len(arrays) == 1:
        return _read_npz(arrays[0])
    if not complete and not arrays and len(sets) == 1:
        return read_planetoid(folder, next(iter(sets)))
    if complete or arrays or sets:
        raise DataError(f"{folder}: several data sets; choose one as {folder}:NAME from {_listing(folder)}")
    raise DataError(f"{folder}: no data set found; it needs a Planetoid set (ind.NAME.*) or an .npz file")


def _read_npz(path: Path) -> Parts:
    with Npz(path) as npz:
        keys = set(npz)
    if is_csr_npz(keys):
        return read_csr_npz(path)
    raise DataError(
        f"{path}: expected the arrays adj_data, adj_indices, adj_indptr, adj_shape; got {', '.join(sorted(keys))}"
    )


def _listing(folder: Path) -> str:
    return ", ".join([*planetoid_names(folder), *(file.name for file in sorted(folder.glob("*.npz")))]) or "nothing"
