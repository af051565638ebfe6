"""Pooling: a design whose records differ only in their seeds is one observation, from all of its seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from engines.trial import Status, Trial

D = TypeVar("D")


def with_further_seeds(trials: Iterable[Trial[D]]) -> list[Trial[D]]:
    """The first trial of each design, with the complete trials that repeat it averaged in, each seed counting once.

    A trial that nothing repeats is handed back as it is; one whose first trial is not among those given is left out.
    A value that all records agree on stays as it is, to the last bit; a variance that one of them lacks is left out.
    """
    given = list(trials)
    repeats: dict[int, list[Trial[D]]] = {}
    for trial in given:
        if trial.repeats_of is not None and trial.status is Status.COMPLETE:
            repeats.setdefault(trial.repeats_of, []).append(trial)
    firsts = (trial for trial in given if trial.repeats_of is None)
    return [
        _pooled([first, *repeats[first.number]])
        if first.status is Status.COMPLETE and first.number in repeats
        else first
        for first in firsts
    ]


def _pooled(records: Sequence[Trial[D]]) -> Trial[D]:
    counts = [max(len(trial.seeds), 1) for trial in records]
    shares = [count / sum(counts) for count in counts]
    return replace(
        records[0],
        seeds=tuple(seed for trial in records for seed in trial.seeds),
        values=_weighted([trial.values for trial in records], shares),
        # of a weighted mean of independent means
        variances=_weighted([trial.variances for trial in records], [share**2 for share in shares], equal=False),
    )


def _weighted(
    records: Sequence[Mapping[str, float]], weights: Sequence[float], *, equal: bool = True
) -> Mapping[str, float]:
    """The weighted sum of each name that every record has."""
    names = [name for name in records[0] if all(name in record for record in records)]
    found = {name: [record[name] for record in records] for name in names}
    return MappingProxyType(
        {
            name: values[0]
            if equal and len(set(values)) == 1
            else sum(weight * value for weight, value in zip(weights, values, strict=True))
            for name, values in found.items()
        }
    )
