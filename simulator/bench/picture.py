"""Draws a timeline as SVG, and as bars for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from rich.table import Table
from rich.text import Text

from simulator.bench.schedule import Slot
from simulator.tools.progress import elapsed

_TIME_COLUMNS, _FEWEST_BAR_COLUMNS = len("99:99 - 99:99") + 6, 10
"""The width of the time column plus Rich's padding of all columns, and the minimum width of the bars."""
_LEFT, _WIDTH, _ROW, _TOP = 330, 640, 18, 34
_LEAST_S = 5.0
_CRITICAL, _OTHER = "#c0392b", "#7f8c8d"


def shown(slots: Sequence[Slot]) -> list[Slot]:
    """Returns slots of at least 5 s, or 0.1 s on the critical path."""
    return [slot for slot in slots if slot.end - slot.start >= (0.1 if slot.critical else _LEAST_S)]


def table(slots: Sequence[Slot], title: str, columns: int) -> Table:
    """Returns a table, at most `columns` wide, that shows each slot as a bar. The critical path is red."""
    total = max(slot.end for slot in slots)
    names = max(len(name(slot)) for slot in shown(slots))
    bar_columns = max(_FEWEST_BAR_COLUMNS, columns - names - _TIME_COLUMNS)
    drawn = Table(title=title, box=None, show_header=False, title_justify="left")
    for slot in shown(slots):
        first, last = (round(at / total * (bar_columns - 1)) for at in (slot.start, slot.end))
        bar = Text(" " * first + "█" * max(1, last - first), style="red" if slot.critical else "dim")
        drawn.add_row(name(slot), bar, f"{elapsed(slot.start)} - {elapsed(slot.end)}")
    return drawn


def svg(slots: Sequence[Slot], title: str) -> str:
    """Returns an SVG document with a row per slot, and a scale in minutes below."""
    rows = shown(slots)
    total = max(slot.end for slot in rows)
    scale = _WIDTH / total
    height = _TOP + _ROW * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="white"/><text x="8" y="20" font-weight="bold">{escape(title)}</text>',
    ]
    for index, slot in enumerate(rows):
        y, x = _TOP + index * _ROW, _LEFT + slot.start * scale
        width = max(1.0, (slot.end - slot.start) * scale)
        colour = _CRITICAL if slot.critical else _OTHER
        parts.append(f'<text x="8" y="{y + 12}">{escape(name(slot))}</text>')
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 4}" fill="{colour}"/>')
        parts.append(f'<text x="{x + width + 4:.1f}" y="{y + 12}">{elapsed(slot.end - slot.start)}</text>')
    bottom = _TOP + _ROW * len(rows) + 14
    for minute in range(0, int(total // 60) + 1, 5):
        x = _LEFT + minute * 60 * scale
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{bottom - 10}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 4}" text-anchor="middle">{minute}</text>')
    parts.append(f'<text x="{_LEFT}" y="{bottom + 20}">minutes; red: the critical path</text></svg>')
    return "\n".join(parts) + "\n"


def name(slot: Slot) -> str:
    """Returns the slot's name, without package and module of the type."""
    kind, _, rest = slot.name.rpartition(" ")
    return f"{kind.rpartition(':')[2]} {rest}" if ":" in kind else slot.name
