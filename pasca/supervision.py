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

from engines.evaluation.launch import launched_ranks

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h

_HANDED_ON = (signal.SIGINT, signal.SIGTERM)
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_log = logging.getLogger(__name__)


def supervised() -> None:
    """Under a launcher of several ranks, go on in a child that the parent waits for; otherwise return at once.

    To be called while the process has one thread and no MPI library. The parent ends as the child ended; a child whose
    parent is killed is killed too, so that nothing is left behind. Elsewhere than on Linux there is no such pair. The
    numerical libraries are told to use one thread a rank, where the environment does not say otherwise.
    """
    rank, size = launched_ranks()
    if size == 1:
        return
    for name in _THREAD_COUNTS:  # numerical libraries read them when they are loaded, which comes later
        os.environ.setdefault(name, "1")
    if sys.platform != "linux":
        return
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)  # until it is settled who handles them
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent was killed before that was set
        return
    os._exit(_wait(child, rank, size))


def _wait(child: int, rank: int, size: int) -> int:
    def hand_on(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in _HANDED_ON:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    killer = os.WTERMSIG(status)
    cause = "; when memory runs out the system does that" if killer == signal.SIGKILL else ""
    name = signal.Signals(killer).name
    _log.critical("rank %d of %d on %s was killed by %s%s", rank, size, socket.gethostname(), name, cause)
    return 128 + killer
