"""Parameter server: shards of the weights on some ranks, which answer the pulls and pushes of all of them.

A server is a thread of its rank. The worker of the same rank calls the shard directly; others send messages.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import numpy as np

from engines.evaluation.clocks import Consistency
from engines.evaluation.communicator import LONGEST_PAUSE, SHORTEST_PAUSE, Communicator, Pending, failures_end_the_job
from engines.evaluation.compression import Compressor, unpack
from engines.evaluation.feature_slices import column_share
from engines.evaluation.messages import Kind, Request, Tag, pack_request, unpack_request
from engines.evaluation.shard import Adam, Floats, Shard
from search_space.errors import ConfigError

_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How weights are served.

    Attributes:
        consistency: who waits for whom.
        num_servers: how many ranks hold a shard, from rank 0 on.
        compression: of gradients: `none` or `16bit`.
    """

    consistency: Consistency = field(default_factory=Consistency)
    num_servers: int = 1
    compression: str = "none"


class ParameterServer:
    """One rank's access to the weights, and its part of serving them.

    Every rank makes one with equal arguments, pulls and pushes at its own pace, and closes it.

    Args:
        communicator: the P workers, some of which are servers too.
        weights: (d,) float32 starting values; not modified.
        learning_rate, decay: of Adam; decay (d,) for each weight.
    Raises:
        ConfigError: there are more servers than ranks, or none.
    """

    def __init__(
        self,
        communicator: Communicator,
        weights: Floats,
        *,
        learning_rate: float,
        decay: Floats,
        settings: ServerSettings,
    ) -> None:
        P, M = communicator.size, settings.num_servers
        if not 1 <= M <= P:
            raise ConfigError(f"the weights are on 1 server up to one a rank, got {M} servers for {P} ranks")
        self._communicator, self._settings, self._size = communicator, settings, weights.size
        self._shares = [column_share(weights.size, server, M) for server in range(M)]
        self._compressors = [Compressor(settings.compression, share.stop - share.start) for share in self._shares]
        self._host: _ShardHost | None = None
        if communicator.rank < M:
            mine = self._shares[communicator.rank]
            optimiser = Adam(mine.stop - mine.start, learning_rate, decay[mine])
            shard = Shard(weights[mine].copy(), optimiser, settings.consistency, P)
            self._host = _ShardHost(communicator, shard, settings.compression)
        self._sends: list[Pending] = []

    @property
    def num_steps(self) -> int:
        """Optimiser steps of this rank's shard; 0 where there is none."""
        return self._host.num_steps if self._host else 0

    def pull(self, clock: int, *, strictly: bool = False) -> Floats:
        """The weights, (d,), as a worker that has pushed `clock` times may see them; waits until it may.

        Args:
            strictly: wait for all pushes of earlier clocks, whatever the consistency. All workers have to ask for that
                at the same clock and meet afterwards, before anyone pushes.
        """
        weights = np.empty(self._size, dtype=np.float32)
        kind = Kind.PULL_STRICTLY if strictly else Kind.PULL
        receives = []
        for server, share in enumerate(self._shares):
            if server != self._communicator.rank and share.stop > share.start:
                receives.append(self._communicator.start_receive(weights[share], server, Tag.WEIGHTS))
                self._request(server, Request(kind, clock, 0.0, _NOTHING))
        if self._host is not None:
            weights[self._shares[self._communicator.rank]] = self._host.read(
                self._communicator.rank, clock, strictly=strictly
            )
        self._communicator.wait(receives)
        self._sends = [send for send in self._sends if not send.test()]
        return weights

    def push(self, clock: int, share: float, gradient: Floats) -> None:
        """Hand in the (d,) gradient of this worker's mean loss at a clock.

        Args:
            share: of the worker's rows in the batch, by weight; at 0 no gradient travels.
        """
        for server, (part, compressor) in enumerate(zip(self._shares, self._compressors, strict=True)):
            if part.stop == part.start:
                continue
            if server == self._communicator.rank:
                assert self._host is not None
                self._host.push(server, clock, share, gradient[part].copy())
            else:
                payload = compressor.pack(gradient[part]) if share > 0.0 else _NOTHING
                self._request(server, Request(Kind.PUSH, clock, share, payload))

    def close(self) -> None:
        """Leave; returns when all workers have left."""
        for server, share in enumerate(self._shares):
            if server != self._communicator.rank and share.stop > share.start:
                self._request(server, Request(Kind.LEAVE, 0, 0.0, _NOTHING))
        if self._host is not None:
            self._host.leave_and_join(self._communicator.rank)
        self._communicator.wait(self._sends)
        self._sends = []
        # Nobody asks the next server anything while a slower one still listens for this one.
        self._communicator.barrier()

    def _request(self, server: int, request: Request) -> None:
        self._sends.append(self._communicator.start_send(pack_request(request), server, Tag.REQUEST))


class _ShardHost:
    """A shard and the thread that answers other ranks' requests for it."""

    def __init__(self, communicator: Communicator, shard: Shard, compression: str) -> None:
        self._communicator, self._shard, self._compression = communicator, shard, compression
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int, bool]] = []
        self._sends: list[Pending] = []
        self._thread = threading.Thread(target=self._serve, name="parameter server", daemon=True)
        if communicator.size > 1 and shard.size:
            self._thread.start()

    @property
    def num_steps(self) -> int:
        return self._shard.num_steps

    def read(self, worker: int, clock: int, *, strictly: bool) -> Floats:
        """For the worker of this rank; waits."""
        with self._changed:
            while (weights := self._shard.read(worker, clock, strictly=strictly)) is None:
                self._changed.wait()
            return weights

    def push(self, worker: int, clock: int, share: float, gradient: Floats) -> None:
        """For the worker of this rank."""
        with self._changed:
            self._shard.push(worker, clock, share, gradient)
            self._answer_waiting()

    def leave_and_join(self, worker: int) -> None:
        """For the worker of this rank; returns when all have left."""
        with self._changed:
            self._shard.leave(worker)
            self._answer_waiting()
        if self._thread.ident is not None:
            self._thread.join()
        self._communicator.wait(self._sends)

    def _serve(self) -> None:
        with failures_end_the_job(self._communicator):
            pause = SHORTEST_PAUSE
            # The own worker's leaving is seen here too, at the latest after a pause.
            while self._shard.num_left:
                message = self._communicator.receive_bytes(Tag.REQUEST)
                if message is None:
                    time.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                    continue
                pause = SHORTEST_PAUSE
                worker, packed = message
                with self._changed:
                    self._handle(worker, unpack_request(packed))
                    self._answer_waiting()

    def _handle(self, worker: int, request: Request) -> None:
        if request.kind is Kind.PUSH:
            size = self._shard.size
            gradient = (
                unpack(self._compression, request.payload, size)
                if request.weight > 0.0
                else np.zeros(0, dtype=np.float32)
            )
            self._shard.push(worker, request.clock, request.weight, gradient)
        elif request.kind is Kind.LEAVE:
            self._shard.leave(worker)
        else:
            self._waiting.append((worker, request.clock, request.kind is Kind.PULL_STRICTLY))

    def _answer_waiting(self) -> None:
        """Answer every pull that need not wait any more."""
        still = []
        for worker, clock, strictly in self._waiting:
            weights = self._shard.read(worker, clock, strictly=strictly)
            if weights is None:
                still.append((worker, clock, strictly))
            else:
                self._sends.append(self._communicator.start_send(weights, worker, Tag.WEIGHTS))
        self._waiting = still
        self._sends = [send for send in self._sends if not send.test()]
        self._changed.notify_all()
