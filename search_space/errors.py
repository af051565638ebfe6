"""Every error that pasca raises on purpose.

PascaError
├── InputError            something the user gave cannot be used (exit code 2)
│   ├── DesignError       a design that is not legal, or a text that is not a design
│   ├── SpaceError        a search space that is empty or names unknown choices
│   ├── ObjectiveError    an objective, bound or metric that does not exist or is not defined here
│   ├── ShapeError        arrays whose shapes do not belong together
│   ├── GraphError        a graph whose parts disagree
│   ├── DataError         a file that is not what it claims to be
│   ├── ConfigError       a setting that does not exist or has no legal value
│   ├── RunError          a run folder that cannot be used as asked
│   └── ModelError        an exported model that cannot be read or does not fit the data
├── TrialFailure          one trial could not be evaluated; the search goes on
└── StorageError          a result could not be written (exit code 1)

A message has three parts: the rule, what came, and what to do.
"""

from __future__ import annotations


class PascaError(Exception):
    """Base of every error that pasca raises on purpose."""


class InputError(PascaError):
    """Something the user gave cannot be used; nothing was computed from it."""


class DesignError(InputError):
    """A design is not legal, or a text does not describe a design."""


class SpaceError(InputError):
    """A search space is empty, names unknown choices, or does not hold a design."""


class ObjectiveError(InputError):
    """An objective, bound or metric does not exist, or is not defined for the data at hand."""


class ShapeError(InputError):
    """Arrays have shapes that do not belong together."""


class GraphError(InputError):
    """The parts of a graph disagree with one another."""


class DataError(InputError):
    """A file is not what it claims to be."""


class ConfigError(InputError):
    """A setting does not exist or has no legal value."""


class RunError(InputError):
    """A run folder cannot be used as asked."""


class ModelError(InputError):
    """An exported model cannot be read, or does not fit the data given."""


class TrialFailure(PascaError):
    """One trial could not be evaluated; its message is the trial's recorded reason."""


class StorageError(PascaError):
    """A result could not be written; what was recorded before is intact."""
