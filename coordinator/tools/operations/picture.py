"""Draws the plane of a partition as SVG: key hash upwards, offset to the right, a rectangle for each lane.

Pure: draws a `Plane` with the standard library; knows neither Redis nor the run.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.tools.operations.plane import Plane, PlaneLane
from coordinator.values.ranges import OffsetRange

WIDTH, HEIGHT = 800, 470
LEFT, RIGHT, TOP, BOTTOM = 92, 740, 126, 386
ROW = 22
"""The height of a row of the legend in pixels."""

LEAST = 14.0
"""Least height of a lane in pixels; without it, the lane of a single key would be invisible."""

LETTER, END_OFFSET = 7.5, 38
"""The width of a letter, and half of that of the words at the end offset, in pixels: no words cover others."""

_HUES = 6  # colours of members, by their order

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
.done.m1 { fill: #2e7d4f; }
.done.m2 { fill: #7d5ba6; }
.done.m3 { fill: #a05a00; }
.done.m4 { fill: #0f7c86; }
.done.m5 { fill: #9c3d76; }
.last { fill: #b3261e; }
.failing { fill: #f2c037; stroke: #5c4400; }
.parked { fill: #1f2933; stroke: #f2c037; }
.gap { fill: url(#hatch); }
.hatch { stroke: #dba15f; }
.cut { stroke: #ffffff; }
.working { fill: none; stroke: #1f2933; stroke-width: 1.5; stroke-dasharray: 3 2; }
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
  .working { stroke: #e6edf3; }
  .axis { stroke: #a7b3bf; }
  .stable { stroke: #ff7b72; }
  .slow { fill: #ff7b72; }
}
"""


@dataclass(frozen=True, slots=True)
class PictureTexts:
    """The texts of the picture."""

    title: str
    subtitle: str
    behind: str  # the text beside the lane at the stable offset


def heights(lanes: Sequence[PlaneLane], total: float) -> list[float]:
    """The height of each lane: by its share of the hashes, and at least `LEAST` while there is room for it."""
    shares = [lane.segment.hashes.share for lane in lanes]
    least = min(LEAST, total / (2 * len(lanes)))
    wide = sum(share for share in shares if share * total >= least)
    left = total - least * sum(share * total < least for share in shares)
    return [left * share / wide if share * total >= least else least for share in shares]


def draw(plane: Plane, words: PictureTexts) -> str:
    """The picture as the text of an SVG file."""
    return _Drawing(plane, words).text()


