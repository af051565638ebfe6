"""Says which rank was killed and by what.

A process that is killed, by hand or for want of memory, cannot say so, and launchers name a process number at best. So
under a launcher of several ranks each rank is a pair: a parent that does nothing but wait, and a child that works.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
from types import FrameType

from engines.evaluation.communicator import launched_ranks

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h

_log = logging.getLogger(__name__)


def supervised() -> None:
    """Under a launcher of several ranks, go on in a child that the parent waits for; otherwise return at once.

    To be called while the process has one thread and no MPI library. The parent ends as the child ended; a child whose
    parent is killed is killed too, so that nothing is left behind. Linux only; elsewhere it returns at once.
    """
    rank, size = launched_ranks()
    if size == 1 or sys.platform != "linux":
        return
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent was killed before that was set
        return
    os._exit(_wait(child, rank, size))


def _wait(child: int, rank: int, size: int) -> int:
    def hand_on(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, hand_on)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    killer = os.WTERMSIG(status)
    cause = "; when memory runs out the system does that" if killer == signal.SIGKILL else ""
    name = signal.Signals(killer).name
    _log.critical("rank %d of %d on %s was killed by %s%s", rank, size, socket.gethostname(), name, cause)
    return 128 + killer
