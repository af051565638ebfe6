"""Several ranks against one: propagation, its memory, consistencies under pauses, and what each consistency learns.

Start it under mpiexec, with one thread a rank; rank 0 prints one JSON line.

    mpiexec -n 2 python benchmarks/bench_scaling.py propagation --nodes 1000000 --edges 20000000 --features 100 --hops 3
    mpiexec -n 2 python benchmarks/bench_scaling.py memory --nodes 300000 --edges 3000000
    mpiexec -n 4 python benchmarks/bench_scaling.py pauses --clocks 500
    mpiexec -n 4 python benchmarks/bench_scaling.py learning PATH_OF_A_GRAPH --repeats 10

A whole search is timed by starting `pasca search` itself, with and without mpiexec; its manifest and its trials hold
the times.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.clocks import Consistency
from engines.evaluation.communicator import Communicator, failures_end_the_job
from engines.evaluation.feature_slices import FeatureSlices
from engines.evaluation.messages import Tag
from engines.evaluation.mpi import world
from engines.evaluation.parameter_server import ParameterServer, ServerSettings
from engines.evaluation.partition import make_partition, partition_report
from engines.evaluation.plan_model import ENTRY_COLUMNS, Layout, Rates, estimate
from engines.evaluation.plans import USUAL_BUFFER_BYTES, Ownership, PropagationPlan
from engines.evaluation.propagation import propagate, set_threads
from engines.evaluation.row_blocks import RowBlock, RowBlocks

USUAL, SLOW_TIMES, SLOW_SHARE = 0.004, 4, 0.1


def propagation(ranks: Communicator, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of all hops on one rank and on all of them, for both plans; bytes and memory against the byte model."""
    N, F, K = options.nodes, options.features, options.hops
    adjacency = clustered_graph(N, options.edges, options.reach)
    matrix = sparse.csr_array(
        (np.full(adjacency.nnz, 0.1, np.float32), adjacency.indices, adjacency.indptr), shape=adjacency.shape
    )
    x = np.random.default_rng(1).standard_normal((N, F), dtype=np.float32)
    partition = make_partition(options.partition, adjacency, ranks.size)
    report = partition_report(partition, adjacency)
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    start = x[ownership.nodes]
    plans: list[PropagationPlan] = [
        RowBlocks(
            ranks,
            ownership,
            lambda key: RowBlock.of(matrix, ownership, partition.owner, ranks.rank, ranks.size),
        ),
        FeatureSlices(ranks, ownership, lambda key: matrix),
    ]
    predicted = {plan.name: plan.predicted_bytes("augmented", F, K) for plan in plans}
    alone: list[float] = []
    spans: dict[str, list[float]] = {plan.name: [] for plan in plans}
    sent, waited = dict.fromkeys(spans, 0), dict.fromkeys(spans, 0.0)
    # In turns, since a machine's speed changes from one minute to the next.
    for _ in range(options.runs):
        alone.append(slowest(ranks, lambda: propagate(matrix, x, K) if ranks.rank == 0 else None))
        for plan in plans:
            before = ranks.traffic.copy()
            spans[plan.name].append(slowest(ranks, functools.partial(walk, plan, start, K)))
            moved = ranks.traffic.since(before)
            sent[plan.name], waited[plan.name] = moved.sent_bytes, waited[plan.name] + moved.wait_seconds
    wire_bytes = options.wire_bytes or measured_wire(ranks)
    rates = Rates(adjacency.nnz * (F + ENTRY_COLUMNS) * K / float(np.median(alone)), wire_bytes)
    found: dict[str, Any] = {
        "wire_bytes_a_second": wire_bytes,
        "alone_seconds": float(np.median(alone)),
        "halo_rows": sum(report.halo),
        "imbalance": report.imbalance,
    }
    for name, seconds in spans.items():
        found[f"plan_{name}"] = {
            "seconds": float(np.median(seconds)),
            "times_faster": float(np.median(np.divide(alone, seconds))),
            "sent_bytes": int(ranks.sum(np.array([sent[name]]))[0]),
            "predicted_bytes": predicted[name],
            "model_seconds": estimate(name, Layout.counted(report), F, K, rates, USUAL_BUFFER_BYTES).seconds,
            "waiting_share": waited[name] / sum(seconds),
            "hop_bytes_of_a_rank": int(start.nbytes) * (K + 1),
        }
    found["peak_bytes_of_a_rank"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def measured_wire(ranks: Communicator, num_rows: int = 1 << 17, width: int = 64, tiles: int = 16) -> float:
    """Bytes a second that the slowest rank hands to its neighbour while it takes as many, packed and unpacked."""
    rows, taken = np.ones((num_rows, width), np.float32), np.zeros((num_rows, width), np.float32)
    to, source = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    half, step = width // 2, num_rows // tiles

    def hand_over() -> None:
        for first in range(0, num_rows, step):
            part = np.empty((step, half), np.float32)
            pending = [ranks.start_receive(part, source, Tag.ROWS)]
            pending.append(ranks.start_send(np.ascontiguousarray(rows[first : first + step, :half]), to, Tag.ROWS))
            ranks.wait(pending)
            taken[first : first + step, half:] = part

    hand_over()  # page faults, and what the library sets up with the first message
    spans = [slowest(ranks, hand_over) for _ in range(5)]
    return num_rows * half * rows.itemsize / float(np.median(spans))


def walk(plan: PropagationPlan, start: NDArray[np.float32], num_hops: int) -> None:
    """All hops of a plan, let go at once."""
    plan.walk("augmented", start, 0.0).steps(num_hops)


def memory(ranks: Communicator, options: argparse.Namespace) -> dict[str, Any]:
    """Peak memory of the rank with most of it while it propagates, beside the byte model; for two sizes of buffers.

    What a rank holds before it reads the graph is left out, and so is the whole graph, which is let go before the hops.
    """
    F, K = options.features, options.hops
    propagate(sparse.csr_array(np.ones((1, 1), np.float32)), np.ones((1, 1), np.float32), 1)  # loads the compiler
    found: dict[str, Any] = {}
    for plan in ("rows", "features"):
        for buffer_bytes in (USUAL_BUFFER_BYTES, options.buffers << 20):
            give_back_free_memory()
            before = resident_bytes("VmRSS")
            walking, start, layout = cut(ranks, options, plan, buffer_bytes)
            give_back_free_memory()
            with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
                reset.write("5")  # the highest figure starts anew
            hops = walking.walk("augmented", start, 0.0).steps(K)
            peak = resident_bytes("VmHWM") - before
            stored = start.nbytes + sum(hop.nbytes for hop in hops)
            everybody = np.stack(ranks.gather(np.array([peak, stored])))
            model = estimate(plan, layout, F, K, Rates(1e9, 1e9), buffer_bytes)
            found[f"{plan}, buffers of {buffer_bytes >> 20} MiB"] = {
                "peak_bytes": int(everybody[:, 0].max()),
                "planned_bytes": model.memory_bytes,
                "peak_over_plan": float(everybody[:, 0].max() / model.memory_bytes),
                "stored_hop_bytes": int(everybody[:, 1].max()),
                "planned_hop_bytes": model.hop_bytes,
            }
            del walking, start, hops
    return found


def cut(
    ranks: Communicator, options: argparse.Namespace, name: str, buffer_bytes: int
) -> tuple[PropagationPlan, NDArray[np.float32], Layout]:
    """A plan with this rank's share of a graph, and features for it; the whole graph is let go."""
    adjacency = clustered_graph(options.nodes, options.edges, options.reach)
    matrix = sparse.csr_array(
        (np.full(adjacency.nnz, 0.1, np.float32), adjacency.indices, adjacency.indptr), shape=adjacency.shape
    )
    partition = make_partition(options.partition, adjacency, ranks.size)
    layout = Layout.counted(partition_report(partition, adjacency))
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    plan: PropagationPlan
    if name == "rows":
        block = RowBlock.of(matrix, ownership, partition.owner, ranks.rank, ranks.size)
        plan = RowBlocks(ranks, ownership, lambda key: block, buffer_bytes)
    else:
        plan = FeatureSlices(ranks, ownership, lambda key: matrix, buffer_bytes)
    start = np.random.default_rng(ranks.rank).standard_normal((ownership.nodes.size, options.features), np.float32)
    return plan, start, layout


def give_back_free_memory() -> None:
    """Hand what is free in the heap to the system, so that it counts neither before nor as part of what comes after."""
    ctypes.CDLL(None).malloc_trim(0)


def resident_bytes(field: str) -> int:
    """`VmRSS` or `VmHWM` of this process: what it has in memory, and the most it had."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def clustered_graph(num_nodes: int, num_edges: int, reach: int) -> sparse.csr_array:
    """Nodes in a row whose neighbours are at most `reach` places away, as after an ordering that keeps locality."""
    rng = np.random.default_rng(0)
    source = rng.integers(0, num_nodes, num_edges)
    target = (source + rng.integers(1, reach + 1, num_edges)) % num_nodes
    both = (np.concatenate((source, target)), np.concatenate((target, source)))
    made = sparse.csr_array((np.ones(2 * num_edges, np.float32), both), shape=(num_nodes, num_nodes))
    # as the matrices of a search are: indices of 64 bits where 32 suffice would slow down one process alone
    made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
    return made


def slowest(ranks: Communicator, run: Callable[[], Any]) -> float:
    """Seconds of the slowest rank."""
    ranks.barrier()
    began = time.perf_counter()
    run()
    return float(np.concatenate(ranks.gather(np.array([time.perf_counter() - began]))).max())


def pauses(ranks: Communicator, options: argparse.Namespace) -> dict[str, Any]:
    """Updates a second of each consistency, with pauses at random and with one worker that is always slow."""
    found: dict[str, Any] = {}
    for kind in ("random", "permanent"):
        rates = {}
        for consistency in (Consistency("bsp"), Consistency("ssp", 4), Consistency("asp")):
            rates[consistency.name] = updates_per_second(ranks, consistency, kind, options.clocks)
        found[kind] = {
            **rates,
            "ssp_over_bsp": rates["ssp"] / rates["bsp"],
            "asp_over_bsp": rates["asp"] / rates["bsp"],
        }
    return found


def updates_per_second(ranks: Communicator, consistency: Consistency, kind: str, num_clocks: int) -> float:
    """Pushes of all workers a second until the first has made its clocks; work is sleep, so that cores do not count."""
    rng = np.random.default_rng(ranks.rank)
    weights = np.zeros(1000, np.float32)
    server = ParameterServer(
        ranks, weights, learning_rate=0.01, decay=weights, settings=ServerSettings(consistency, num_servers=1)
    )
    ranks.barrier()
    began, clock = time.perf_counter(), 0
    # Everybody stops at the same time: a fast worker's updates count as long as there is work.
    limit = num_clocks * USUAL * 2
    while clock < num_clocks * 4 and (consistency.bound is not None or time.perf_counter() - began < limit):
        if consistency.bound is not None and clock == num_clocks:
            break
        server.pull(clock)
        slow = rng.random() < SLOW_SHARE if kind == "random" else ranks.rank == ranks.size - 1
        time.sleep(USUAL * (SLOW_TIMES if slow else 1))
        server.push(clock, 1.0 / ranks.size, weights)
        clock += 1
    seconds = float(np.concatenate(ranks.gather(np.array([time.perf_counter() - began]))).max())
    server.close()
    return float(ranks.sum(np.array([clock]))[0]) / seconds


def learning(ranks: Communicator, options: argparse.Namespace) -> dict[str, Any]:
    """Validation accuracy (%), mean and standard error over repeats, and bytes sent, of each consistency."""
    from engines.evaluation.admm import AdmmSettings
    from engines.evaluation.distributed import GroupEvaluator, GroupSettings
    from engines.evaluation.graph_share import CutShare
    from engines.evaluation.recipe import Recipe
    from pasca.datasets import load
    from search_space.architecture import Architecture

    graph = load(options.graph)
    design = Architecture.parse(options.design)
    found: dict[str, Any] = {"graph": graph.name, "design": options.design}
    wanted = {"local_steps": options.local_steps, "penalty": options.penalty}
    admm = AdmmSettings(**{field: value for field, value in wanted.items() if value is not None})
    for name in options.rules.split(","):
        kind, _, staleness = name.partition("-")
        rule = Consistency(kind, int(staleness or 0))
        settings = GroupSettings(plan="rows", servers=ServerSettings(rule), admm=admm)
        evaluator = GroupEvaluator(ranks, CutShare(ranks, graph, options.partition), Recipe(), settings)
        if design.pre_aggregator is not None:
            evaluator.hop(design.pre_aggregator, design.k_pre)
        errors, details = evaluator.evaluate(design, tuple(range(options.repeats)))
        found[name] = {
            "accuracy": float(100 * (1 - errors.mean())),
            "standard_error": float(100 * errors.std(ddof=1) / len(errors) ** 0.5),
            "sent_bytes": details["group"]["sent_bytes"],
            "epochs": details["num_epochs"],
            "seconds": details["seconds"]["train"],
        }
    return found


def main() -> None:
    """Run one benchmark on all ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    both = [commands.add_parser("propagation"), commands.add_parser("memory")]
    for name, usual in (("nodes", 1_000_000), ("edges", 20_000_000), ("features", 100), ("hops", 3), ("reach", 5000)):
        for one in both:
            one.add_argument(f"--{name}", type=int, default=usual)
    for one in both:
        one.add_argument("--partition", default="contiguous")
    both[0].add_argument("--runs", type=int, default=5)
    both[0].add_argument("--wire-bytes", type=float, help="a second between two ranks, instead of measuring it")
    both[1].add_argument("--buffers", type=int, default=16)
    one = commands.add_parser("pauses")
    one.add_argument("--clocks", type=int, default=500)
    one = commands.add_parser("learning")
    one.add_argument("graph")
    one.add_argument("--design", default="augmented^4/mean/mlp-2/-")
    one.add_argument("--repeats", type=int, default=10)
    # training nodes often come first: in contiguous parts they would all be one rank's
    one.add_argument("--partition", default="hash")
    one.add_argument("--rules", default="bsp,ssp-1,ssp-2,ssp-4,ssp-8,asp,admm")
    one.add_argument("--local-steps", type=int)
    one.add_argument("--penalty", type=float)
    options = parser.parse_args()
    set_threads(1)
    if options.what == "learning":
        import torch

        torch.set_num_threads(1)
    ranks = world()
    with failures_end_the_job(ranks):
        found = {"propagation": propagation, "memory": memory, "pauses": pauses, "learning": learning}[options.what](
            ranks, options
        )
    if ranks.rank == 0:
        print(json.dumps({"benchmark": f"scaling/{options.what}", "ranks": ranks.size, **vars(options), **found}))


if __name__ == "__main__":
    main()
