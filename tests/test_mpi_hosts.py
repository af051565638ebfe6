"""The MPI tests across two hosts, made of network namespaces that only a virtual cable joins.

Ranks on different hosts share no memory: every message goes through the network. Needs root and Linux; skipped
elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300

ADDRESSES = ("10.213.77.1", "10.213.77.2")


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The start of a command that launches ranks on two hosts in turn; skips where hosts cannot be made."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None or "HYDRA" not in said([mpiexec, "--version"]):
        pytest.skip("needs the mpiexec of MPICH: pip install mpich")
    if shutil.which("ip") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root and the command ip to make network namespaces")
    names = [f"pasca-{os.getpid()}-{host}" for host in "ab"]
    cables = [f"pc{os.getpid()}{host}" for host in "ab"]
    made = []
    try:
        for name in names:
            if "error" in (why := attempt(["ip", "netns", "add", name])):
                pytest.skip(f"this machine makes no network namespaces: {why}")
            made.append(name)
        ends = [part for name, cable in zip(names, cables, strict=True) for part in (name, cable)]
        if "error" in (why := attempt(cable_command(*ends))):
            pytest.skip(f"this machine makes no virtual network cables: {why}")
        for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
            inside = ["ip", "-n", name]
            for command in (
                ["link", "set", "lo", "up"],
                ["addr", "add", f"{address}/24", "dev", cable],
                ["link", "set", cable, "up"],
            ):
                subprocess.run([*inside, *command], check=True, timeout=SECONDS)
        # what ssh is to a cluster: the first argument says on which host the rest is run
        remote = tmp_path_factory.mktemp("launcher") / "on_host"
        cases = "".join(f"  {host}) name={name};;\n" for host, name in zip(ADDRESSES, names, strict=True))
        run = 'exec ip netns exec $name sh -c "$*"'
        remote.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}esac\n{run}\n")
        remote.chmod(0o700)
        yield [
            *("ip", "netns", "exec", names[0], mpiexec, "-localhost", ADDRESSES[0]),
            *("-launcher", "rsh", "-launcher-exec", str(remote), "-hosts", ",".join(ADDRESSES), "-ppn", "1"),
        ]
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=True, timeout=SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "num_ranks"), [("test_communicator.py", 2), ("test_plans.py", 3), ("test_group_training.py", 2)]
)
def test_messages_propagation_and_training_hold_across_hosts(what: str, num_ranks: int, launch: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/mpi/{what}"]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [*launch, "-n", str(num_ranks), *command],
        cwd=ROOT,
        env={**os.environ, **one_thread},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]


def test_the_two_hosts_have_no_other_way_to_one_another(launch: list[str]) -> None:
    """A rank of each host says which addresses it has: its own cable's, and nobody else's."""
    program = "import subprocess; print(subprocess.run(['ip', '-br', 'addr'], capture_output=True, text=True).stdout)"
    done = subprocess.run(
        [*launch, "-n", "2", sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    lines = [line for line in done.stdout.splitlines() if "10.213.77." in line]
    assert sorted(line.split()[2].removesuffix("/24") for line in lines) == sorted(ADDRESSES)


def cable_command(one: str, its_cable: str, other: str, others_cable: str) -> list[str]:
    """Make a cable with one end in each of two namespaces."""
    ends = ["type", "veth", "peer", "name", others_cable, "netns", other]
    return ["ip", "link", "add", its_cable, "netns", one, *ends]


def attempt(command: list[str]) -> str:
    """What a command says is wrong, beginning with `error`; empty where it did what it should."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return "" if done.returncode == 0 else f"error {done.returncode}, {done.stderr.strip()}"


def said(command: list[str]) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stdout