class _Drawing:
    """One picture under way."""

    def __init__(self, plane: Plane, words: PictureTexts) -> None:
        self._plane, self._words = plane, words
        self._height = HEIGHT + ROW * max(row for *_, row in self._words_of_legend())
        box = {"viewBox": f"0 0 {WIDTH} {self._height}", "width": str(WIDTH), "height": str(self._height)}
        named = {"role": "img", "aria-labelledby": "title desc"}
        self._svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **box, **named})

    def text(self) -> str:
        """All of it."""
        self._head()
        self._rect("unread", LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP)
        for lane, top, height in self._rows():
            self._lane(lane, top, height)
        self._under_way()
        self._axes()
        self._stable_offset()
        self._failing_keys()
        self._legend()
        ET.indent(self._svg)
        return ET.tostring(self._svg, encoding="unicode") + "\n"

    def _head(self) -> None:
        ET.SubElement(self._svg, "title", id="title").text = self._words.title
        ET.SubElement(self._svg, "desc", id="desc").text = self._description()
        ET.SubElement(self._svg, "style").text = _STYLE
        self._hatch()
        self._rect("paper edge", 0.5, 0.5, WIDTH - 1, self._height - 1, rx="8")
        self._text("title", LEFT, 30, self._words.title)
        self._text("small", LEFT, 51, self._words.subtitle)
        self._text(
            "small",
            LEFT,
            70,
            "Each row is a lane: a range of key hashes, processed up to its position. Thin lanes are drawn higher.",
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
        parts = [
            f"hashes {lane.segment.hashes}: processed up to offset {lane.segment.position:,}" for lane in self._lanes
        ]
        ends = f"The stable offset is {self._plane.stable:,}, the end offset {self._plane.end:,}."
        return f"{self._words.subtitle} {ends} Lanes from the lowest hash up: {'; '.join(parts)}."

    @property
    def _lanes(self) -> tuple[PlaneLane, ...]:
        return self._plane.lanes

    def _rows(self) -> Iterator[tuple[PlaneLane, float, float]]:
        """Each lane with its top and height."""
        bottom = float(BOTTOM)
        for lane, height in zip(self._lanes, heights(self._lanes, BOTTOM - TOP), strict=True):
            bottom -= height
            yield lane, bottom, height

    def _lane(self, lane: PlaneLane, top: float, height: float) -> None:
        s = lane.segment
        done = (OffsetRange(0, s.position), *s.ics) if s.position else s.ics
        owner = f", owner {lane.member or 'none'}"
        for name, ranges in ((self._mark(lane), done), ("gap", s.gaps(self._plane.furthest))):
            for each in ranges:
                start, until = self._x(each.start), self._x(each.until)
                tip = f"hashes {s.hashes}, offsets {each}: {name.split()[0]}{owner}"
                self._rect(name, start, top, until - start, height, tip)
        self._line("cut", LEFT, top, RIGHT, top)
        if height > 2 * LEAST and self._x(s.position) - LEFT > 70:
            self._text("inside end", self._x(s.position) - 8, top + height / 2 + 5, f"{s.position:,}")

    def _mark(self, lane: PlaneLane) -> str:
        """The class of what is done: the lane at the stable offset, else its owner if there are several."""
        if lane.segment.position == self._plane.stable < self._plane.furthest:
            return "done last"
        members = self._plane.members
        return f"done m{members.index(lane.member) % _HUES}" if lane.member and len(members) > 1 else "done"

    def _under_way(self) -> None:
        """A frame around the offsets that tasks read now, in each lane of their hashes. What is done is left out."""
        for lane, top, height in self._rows():
            for s in self._plane.working_in(lane):
                for left in lane.segment.remaining(s.offsets):
                    start, until = self._x(left.start), self._x(left.until)
                    tip = f"hashes {s.hashes}, offsets {left}: a task is at it"
                    self._rect("working", start, top + 1, until - start, height - 2, tip)

    def _failing_keys(self) -> None:
        """A mark at the record of each failing key. Its message is foreign text: `coop-kafka stuck` shows it."""
        for record in self._plane.failing:
            lane, top, height = next(row for row in self._rows() if record.key_hash in row[0].segment.hashes)
            share = (record.key_hash - lane.segment.hashes.lo + 0.5) / lane.segment.hashes.size
            word = "parked" if record.parked else "deferred"
            place = _numbers(cx=self._x(record.offset), cy=top + height * (1 - share), r=5.0)
            mark = ET.SubElement(self._svg, "circle", {"class": f"failing {word}", **place})
            where = f"key hash {record.key_hash:016x}, offset {record.offset}"
            ET.SubElement(mark, "title").text = f"{where}: {word}, {record.attempts} attempts"

    def _axes(self) -> None:
        self._line("axis", LEFT, TOP, LEFT, BOTTOM)
        self._line("axis", LEFT, BOTTOM, RIGHT, BOTTOM)
        self._line("axis", RIGHT, TOP - 10, RIGHT, BOTTOM)
        self._text("small end", LEFT - 8, TOP + 10, "2⁶³ - 1")
        self._text("small end", LEFT - 8, BOTTOM, "0")
        self._text("end", LEFT - 8, (TOP + BOTTOM) / 2, "key hash ↑")
        self._text("", LEFT, BOTTOM + 20, f"{self._plane.start:,}")
        self._text("middle", (LEFT + RIGHT) / 2, BOTTOM + 20, "offset →")
        self._text("middle", RIGHT, BOTTOM + 20, f"{self._plane.end:,}")
        self._text("middle", RIGHT, TOP - 16, "end offset")

    def _stable_offset(self) -> None:
        stable = self._plane.stable
        x = self._x(stable)
        self._line("stable", x, TOP - 10, x, BOTTOM + 6)
        words = f"stable offset {stable:,}: all before it is processed"
        half = LETTER * len(words) / 2
        self._text("slow middle", max(half, min(x, RIGHT - END_OFFSET - half)), TOP - 16, words)
        if stable == self._plane.furthest:
            return
        top, height = next((t, h) for lane, t, h in self._rows() if lane.segment.position == stable)
        middle = top + height / 2
        self._rect("paper", x + 4, middle - 9, 8 + LETTER * len(self._words.behind), 18, rx="4")
        self._text("slow", x + 8, middle + 5, self._words.behind)

    def _legend(self) -> None:
        for name, words, x, row in self._words_of_legend():
            y = HEIGHT - 38.0 + ROW * row
            if name == "stable":
                self._line(name, x, y + 7, x + 18, y + 7)
            else:
                self._rect(name, x, y, 18, 14)
            self._text("", x + 25, y + 12, words)

    def _words_of_legend(self) -> Iterator[tuple[str, str, float, int]]:
        """Class, words, x and row of each entry."""
        members, x, row = self._plane.members, float(LEFT), 0
        owners = [(f"done m{i}", m) for i, m in enumerate(members[:_HUES])] if len(members) > 1 else [("done", "done")]
        marks = [("gap", "gap: other lanes are ahead"), ("unread", "not read yet")]
        marks += [("working", "read now")] if self._plane.working else []
        marks += [("failing", "failing key")] if any(not r.parked for r in self._plane.failing) else []
        marks += [("failing parked", "parked key")] if any(r.parked for r in self._plane.failing) else []
        for name, words in (*owners, *marks, ("stable", "stable offset")):
            wide = 52 + 7 * len(words)
            x, row = (x, row) if x == LEFT or x + wide < WIDTH else (float(LEFT), row + 1)
            yield name, words, x, row
            x += wide

    def _x(self, offset: int) -> float:
        start, end = self._plane.start, self._plane.end
        return LEFT + (RIGHT - LEFT) * max(0, offset - start) / max(end - start, 1)

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
