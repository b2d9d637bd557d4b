"""Charts as SVG, in the style of the pictures of the pages, in light and in dark. Pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH = 760
LEFT, RIGHT = 270, 590
"""Where the bars begin, and where the axis ends; behind it there is room for words."""
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2933; }
.title { font-size: 16px; font-weight: 600; }
.small { font-size: 12px; fill: #52606d; }
.value { paint-order: stroke; stroke: #ffffff; stroke-width: 4; }
.paper { fill: #ffffff; }
.grid { stroke: #d5dbe1; }
.edge { stroke: #52606d; stroke-dasharray: 4 3; }
.ours { fill: #2f6fb5; }
.light { fill: #a9bdd2; }
.theirs { fill: #c77d0a; }
.line { fill: none; stroke: #2f6fb5; stroke-width: 2.5; }
.whisker { stroke: #1f2933; stroke-width: 1.5; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e7eb; }
.small { fill: #9aa5b1; }
.value { stroke: #14191f; }
.paper { fill: #14191f; }
.grid { stroke: #323c47; }
.edge { stroke: #9aa5b1; }
.ours { fill: #5b9bd8; }
.light { fill: #5a7289; }
.theirs { fill: #e0a040; }
.line { stroke: #5b9bd8; }
.whisker { stroke: #e4e7eb; }
}
"""

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its words; `until`: a thin line goes on to there."""

    value: float
    shown: str
    kind: str = "ours"
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Bars below each other with one name."""

    name: str
    bars: Sequence[Bar]


@dataclass(slots=True)
class Drawing:
    """The parts of one picture."""

    title: str
    description: str
    height: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Words; `kind` says how they look and which end is at `x`."""
        self.parts.append(f'<text{_class(kind)} x="{x:g}" y="{y:g}">{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A filled box."""
        self.parts.append(f'<rect{_class(kind)} x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2"/>')

    def line(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
        """A straight line."""
        (x1, y1), (x2, y2) = start, end
        self.parts.append(f'<line{_class(kind)} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def dot(self, x: float, y: float, kind: str) -> None:
        """A dot."""
        self.parts.append(f'<circle{_class(kind)} cx="{x:.1f}" cy="{y:.1f}" r="5"/>')

    @property
    def svg(self) -> str:
        """The file."""
        lines = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
                f'height="{self.height}" role="img" aria-labelledby="title desc">'
            ),
            f'<title id="title">{escape(self.title)}</title>',
            f'<desc id="desc">{escape(self.description)}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{self.height}"/>',
            f'<text class="title" x="20" y="30">{escape(self.title)}</text>',
            *self.parts,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def linear(most: float, start: float = LEFT, end: float = RIGHT) -> Scale:
    """From 0 to `most`."""
    return lambda value: start + (end - start) * min(value, most) / most


def logarithmic(least: float, most: float) -> Scale:
    """Each step has ten times the value of the one before."""
    span = math.log10(most / least)
    return lambda value: LEFT + (RIGHT - LEFT) * math.log10(value / least) / span


def bars(
    title: str,
    description: str,
    groups: Sequence[Group],
    scale: Scale,
    ticks: Sequence[tuple[float, str]],
    legend: Sequence[tuple[str, str]],
    even: float | None = None,
) -> str:
    """Bars from the left, with their words behind them; `even`: where both sides would be equal."""
    thick, gap, top = 14, 14, 50
    height_of = [len(group.bars) * (thick + 2) + gap for group in groups]
    bottom = top + sum(height_of)
    drawing = Drawing(title, description, bottom + 64)
    for value, shown in ticks:
        drawing.line((scale(value), top), (scale(value), bottom), "grid")
        drawing.text(scale(value), bottom + 18, shown, "small middle")
    if even is not None:
        drawing.line((scale(even), top), (scale(even), bottom), "edge")
    y = top + gap / 2
    for group in groups:
        drawing.text(LEFT - 12, y + len(group.bars) * (thick + 2) / 2 + 4, group.name, "end")
        for bar in group.bars:
            drawing.box(LEFT, y, max(scale(bar.value) - LEFT, 2), thick, bar.kind)
            reached = scale(bar.value)
            if bar.until is not None:
                reached = scale(bar.until)
                drawing.line((scale(bar.value), y + thick / 2), (reached, y + thick / 2), "whisker")
                drawing.line((reached, y + 2), (reached, y + thick - 2), "whisker")
            drawing.text(reached + 8, y + 11, bar.shown, "small value")
            y += thick + 2
        y += gap
    _legend(drawing, legend, bottom + 48)
    return drawing.svg


def _legend(drawing: Drawing, legend: Sequence[tuple[str, str]], y: float) -> None:
    x = 20.0
    for kind, words in legend:
        drawing.box(x, y - 11, 14, 14, kind)
        drawing.text(x + 21, y, words, "small")
        x += 56 + 6.6 * len(words)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
