"""From a name, a path or PATH:NAME to the reader of what lies there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pasca.datasets.arrays import Npz
from pasca.datasets.candidates import Candidate
from pasca.datasets.csr_npz import is_csr_npz, read_csr_npz
from pasca.datasets.digits import read_digits
from pasca.datasets.geom_txt import find_geom_txt
from pasca.datasets.hetero_npz import is_hetero_npz, read_hetero_npz
from pasca.datasets.libraries import is_library_name, read_library
from pasca.datasets.linqs import find_linqs
from pasca.datasets.musae import find_musae
from pasca.datasets.networkx_graph import is_networkx, read_networkx
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Parts
from pasca.datasets.plain_sets import explicit, find_plain, resolve
from pasca.datasets.planetoid import find_planetoid
from pasca.datasets.tensors import find_pt, is_data, read_data
from search_space.errors import DataError

KNOWN = "a Planetoid set (ind.NAME.*), an .npz, geom-gcn, MUSAE or linqs files, an edge list, a .pt file"


def read(data: Any, options: LoadOptions) -> Parts:
    """Find out what `data` is and read it.

    Args:
        data: a name, a path, PATH:NAME, or a graph of NetworkX or PyTorch Geometric.
    Raises:
        DataError: nothing is there, nothing readable is there, or several data sets are.
    """
    if is_networkx(data):
        return read_networkx(data, options)
    if is_data(data):
        return read_data(data)
    if not isinstance(data, (str, Path)):
        raise DataError(f"a graph is a name, a path, a NetworkX graph or a Data object, got {type(data).__name__}")
    if str(data) == "digits":
        return read_digits()
    if is_library_name(str(data)):
        return read_library(str(data))
    path, name = Path(data), None
    if not path.exists() and ":" in str(data):
        head, _, name = str(data).rpartition(":")
        path = Path(head)
    if not path.exists():
        raise DataError(
            f"{data}: no such folder or file; give a path, PATH:NAME, or the name of the embedded data set: digits"
        )
    if path.is_dir():
        return _of_folder(path, name, options).read(options)
    if name is not None:
        raise DataError(f"{data}: {path} is a file; PATH:NAME takes a folder")
    return _of_file(path, options).read(options)


def _of_folder(folder: Path, name: str | None, options: LoadOptions) -> Candidate:
    if options.edges is not None:
        return _with_companions(folder, resolve(folder, options.edges), find(folder), options)
    candidates = find(folder)
    if name is not None:
        return _named(candidates, folder, name)
    if _companions(options):
        edges = {candidate.files[0] for candidate in candidates}
        if len(edges) != 1:
            raise DataError(f"{folder}: nodes, labels and features files go with one edge list; name it with --edges")
        return _with_companions(folder, edges.pop(), candidates, options)
    preferred = [candidate for candidate in candidates if candidate.preferred] or candidates
    if len(preferred) == 1:
        return preferred[0]
    if not candidates:
        raise DataError(f"{folder}: no data set found; pasca reads {KNOWN}")
    raise DataError(f"{folder}: several data sets; choose one as {folder}:NAME, NAME one of {_names(candidates)}")


def _of_file(path: Path, options: LoadOptions) -> Candidate:
    candidates = find(path.parent)
    if _companions(options):
        return _with_companions(path.parent, path, candidates, options)
    candidates = [candidate for candidate in candidates if path in candidate.files]
    if len(candidates) == 1:
        return candidates[0]
    named = [candidate for candidate in candidates if candidate.name == path.name]
    if named:
        return named[0]
    if candidates:
        raise DataError(
            f"{path}: belongs to several data sets; choose one as {path.parent}:NAME, NAME one of {_names(candidates)}"
        )
    if path.suffix.lower() == ".npz":
        with Npz(path) as npz:
            raise DataError(
                f"{path}: expected the arrays adj_data, adj_indices, adj_indptr, adj_shape, or node_features, "
                f"node_labels, edges; got {', '.join(npz) or 'none'}"
            )
    return explicit(path, options)


def _companions(options: LoadOptions) -> list[str | Path]:
    """The files that the options name beside the edge list."""
    return [given for given in (options.nodes, options.labels, options.features_file) if given is not None]


def _with_companions(folder: Path, edges: Path, candidates: list[Candidate], options: LoadOptions) -> Candidate:
    """The one recognised data set that holds all files named, else exactly the files named."""
    named = {edges, *(resolve(folder, given) for given in _companions(options))}
    matches = [candidate for candidate in candidates if named <= set(candidate.files)]
    return matches[0] if len(matches) == 1 else explicit(edges, options)


def find(folder: Path) -> list[Candidate]:
    """Every data set of a folder that some reader recognises, none of them read."""
    found: list[Candidate] = []
    for finder in (find_planetoid, _find_npz, find_geom_txt, find_musae, find_linqs, find_pt):
        found += finder(folder)
    taken = {path for candidate in found for path in candidate.files}
    return found + find_plain(folder, taken)


def _find_npz(folder: Path) -> list[Candidate]:
    return [candidate for path in sorted(folder.glob("*.npz")) if (candidate := _of_npz(path)) is not None]


def _of_npz(path: Path) -> Candidate | None:
    try:
        with Npz(path) as npz:
            keys = set(npz)
    except DataError:
        # Not left out: reading it says what is wrong.
        return Candidate(path.name, (path,), partial(_read_damaged, path), (path.stem,))
    if is_csr_npz(keys):
        return Candidate(path.name, (path,), lambda _: read_csr_npz(path), (path.stem,))
    if is_hetero_npz(keys):
        return Candidate(path.name, (path,), lambda _: read_hetero_npz(path), (path.stem,))
    return None


def _read_damaged(path: Path, _: LoadOptions) -> Parts:
    with Npz(path):
        raise DataError(f"{path}: the file changed while it was looked at")


def _named(candidates: list[Candidate], folder: Path, name: str) -> Candidate:
    for matches in (
        [candidate for candidate in candidates if candidate.name == name],
        [candidate for candidate in candidates if name in candidate.aliases],
    ):
        if len(matches) == 1:
            return matches[0]
    raise DataError(f"{folder}: no single data set is called {name!r}; choose from: {_names(candidates) or 'none'}")


def _names(candidates: list[Candidate]) -> str:
    return ", ".join(candidate.name for candidate in candidates)
