"""Bars: a picture of how many runs a second each contestant did, longest first, on a scale of powers of ten.

It is drawn with text as text, and reads in light and in dark. The thin line across the end of a bar goes from the slowest
round to the fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from bench.entries import YARDSTICK
from bench.report.medians import Standing
from bench.report.tables import number, ratio

LABELS, BARS, VALUES = 300, 430, 130  # widths, from left to right
TOP, ROW, BAR, FOOT = 58, 24, 14, 30

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .head { font-size: 15px; font-weight: 600 }
  .small { font-size: 11px; fill: #59636e }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .spread { stroke: #1f2328; stroke-width: 1.5 }
  .floor { fill: #818b98 }
  .duly { fill: #0969da }
  .peer { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .spread { stroke: #f0f6fc }
    .floor { fill: #9198a1 }
    .duly { fill: #4493f8 }
    .peer { fill: #db6d28 }
  }
"""


def picture(title: str, standings: Sequence[Standing]) -> str:
    """An SVG."""
    rows = sorted(standings, key=lambda each: each.runs, reverse=True)
    first = floor(log10(min(each.least for each in rows)))
    last = max(ceil(log10(max(each.most for each in rows))), first + 1)
    width, height = LABELS + BARS + VALUES, TOP + ROW * len(rows) + FOOT
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}: runs a second</title>',
        f"<style>{STYLE}</style>",
        f'<text class="head" x="8" y="22">{escape(title)}: runs a second</text>',
        *_legend(),
        *_grid(first, last, height),
    ]
    for index, each in enumerate(rows):
        drawn += _bar(each, TOP + ROW * index, first, last)
    return "\n".join([*drawn, "</svg>", ""])


def _legend() -> list[str]:
    drawn = []
    for index, (kind, text) in enumerate((("floor", "a floor, by hand"), ("duly", "duly"), ("peer", "a peer"))):
        x = 8 + (0, 130, 190)[index]
        drawn += [
            f'<rect class="{kind}" x="{x}" y="33" width="10" height="10"/>',
            f'<text class="small" x="{x + 15}" y="42">{text}</text>',
        ]
    return [*drawn, f'<text class="small" x="{LABELS}" y="42">in brackets: how many times the {YARDSTICK}</text>']


def _grid(first: int, last: int, height: int) -> list[str]:
    drawn = []
    for power in range(first, last + 1):
        x = _x(10.0**power, first, last)
        drawn += [
            f'<line class="grid" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{height - FOOT + 4}"/>',
            f'<text class="small" x="{x}" y="{height - FOOT + 20}" text-anchor="middle">{number(10.0**power)}</text>',
        ]
    return drawn


def _bar(each: Standing, y: int, first: int, last: int) -> list[str]:
    end, middle = _x(each.runs, first, last), y + ROW // 2
    least, most = _x(each.least, first, last), _x(each.most, first, last)
    beside = "" if each.ratio is None else f" ({ratio(each.ratio)})"
    return [
        f'<text x="{LABELS - 10}" y="{middle + 4}" text-anchor="end">{escape(each.name)}</text>',
        f'<rect class="{each.kind}" x="{LABELS}" y="{middle - BAR // 2}" width="{round(end - LABELS, 1)}" height="{BAR}"/>',
        f'<line class="spread" x1="{least}" y1="{middle}" x2="{most}" y2="{middle}"/>',
        f'<text x="{max(end, most) + 8}" y="{middle + 4}">{number(each.runs)}{beside}</text>',
    ]


def _x(value: float, first: int, last: int) -> float:
    """Where a value is, from the left."""
    return round(LABELS + BARS * (log10(value) - first) / (last - first), 1)
