"""What a command has to say, as text and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pasca.tables import Cells


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command.

    Attributes:
        data: JSON types, printed with `--json`.
        said: lines and tables, printed otherwise.
        as_json: which of the two is asked for.
        exit_code: of the program; 1 where the answer is that something is not as it should be.
    """

    data: Mapping[str, Any] | Sequence[Any]
    said: Sequence[str | Cells]
    as_json: bool = False
    exit_code: int = 0


class Stopped(Exception):
    """The user or the system ended a command; the message says how to go on.

    Attributes:
        exit_code: 130 after Ctrl-C, 143 after SIGTERM.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
