"""Every message between ranks: tag, shape, dtype and direction, in one table.

| tag | from, to | content |
| --- | --- | --- |
| ROWS | any, any | (n, w), of any agreed dtype: halo rows of a hop and column tile, or a part of an all-to-all |
| REQUEST | worker, server | (REQUEST_HEADER + b,) uint8: a push or a pull, see `pack_request` |
| WEIGHTS | server, worker | (d_i,) float32: the shard's weights |
| ORDER | coordinator, group; leader, member | pickled order of a group: set up, evaluate, test, stop |
| REPORT | leader, coordinator | pickled answer to an order |

An all-to-all begins with the (P,) int64 counts of the rows that go to each rank. Row counts are 64-bit and checked
where an array is received. Arrays above `PIECE_BYTES` travel in pieces, so that no
message comes near the 2^31 - 1 elements that MPI libraries of the older standard can count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 1 << 30
"""Longest single message."""


class Tag(IntEnum):
    """What a message is about."""

    ROWS = 1
    REQUEST = 2
    WEIGHTS = 3
    ORDER = 4
    REPORT = 5


class Kind(IntEnum):
    """What a worker asks of a server."""

    PUSH = 0
    PULL = 1
    PULL_STRICTLY = 2
    LEAVE = 3


_HEADER = struct.Struct("<qqd")
REQUEST_HEADER = _HEADER.size


@dataclass(frozen=True, slots=True)
class Request:
    """A worker's request to a server.

    Attributes:
        kind: push, pull, pull once all earlier pushes of all workers are in, or leave.
        clock: pushes that this worker has made before this one.
        weight: of a push: the share of its rows in the batch; 0 otherwise, and where it has no rows.
        payload: of a push: the packed gradient of the shard, uint8; empty otherwise and at weight 0.
    """

    kind: Kind
    clock: int
    weight: float
    payload: NDArray[np.uint8]


def pack_request(request: Request) -> NDArray[np.uint8]:
    """The request as it travels: kind and clock as int64, weight as float64, then the payload's bytes."""
    header = _HEADER.pack(int(request.kind), request.clock, request.weight)
    return np.concatenate((np.frombuffer(header, dtype=np.uint8), request.payload))


def unpack_request(message: NDArray[np.uint8]) -> Request:
    """Read what `pack_request` made."""
    kind, clock, weight = _HEADER.unpack(message[:REQUEST_HEADER].tobytes())
    return Request(Kind(kind), clock, weight, message[REQUEST_HEADER:])


def pieces(array: NDArray[Any], piece_bytes: int) -> Iterator[NDArray[Any]]:
    """Flat views of a C-contiguous array, each at most `piece_bytes` long; one empty view for an empty array."""
    flat = array.reshape(-1)
    step = max(piece_bytes // array.itemsize, 1)
    for first in range(0, max(flat.size, 1), step):
        yield flat[first : first + step]
