"""Recipe: the one written training recipe that every trial of a run follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from search_space.architecture import Architecture
from search_space.errors import ConfigError
from search_space.names import NORMALISATIONS

METRICS = ("accuracy", "macro-f1", "roc-auc")
CLASS_WEIGHTS = ("none", "balanced")
_MOST_LONGER = 4.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a design is trained; recorded in every manifest and every exported model.

    Attributes:
        hidden_width: width of hidden layers.
        learning_rate, weight_decay: Adam's (L2 added to the gradient); the hop weights of `weighted` are not decayed.
        input_dropout, dropout: share of the joined features, and of each hidden layer, zeroed while training.
        max_epochs: full-batch steps at most.
        patience: a repeat stops when its best epoch lies this many epochs back.
        evaluate_every: epochs between two looks at the validation nodes.
        normalise: feature normalisation: `row` divides by the sum of absolute values, `symmetric` by the roots of that
            of the row and that of the column, `l2` by the Euclidean norm,
            `standard` centres and scales each column by all nodes' mean and deviation, `none` leaves them.
        metric: score on validation and test nodes; `val_error` is 1 - score.
        class_weight: `balanced` weighs a class by the inverse of its count among the training nodes.
    Raises:
        ConfigError: a value is out of range or not one of the named ones.
    """

    hidden_width: int = 128
    learning_rate: float = 0.03
    weight_decay: float = 5e-4
    input_dropout: float = 0.5
    dropout: float = 0.5
    max_epochs: int = 200
    patience: int = 30
    evaluate_every: int = 5
    normalise: str = "l2"
    metric: str = "accuracy"
    class_weight: str = "none"

    def __post_init__(self) -> None:
        for name in ("hidden_width", "max_epochs", "patience", "evaluate_every"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {count!r}")
        for name, least, below in (
            ("learning_rate", 0.0, None),
            ("weight_decay", 0.0, None),
            ("input_dropout", 0.0, 1.0),
            ("dropout", 0.0, 1.0),
        ):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= least:
                raise ConfigError(f"{name} must be a number of at least {least:g}, got {number!r}")
            if number == float("inf") or (below is not None and number >= below):
                raise ConfigError(f"{name} must be below {below or 'infinity'}, got {number!r}")
            object.__setattr__(self, name, float(number))
        if self.learning_rate == 0.0:
            raise ConfigError("learning_rate must be above 0, got 0")
        for name, legal in (("normalise", NORMALISATIONS), ("metric", METRICS), ("class_weight", CLASS_WEIGHTS)):
            if getattr(self, name) not in legal:
                raise ConfigError(f"unknown {name} {getattr(self, name)!r}; choose from: {', '.join(legal)}")

    def as_mapping(self) -> dict[str, Any]:
        """The fields as JSON types; `from_mapping` reads them back."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Recipe:
        """Read fields from a mapping; what is missing keeps its default.

        Raises:
            ConfigError: a field is unknown or its value is not legal.
        """
        legal = [field.name for field in fields(cls)]
        for name in values:
            if name not in legal:
                raise ConfigError(f"unknown field {name!r} of a recipe; choose from: {', '.join(legal)}")
        return cls(**values)


def recipe_of(design: Architecture, recipe: Recipe) -> Recipe:
    """The recipe that a design is trained by: the run's, with what the design says otherwise.

    A design with a slower learning rate than the run's gets more epochs and patience in the same proportion, up to four
    times as many: it would be stopped on its way otherwise.
    """
    legal = {field.name for field in fields(Recipe)}
    chosen = {name: value for name, value in design.extras.items() if name in legal}
    if not chosen:
        return recipe
    found = replace(recipe, **chosen)
    longer = min(recipe.learning_rate / found.learning_rate, _MOST_LONGER)
    if longer <= 1.0:
        return found
    return replace(found, max_epochs=round(recipe.max_epochs * longer), patience=round(recipe.patience * longer))
