"""Draws one partition of a group as SVG: key hash upwards, offset to the right, a rectangle for each lane.

Pure: draws a `GroupState` with the standard library; knows neither Redis nor the run.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.group_state import GroupState
from coordinator.operations.gaps import progress
from coordinator.progress.segments import Segment
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition

WIDTH, HEIGHT = 800, 470
LEFT, RIGHT, TOP, BOTTOM = 92, 740, 126, 386
LEAST = 14.0
"""Least height of a lane in pixels; without it, the lane of a single key would be invisible."""

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2933; }
.title { font-size: 17px; font-weight: 600; }
.small { font-size: 12px; fill: #52606d; }
.inside { fill: #ffffff; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.paper { fill: #ffffff; }
.edge { stroke: #d5dbe1; }
.unread { fill: #eef1f4; }
.done { fill: #2f6fb5; }
.last { fill: #b3261e; }
.gap { fill: url(#hatch); }
.hatch { stroke: #dba15f; }
.cut { stroke: #ffffff; }
.axis { stroke: #52606d; fill: none; }
.stable { stroke: #b3261e; stroke-width: 2; stroke-dasharray: 6 4; }
.slow { fill: #b3261e; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #a7b3bf; }
  .inside { fill: #ffffff; }
  .paper { fill: #0d1117; }
  .edge { stroke: #30363d; }
  .unread { fill: #1c232b; }
  .done { fill: #2a63a3; }
  .last { fill: #d9534a; }
  .hatch { stroke: #9a6a33; }
  .cut { stroke: #0d1117; }
  .axis { stroke: #a7b3bf; }
  .stable { stroke: #ff7b72; }
  .slow { fill: #ff7b72; }
}
"""


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of the picture."""

    title: str
    subtitle: str
    behind: str  # the text beside the lane at the stable offset


def lanes(state: GroupState, tp: TopicPartition) -> tuple[Segment, ...]:
    """The lanes of a partition from the lowest hash up: its segments, cut where members last planned separate lanes."""
    bounds = {line.hashes.lo for lines in state.lanes.values() for line in lines if line.tp == tp}
    return tuple(
        segment.within(piece) for segment in progress(state, tp).segments for piece in segment.hashes.cut(bounds)
    )


def heights(found: Sequence[Segment], total: float) -> list[float]:
    """The height of each lane: by its share of the hashes, and at least `LEAST`."""
    thin = [lane.hashes.share * total < LEAST for lane in found]
    shares = [0.0 if is_thin else lane.hashes.share for lane, is_thin in zip(found, thin, strict=True)]
    left = total - LEAST * sum(thin)
    return [left * share / sum(shares) if share else LEAST for share in shares]


def draw(state: GroupState, tp: TopicPartition, words: Words) -> str:
    """The picture as the text of an SVG file."""
    return _Drawing(state, tp, words).text()


class _Drawing:
    """One picture under way."""

    def __init__(self, state: GroupState, tp: TopicPartition, words: Words) -> None:
        self._lanes, self._words = lanes(state, tp), words
        self._stable = min(lane.position for lane in self._lanes)
        self._furthest = max(lane.ics[-1].until if lane.ics else lane.position for lane in self._lanes)
        self._end = max(state.ends.get(tp, 0), self._furthest)
        box = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": str(WIDTH), "height": str(HEIGHT)}
        named = {"role": "img", "aria-labelledby": "title desc"}
        self._svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **box, **named})

    def text(self) -> str:
        """All of it."""
        self._head()
        self._rect("unread", LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP)
        for lane, top, height in self._rows():
            self._lane(lane, top, height)
        self._axes()
        self._stable_offset()
        self._legend()
        ET.indent(self._svg)
        return ET.tostring(self._svg, encoding="unicode") + "\n"

    def _head(self) -> None:
        ET.SubElement(self._svg, "title", id="title").text = self._words.title
        ET.SubElement(self._svg, "desc", id="desc").text = self._description()
        ET.SubElement(self._svg, "style").text = _STYLE
        self._hatch()
        self._rect("paper edge", 0.5, 0.5, WIDTH - 1, HEIGHT - 1, rx="8")
        self._text("title", LEFT, 30, self._words.title)
        self._text("small", LEFT, 51, self._words.subtitle)
        self._text(
            "small",
            LEFT,
            70,
            "Each row is a lane: a range of key hashes, done up to its position. Thin lanes are drawn higher.",
        )

    def _hatch(self) -> None:
        pattern = ET.SubElement(
            ET.SubElement(self._svg, "defs"),
            "pattern",
            {"id": "hatch", "width": "7", "height": "7", "patternUnits": "userSpaceOnUse"},
        )
        ET.SubElement(
            pattern, "path", {"class": "hatch", "d": "M-1,1 l2,-2 M0,7 l7,-7 M6,8 l2,-2", "stroke-width": "1.6"}
        )

    def _description(self) -> str:
        parts = [f"hashes {lane.hashes}: done up to offset {lane.position:,}" for lane in self._lanes]
        ends = f"The stable offset is {self._stable:,}, the log end {self._end:,}."
        return f"{self._words.subtitle} {ends} Lanes from the lowest hash up: {'; '.join(parts)}."

    def _rows(self) -> Iterator[tuple[Segment, float, float]]:
        """Each lane with its top and height."""
        bottom = float(BOTTOM)
        for lane, height in zip(self._lanes, heights(self._lanes, BOTTOM - TOP), strict=True):
            bottom -= height
            yield lane, bottom, height

    def _lane(self, lane: Segment, top: float, height: float) -> None:
        missing = lane.remaining(OffsetRange(lane.position, self._furthest)) if lane.position < self._furthest else ()
        done = (OffsetRange(0, lane.position), *lane.ics) if lane.position else lane.ics
        mark = "done last" if lane.position == self._stable else "done"
        for name, ranges in ((mark, done), ("gap", missing)):
            for each in ranges:
                start, until = self._x(each.start), self._x(each.until)
                self._rect(
                    name, start, top, until - start, height, f"hashes {lane.hashes}, offsets {each}: {name.split()[0]}"
                )
        self._line("cut", LEFT, top, RIGHT, top)
        if height > 2 * LEAST and self._x(lane.position) - LEFT > 70:
            self._text("inside end", self._x(lane.position) - 8, top + height / 2 + 5, f"{lane.position:,}")

    def _axes(self) -> None:
        self._line("axis", LEFT, TOP, LEFT, BOTTOM)
        self._line("axis", LEFT, BOTTOM, RIGHT, BOTTOM)
        self._line("axis", RIGHT, TOP - 10, RIGHT, BOTTOM)
        self._text("small end", LEFT - 8, TOP + 10, "2⁶³ - 1")
        self._text("small end", LEFT - 8, BOTTOM, "0")
        self._text("end", LEFT - 8, (TOP + BOTTOM) / 2, "key hash ↑")
        self._text("", LEFT, BOTTOM + 20, "0")
        self._text("middle", (LEFT + RIGHT) / 2, BOTTOM + 20, "offset →")
        self._text("middle", RIGHT, BOTTOM + 20, f"{self._end:,}")
        self._text("middle", RIGHT, TOP - 16, "log end")

    def _stable_offset(self) -> None:
        x = self._x(self._stable)
        self._line("stable", x, TOP - 10, x, BOTTOM + 6)
        self._text("slow middle", x, TOP - 16, f"stable offset {self._stable:,}: all before it is done")
        top, height = next((t, h) for lane, t, h in self._rows() if lane.position == self._stable)
        middle = top + height / 2
        self._rect("paper", x + 4, middle - 9, 8 + 7.5 * len(self._words.behind), 18, rx="4")
        self._text("slow", x + 8, middle + 5, self._words.behind)

    def _legend(self) -> None:
        entries = (("done", "done"), ("gap", "gap: other lanes are ahead"), ("unread", "not read yet"))
        x = float(LEFT)
        for name, words in entries:
            self._rect(name, x, HEIGHT - 38, 18, 14)
            self._text("", x + 25, HEIGHT - 26, words)
            x += 52 + 7 * len(words)
        self._line("stable", x, HEIGHT - 31, x + 18, HEIGHT - 31)
        self._text("", x + 25, HEIGHT - 26, "stable offset")

    def _x(self, offset: int) -> float:
        return LEFT + (RIGHT - LEFT) * offset / max(self._end, 1)

    def _rect(self, name: str, x: float, y: float, width: float, height: float, tip: str = "", **more: str) -> None:
        size = _numbers(x=x, y=y, width=width, height=height)
        rect = ET.SubElement(self._svg, "rect", {"class": name, **size, **more})
        if tip:
            ET.SubElement(rect, "title").text = tip

    def _line(self, name: str, x1: float, y1: float, x2: float, y2: float) -> None:
        ET.SubElement(self._svg, "line", {"class": name, **_numbers(x1=x1, y1=y1, x2=x2, y2=y2)})

    def _text(self, name: str, x: float, y: float, words: str) -> None:
        ET.SubElement(self._svg, "text", {"class": name, **_numbers(x=x, y=y)}).text = words


def _numbers(**values: float) -> dict[str, str]:
    return {name: f"{value:.2f}".rstrip("0").rstrip(".") for name, value in values.items()}
