"""What a page is made of: sections of blocks, a block being a text, a plot and the table that says the same.

Texts are plain: the page's frame escapes all of them. Plots are Plotly's data and layout as JSON types; their colours
are names of the page's own colours (`var(--accent)`), which differ by day and night, and every text in them that comes
from users has gone through `plot_text`, since Plotly reads a little markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pasca.tables import Cells

SERIES = tuple(f"var(--series-{number})" for number in range(1, 9))
"""Colours of lines and bars that stand for different things, told apart by most colour-blind readers too."""

MUTED, ACCENT, GRID = "var(--muted)", "var(--accent)", "var(--line)"


@dataclass(frozen=True)
class Figure:
    """One plot.

    Attributes:
        id: unique on the page. The plot named `front` is drawn by the page's script from the trials themselves.
        label: what it shows, for readers who do not see it.
        data, layout: Plotly's.
        height: in pixels.
    """

    id: str
    label: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 340

    def spec(self) -> dict[str, Any]:
        """JSON types for the page's script."""
        return {"data": list(self.data), "layout": {**self.layout, "height": self.height}}


@dataclass(frozen=True)
class Block:
    """A text, a plot and a table, each of which may be missing.

    Attributes:
        title: a heading, or none.
        texts: paragraphs.
        figure: the plot.
        table: the same as text; also used alone.
        summary: the line that opens the table; None shows it openly.
        narrow: whether several such blocks may stand side by side.
        keys: one for each row of the table where choosing a row shows its design: `t` and a trial's number, or `c` and
            a classic's name.
        marks: one word for each row of the table, or none, shown beside the row's first cell.
        chooser: whether the block has the menus that choose the plot's axes.
    """

    title: str = ""
    texts: tuple[str, ...] = ()
    figure: Figure | None = None
    table: Cells | None = None
    summary: str | None = None
    narrow: bool = False
    keys: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    chooser: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading and a place in its menu.

    Attributes:
        id: the anchor.
        title, menu: the heading, and the shorter word in the menu.
        texts: paragraphs under the heading.
        blocks: in order.
    """

    id: str
    title: str
    menu: str
    texts: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


def plot_text(text: str) -> str:
    """A text as Plotly shows it literally: its little markup and its templates are taken apart."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("%{", "%&#123;").replace("$", "&#36;")


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis in the page's manner."""
    return {"title": {"text": title}, "gridcolor": GRID, "zeroline": False, "automargin": True, **options}
