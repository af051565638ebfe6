"""LoadOptions: how a source is to be read; the same choices as keywords in Python and as flags on the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from search_space.errors import ConfigError

FEATURE_CHOICES = ("degree", "onehot-degree", "svd", "identity", "adjacency")
UNKNOWN_NODE_CHOICES = ("error", "drop")
DEFAULT_TRAIN_PER_CLASS = 20
DEFAULT_VAL_PER_CLASS = 30


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a source is to be read. Every field has a default that suits the source.

    Attributes:
        directed: keep the directions of arcs instead of symmetrising.
        weighted: True uses the values of an adjacency as edge weights, False ignores every weight, None uses a weight
            column of an edge table and reads the values of the benchmark formats as counts.
        split: None takes the split that the source gives, or a random one where it gives none; `random` asks for a
            random one; any other text names one of the source's splits (`public`, or a number where it has several).
        train_per_class, val_per_class: labelled nodes a class of a random split, 20 and 30 where nothing is said.
        train_fraction, val_fraction: parts of every class instead of counts; give both.
        split_seed: seed of a random split, 0 where nothing is said. Any of these five asks for a random split.
        features: `degree`, `onehot-degree`, `svd`, `identity` or `adjacency` make features from the structure; anything
            else is a file of features (.npy, .npz, .mtx, .csv). None takes the source's own, or degrees without any.
        edges, nodes, labels: files of a plain-table data set, where their names do not say which is which.
        header: whether the first row of the tables names their columns; None decides by its content.
        id_column, label_column: of a node table, where their names do not say so.
        unknown_nodes: `error` refuses an edge to a node that the node table lacks, `drop` leaves such edges out.
        encoding: of text files.
        for_training: refuse labels that nothing could be learned from (one class only, no training node). Off for
            graphs that are only to be looked at, converted or predicted on.
        verify: check the checksums of a folder that pasca wrote.
    """

    directed: bool = False
    weighted: bool | None = None
    split: str | None = None
    train_per_class: int | None = None
    val_per_class: int | None = None
    train_fraction: float | None = None
    val_fraction: float | None = None
    split_seed: int | None = None
    features: str | Path | None = None
    header: bool | None = None
    id_column: str | None = None
    label_column: str | None = None
    edges: str | Path | None = None
    nodes: str | Path | None = None
    labels: str | Path | None = None
    unknown_nodes: str = "error"
    encoding: str = "utf-8"
    for_training: bool = True
    verify: bool = False

    def __post_init__(self) -> None:
        if self.split is not None:
            object.__setattr__(self, "split", str(self.split))
        if self.unknown_nodes not in UNKNOWN_NODE_CHOICES:
            raise ConfigError(f"unknown_nodes is one of {', '.join(UNKNOWN_NODE_CHOICES)}, got {self.unknown_nodes!r}")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ConfigError(f"unknown encoding {self.encoding!r}; try utf-8, latin-1 or cp1252") from None
        for what in ("train_per_class", "val_per_class"):
            count = getattr(self, what)
            if count is not None and count < 1:
                raise ConfigError(f"{what} is at least 1, got {count}")
        if self.split_seed is not None and self.split_seed < 0:
            raise ConfigError(f"split_seed is not negative, got {self.split_seed}")
        self._check_fractions()
        if self.split not in (None, "random") and replace(self, split=None).wants_random_split:
            raise ConfigError(
                f"split {self.split!r} is a given one; counts, fractions and a seed are for a random split"
            )

    def _check_fractions(self) -> None:
        train, val = self.train_fraction, self.val_fraction
        if train is None and val is None:
            return
        if train is None or val is None:
            raise ConfigError("train_fraction and val_fraction go together, got one of them")
        if self.train_per_class is not None or self.val_per_class is not None:
            raise ConfigError("a random split has counts per class or fractions, got both")
        if not (train > 0 and val > 0 and train + val <= 1):
            raise ConfigError(f"fractions are positive and add up to 1 at most, got train {train} and val {val}")

    @property
    def made_features(self) -> str | None:
        """The kind of features to make from the structure, where one was asked for."""
        return str(self.features) if self.features in FEATURE_CHOICES else None

    @property
    def features_file(self) -> str | Path | None:
        """The file of features that was asked for."""
        return None if self.features in FEATURE_CHOICES else self.features

    @property
    def wants_random_split(self) -> bool:
        """Whether a random split was asked for, by name or by one of its settings."""
        settings = (self.train_per_class, self.val_per_class, self.train_fraction, self.val_fraction, self.split_seed)
        return self.split == "random" or (self.split is None and any(value is not None for value in settings))
