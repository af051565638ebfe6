"""What feeds a training: all labelled rows at once, or batches that are read while the one before is trained on.

A batch that holds every row holds them in order, so it is the full batch. Otherwise an epoch visits blocks of
consecutive rows in a random order, some dozens of them a batch: a disk reads runs, and no batch is a single
neighbourhood. The order depends on the epoch alone: all repeats share their batches, and a repeat becomes what it would
become beside others.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.hop_files import HopRows
from engines.evaluation.inference import stack_rows
from search_space.assembly import Network

BLOCKS_PER_BATCH = 64

Batch = tuple[torch.Tensor, torch.Tensor]
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled nodes as training reads them.

    Attributes:
        hops: (k, n, F) float32, the hops that `required_hops` names.
        labels: (n,) int64.
    """

    hops: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True, eq=False)
class RowSource:
    """Labelled nodes whose hop features are read when they are needed.

    Attributes:
        hops: those that `required_hops` names, each (N, F).
        nodes: (n,) node numbers.
        labels: (n,) int64.
    """

    hops: Sequence[HopRows]
    nodes: NDArray[np.int64]
    labels: torch.Tensor

    def read(self, places: NDArray[np.int64] | slice) -> Rows:
        """Some of the rows, by their places among the n."""
        return Rows(stack_rows(self.hops, self.nodes[places]), self.labels[places])

    def all(self) -> Rows:
        """Every row."""
        return self.read(slice(None))


class Feed(Protocol):
    """Prepared inputs and labels for one network, on the device of its weights."""

    @property
    def num_features(self) -> int: ...

    @property
    def labels(self) -> torch.Tensor:
        """(n,) of all training rows."""
        ...

    @property
    def validation_labels(self) -> torch.Tensor: ...

    def open(self, network: Network) -> contextlib.AbstractContextManager[OpenFeed]:
        """Start feeding that network; what reading needs is let go when the context ends."""
        ...


class OpenFeed(Protocol):
    """A feed that knows its network."""

    def batches(self, epoch: int) -> Iterator[Batch]:
        """What the network takes, and labels (b,), for each step of an epoch; epochs count from 1."""
        ...

    def validation(self) -> Iterator[torch.Tensor]:
        """What the network takes for all validation rows, in order, in one piece or several."""
        ...


class WholeFeed:
    """All rows at once, on the device; networks that it feeds are of one design and share them."""

    def __init__(self, train: Rows, validation: Rows, device: torch.device) -> None:
        self._train, self._validation, self._device = train, validation, device
        self.labels, self.validation_labels = train.labels.to(device), validation.labels.to(device)
        self._preparing = threading.Lock()
        self._opened: _WholeOpen | None = None

    @property
    def num_features(self) -> int:
        """F."""
        return self._train.hops.shape[2]

    @contextlib.contextmanager
    def open(self, network: Network) -> Iterator[_WholeOpen]:
        """Prepare all rows, for the first network that asks."""
        with self._preparing:
            if self._opened is None:
                with torch.no_grad():
                    inputs, validation = (
                        network.prepare(rows.hops.to(self._device)).contiguous()
                        for rows in (self._train, self._validation)
                    )
                self._opened = _WholeOpen(inputs, self.labels, validation)
        yield self._opened


@dataclass(frozen=True, eq=False)
class _WholeOpen:
    inputs: torch.Tensor
    labels: torch.Tensor
    validation_inputs: torch.Tensor

    def batches(self, epoch: int) -> Iterator[Batch]:
        yield self.inputs, self.labels

    def validation(self) -> Iterator[torch.Tensor]:
        yield self.validation_inputs


class BatchFeed:
    """Batches from hops that may lie in files; one thread reads the next batch meanwhile.

    Args:
        batch_rows: of a batch at most; two are held at a time.
    """

    def __init__(self, train: RowSource, validation: RowSource, batch_rows: int, device: torch.device) -> None:
        self._train, self._validation, self._batch_rows, self._device = train, validation, batch_rows, device
        self.labels, self.validation_labels = train.labels.to(device), validation.labels.to(device)

    @property
    def num_features(self) -> int:
        """F."""
        return self._train.hops[0].shape[1]

    @contextlib.contextmanager
    def open(self, network: Network) -> Iterator[_BatchOpen]:
        """Start the reading thread."""
        with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
            yield _BatchOpen(self._train, self._validation, self._batch_rows, self._device, network, reader)


@dataclass(frozen=True, eq=False)
class _BatchOpen:
    train: RowSource
    validation_rows: RowSource
    batch_rows: int
    device: torch.device
    network: Network
    reader: ThreadPoolExecutor

    def batches(self, epoch: int) -> Iterator[Batch]:
        return _ahead(self._read_training, epoch_batches(self.train.nodes.size, self.batch_rows, epoch), self.reader)

    def validation(self) -> Iterator[torch.Tensor]:
        n = self.validation_rows.nodes.size
        pieces = [slice(first, min(first + self.batch_rows, n)) for first in range(0, n, self.batch_rows)]
        return _ahead(lambda piece: self._prepared(self.validation_rows.read(piece)), pieces, self.reader)

    def _read_training(self, batch: tuple[NDArray[np.int64], NDArray[np.int64] | None]) -> Batch:
        places, order = batch
        rows = self.train.read(places)
        inputs, labels = self._prepared(rows), rows.labels.to(self.device)
        if order is not None:
            shuffled = torch.from_numpy(order).to(self.device)
            inputs, labels = inputs.index_select(inputs.dim() - 2, shuffled), labels[shuffled]
        return inputs, labels

    def _prepared(self, rows: Rows) -> torch.Tensor:
        with torch.no_grad():  # a thread of its own has its own mode
            return self.network.prepare(rows.hops.to(self.device)).contiguous()


def epoch_batches(
    num_rows: int, batch_rows: int, epoch: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64] | None]]:
    """The batches of an epoch: places of rows in the order in which they are read, and how to shuffle them then.

    Each row is in one batch, and batches are of equal size, or one row smaller. A single batch is left in order.
    """
    count = -(-num_rows // batch_rows)
    if count == 1:
        return [(np.arange(num_rows), None)]
    generator = np.random.default_rng([num_rows, epoch])
    block = max(batch_rows // BLOCKS_PER_BATCH, 1)
    firsts = block * generator.permutation(-(-num_rows // block))
    places = (firsts[:, None] + np.arange(block)).ravel()
    places = places[places < num_rows]
    return [(part, generator.permutation(part.size)) for part in np.array_split(places, count)]


def _ahead(read: Callable[[T], U], asked: Sequence[T], reader: ThreadPoolExecutor) -> Iterator[U]:
    """Read one after the other, each while the one before is in use."""
    following = reader.submit(read, asked[0])
    for place in range(len(asked)):
        current = following.result()
        if place + 1 < len(asked):
            following = reader.submit(read, asked[place + 1])
        yield current
        del current
