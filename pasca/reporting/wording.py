"""Designs, objectives and dates in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pasca.fronts import Spread
from pasca.tables import percent, value_text
from search_space.architecture import Architecture, decay_rate
from search_space.names import USUAL_EXPONENT, USUAL_LOOPS, AggregatorName

OBJECTIVE_TITLES = {
    "val_error": "validation error",
    "inference_seconds": "inference time",
    "parameters": "parameters",
    "macs": "MACs",
    "peak_memory_bytes": "peak memory",
}
METRIC_TITLES = {"accuracy": "accuracy", "macro-f1": "macro-F1", "roc-auc": "ROC-AUC"}


_MESSAGES = {
    "none": "only the last hop is classified",
    "mean": "hops are averaged",
    "max": "of every feature the largest value over the hops is kept",
    "concat": "hops are put side by side",
    "weighted": "hops are added with one learned weight each",
    "adaptive": "hops are added with weights that a learned gate gives each node",
    "sum": "hops are added",
    "recursive": "hops are added with weights from a learned gate that sees the hops before",
    "jk": "hops are added with weights from a learned gate that sees all hops at once",
}


def objective_title(name: str) -> str:
    """An objective's name for people."""
    return OBJECTIVE_TITLES.get(name, name)


def spread_text(spread: Spread | None) -> str:
    """A fraction in percent with its deviation: `18.2 ± 0.3 %`."""
    return "-" if spread is None else f"{percent(spread)} %"


def short_text(name: str, value: float | None) -> str:
    """A measured value of an objective in a handy unit, large counts in millions."""
    if value is not None and name in ("macs", "parameters") and value >= 1e6:
        return f"{value / 1e9:.3g} G" if value >= 1e9 else f"{value / 1e6:.3g} M"
    return value_text(name, value)


def point_text(point: Mapping[str, float]) -> str:
    """A reference point: `validation error 96.7 %, inference time 106 ms`."""
    return ", ".join(f"{objective_title(name)} {value_text(name, value)}" for name, value in point.items())


def part_keys(design: Architecture) -> set[str]:
    """The four parts of a design's text form by their place, such as `0:augmented^2`."""
    return {f"{place}:{part}" for place, part in enumerate(str(design).split("/"))}


def part_words(design: Architecture) -> dict[str, str]:
    """What each part of a design means, by `part_keys`."""
    pre, message, transform, post = str(design).split("/")
    layers = "one linear layer" if design.k_trans == 1 else f"a perceptron of {design.k_trans} layers"
    return {
        f"0:{pre}": "features are used as they are"
        if design.pre_aggregator is None
        else f"features take {_steps(design.k_pre)} {_operator(design.pre_aggregator)}",
        f"1:{message}": "there are no hops to join" if design.message is None else _message(design.message),
        f"2:{transform}": f"{layers} classifies each node by itself",
        f"3:{post}": (
            "predictions are used as they are"
            if design.post_aggregator is None
            else f"predictions take {_steps(design.k_post)} {_operator(design.post_aggregator)}"
        )
        + (f"; other than in the recipe: {post.partition('@')[2]}" if design.extras else ""),
    }


def time_text(stamp: str | None) -> str:
    """A time as the manifest states it, to the minute."""
    if not stamp:
        return "-"
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M UTC")


def _steps(count: int) -> str:
    return "one step" if count == 1 else f"{count} steps"


def _operator(aggregator: str) -> str:
    name = AggregatorName.parse(aggregator)
    found = {
        "augmented": "along the normalised edges",
        "ppr": "of personalised PageRank, restarting with probability {}",
        "triangle": "along edges weighted by their triangles",
        "heat": "of heat that flows along the edges, each of length {}",
        "highpass": "that keep what sets a node apart from its neighbours",
        "twochannel": "along the edges, beside as many that keep what sets a node apart",
        "cs": "of Correct & Smooth, {} of each from the neighbours",
    }[name.kind].format("" if name.strength is None else f"{name.strength:g}")
    if name.exponent != USUAL_EXPONENT:
        found += f", degrees divided at exponent {name.exponent:g}"
    return found if name.loops == USUAL_LOOPS else f"{found}, self-loops of weight {name.loops:g}"


def _message(message: str) -> str:
    rate = decay_rate(message)
    return _MESSAGES[message] if rate is None else f"hops are added with weights that decay at rate {rate:g}"
