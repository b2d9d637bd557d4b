"""The picture of a partition shows the group's state."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from broker_jars import ROOT
from coordinator.progress.failing import FailingRecord
from coordinator.progress.segments import Rectangle
from coordinator.progress.slices import Slice
from coordinator.redis.group_state import GroupState
from coordinator.redis.lane_lines import LaneLine
from coordinator.tools.operations.picture import BOTTOM, LEAST, LEFT, RIGHT, TOP, WIDTH, PictureTexts, draw
from coordinator.tools.operations.plane import plane
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

SVG = "{http://www.w3.org/2000/svg}"
TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOW, HIGH = cuts(2)
END = 1_000
STATE = GroupState(
    now_ms=0,
    meta={},
    leases_ms={},
    members={},
    topics={},
    segments={TP: ((LOW, 250), (HIGH, 750)), OTHER: ((HashRange(0, HASH_MAX), 5),)},
    owners={},
    stable={TP: 250},
    ends={TP: END, OTHER: 5},
)
Box = tuple[str, float, float, float, float]
"""A class and, as shares of the plane: first and last offset, lowest and highest hash."""


def picture(state: GroupState, *failing: FailingRecord) -> ET.Element:
    return ET.fromstring(draw(plane(state, TP, failing), PictureTexts("Title", "Subtitle.", "the last lane")))


def boxes(state: GroupState) -> list[Box]:
    """The rectangles of lanes: those with a text for their hashes and offsets."""
    found = (rect for rect in picture(state).iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None)
    return sorted(_box(rect) for rect in found)


def _box(rect: ET.Element) -> Box:
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    offsets = ((at - LEFT) / (RIGHT - LEFT) for at in (x, x + width))
    hashes = ((BOTTOM - at) / (BOTTOM - TOP) for at in (y + height, y))
    start, until, lo, hi = (round(share, 3) for share in (*offsets, *hashes))
    return rect.attrib["class"], start, until, lo, hi


def test_each_lane_is_done_up_to_its_position_and_has_a_gap_up_to_the_furthest() -> None:
    assert boxes(STATE) == [
        ("done", 0.0, 0.75, 0.5, 1.0),
        ("done last", 0.0, 0.25, 0.0, 0.5),
        ("gap", 0.25, 0.75, 0.0, 0.5),
    ]


def test_a_lane_that_its_member_planned_apart_is_drawn_apart() -> None:
    line = LaneLine.parse(
        f"orders 0 {cuts(4)[3]} position=750 lag=1 lag_s=- rate=1 record_ms=1 cost=sure quota=1 why=x"
    )
    of_another = replace(line, tp=OTHER, hashes=cuts(8)[1])
    assert [box for box in boxes(replace(STATE, lanes={"m": (line, of_another)})) if box[0] != "gap"] == [
        ("done", 0.0, 0.75, 0.5, 0.75),
        ("done", 0.0, 0.75, 0.75, 1.0),
        ("done last", 0.0, 0.25, 0.0, 0.5),
    ]


def test_individual_commits_are_done_and_the_offsets_before_them_are_a_gap() -> None:
    state = replace(STATE, ics={TP: (Rectangle(LOW, OffsetRange(500, 900)),)})
    assert [box for box in boxes(state) if box[3] == 0.0] == [
        ("done last", 0.0, 0.25, 0.0, 0.5),
        ("done last", 0.5, 0.9, 0.0, 0.5),
        ("gap", 0.25, 0.5, 0.0, 0.5),
    ]
    assert ("gap", 0.75, 0.9, 0.5, 1.0) in boxes(state)


def test_the_lane_of_a_single_key_can_be_seen() -> None:
    key = HashRange(10, 10)
    segments = ((HashRange(0, 9), 750), (key, 250), (HashRange(11, HASH_MAX), 750))
    (last,) = (box for box in boxes(replace(STATE, segments={TP: segments})) if box[0] == "done last")
    pixels = (last[4] - last[3]) * (BOTTOM - TOP)
    assert pixels == pytest.approx(LEAST, abs=0.5)
    assert pixels > 10


@pytest.mark.parametrize(("position", "share"), [(0, 0.0), (250, 0.25), (450, 0.45)])
def test_the_stable_offset_is_a_line_at_the_smallest_position(position: int, share: float) -> None:
    drawn = picture(replace(STATE, segments={TP: ((LOW, 750), (HIGH, position))}))
    line = next(line for line in drawn.iter(f"{SVG}line") if line.attrib["class"] == "stable")
    assert line.attrib["x1"] == line.attrib["x2"]
    assert (float(line.attrib["x1"]) - LEFT) / (RIGHT - LEFT) == pytest.approx(share, abs=0.001)
    assert f"stable offset {position:,}: all before it is processed" in [text.text for text in drawn.iter(f"{SVG}text")]


@pytest.mark.parametrize("position", [0, END])
def test_the_words_of_the_stable_offset_are_inside_and_beside_those_of_the_log_end(position: int) -> None:
    drawn = picture(replace(STATE, segments={TP: ((LOW, position), (HIGH, END))}))
    (label,) = (text for text in drawn.iter(f"{SVG}text") if (text.text or "").endswith("all before it is processed"))
    middle, half = float(label.attrib["x"]), 7 * len(label.text or "") / 2
    assert (middle - half >= 0, middle + half <= RIGHT - 30) == (True, True)


def test_the_log_end_is_the_right_edge_also_where_a_position_has_passed_it() -> None:
    words = [text.text for text in picture(STATE).iter(f"{SVG}text")]
    assert "1,000" in words
    assert max(box[2] for box in boxes(replace(STATE, ends={TP: 500}))) == 1.0


def test_lanes_have_the_colours_of_their_owners_if_there_are_several() -> None:
    middle, high = cuts(4)[1], HIGH
    owners = ((cuts(4)[0], "e.1", "a"), (middle, "e.2", "b"), (high, "e.3", "c"))
    segments = ((cuts(4)[0], 250), (HashRange(middle.lo, HASH_MAX), 750))
    state = replace(STATE, segments={TP: segments}, owners={TP: owners})
    assert [(box[0], box[3]) for box in boxes(state) if box[0] != "gap"] == [
        ("done last", 0.0),
        ("done m1", 0.25),
        ("done m2", 0.5),
    ]
    assert {"a", "b", "c"} <= {text.text for text in picture(state).iter(f"{SVG}text")}, "the legend"


def test_what_a_task_is_at_is_framed_in_each_lane_without_what_is_done() -> None:
    """A member reports it with its heartbeat, so the batch may have been committed since."""
    slices = (
        Slice(TP, HashRange(0, HASH_MAX), OffsetRange(200, 900)),
        Slice(TP, LOW, OffsetRange(0, 250)),
        Slice(OTHER, LOW, OffsetRange(0, 5)),
    )
    frames = [box for box in boxes(replace(STATE, working={"m-1": slices})) if box[0] == "working"]
    assert [(start, until) for _, start, until, _, _ in frames] == [(0.25, 0.9), (0.75, 0.9)]
    assert [round(lo, 1) for _, _, _, lo, _ in frames] == [0.0, 0.5]


def test_a_failing_key_is_marked_at_its_record() -> None:
    key = (HASH_MAX + 1) // 4
    record = FailingRecord(TP, key, 250, 3, 0, True, "ValueError", "not shown")
    (mark,) = picture(STATE, record, replace(record, tp=OTHER)).iter(f"{SVG}circle")
    assert mark.attrib["class"] == "failing parked"
    assert (float(mark.attrib["cx"]) - LEFT) / (RIGHT - LEFT) == pytest.approx(0.25, abs=0.001)
    assert (BOTTOM - float(mark.attrib["cy"])) / (BOTTOM - TOP) == pytest.approx(0.25, abs=0.001)
    assert mark.findtext(f"{SVG}title") == f"key hash {key:016x}, offset 250: parked, 3 attempts"


@pytest.mark.parametrize(("parked", "words"), [(True, "parked key"), (False, "failing key")])
def test_the_legend_has_the_marks_that_are_drawn(parked: bool, words: str) -> None:
    texts = {text.text for text in picture(STATE, FailingRecord(TP, 5, 250, 3, 0, parked, "E", "")).iter(f"{SVG}text")}
    assert texts & {"parked key", "failing key"} == {words}


def test_old_offsets_are_left_out() -> None:
    """Else each lane of an old topic would end at the right edge."""
    state = replace(STATE, segments={TP: ((LOW, 1_000_250), (HIGH, 1_000_750))}, ends={TP: 1_001_000})
    assert [round(box[2], 2) for box in boxes(state) if box[0] != "gap"] == [0.73, 0.2]
    assert "1,000,063" in [text.text for text in picture(state).iter(f"{SVG}text")]


def test_more_lanes_than_pixels_fit() -> None:
    lanes = tuple((hashes, 750 if n % 2 else 250) for n, hashes in enumerate(cuts(1024)))
    found = boxes(replace(STATE, segments={TP: lanes}))
    assert min(box[3] for box in found) == 0.0
    assert max(box[4] for box in found) == 1.0


def test_the_picture_has_a_title_and_a_description() -> None:
    drawn = picture(STATE)
    assert drawn.findtext(f"{SVG}title") == "Title"
    described = drawn.findtext(f"{SVG}desc") or ""
    for each in (
        "stable offset is 250",
        "end offset 1,000",
        f"{LOW}: processed up to offset 250",
        f"{HIGH}: processed up to offset 750",
    ):
        assert each in described
    assert set(drawn.attrib["aria-labelledby"].split()) == {"title", "desc"}


def test_the_picture_of_the_concepts_is_one_of_these() -> None:
    assert "](lanes.svg)" in (ROOT / "docs" / "how-it-works.md").read_text()
    drawn = ET.parse(ROOT / "docs" / "lanes.svg").getroot()
    assert drawn.tag == f"{SVG}svg"
    assert drawn.findtext(f"{SVG}title")
    assert [line.attrib["class"] for line in drawn.iter(f"{SVG}line")].count("stable") == 2  # and in the legend


def test_a_long_legend_has_more_rows_and_stays_inside() -> None:
    owners = tuple((hashes, "e.1", f"m-{number:08}") for number, hashes in enumerate(cuts(6)))
    drawn = picture(replace(STATE, owners={TP: owners}))
    places = [(float(t.attrib["x"]), float(t.attrib["y"]), t.text or "") for t in drawn.iter(f"{SVG}text")]
    legend = [place for place in places if place[1] > BOTTOM + 30]
    assert {f"m-{number:08}" for number in range(6)} <= {text for *_, text in legend}
    assert len({y for _, y, _ in legend}) == 2
    assert all(x + 7 * len(text) <= WIDTH and y < float(drawn.attrib["height"]) for x, y, text in legend)
