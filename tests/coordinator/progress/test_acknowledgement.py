"""The text of an acknowledgement: what it says, and that a changed one is refused."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acknowledgements import sealed
from coordinator.errors import CorruptAcknowledgementError
from coordinator.progress.acknowledgement import Acknowledgement, Strip, check_of, strips_of, with_holes
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OFFSET_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 3)
LOWER, UPPER = cuts(2)
FIRST, SECOND, THIRD, FOURTH = cuts(4)


def end(*lanes: Lane, group: str = "orders to/lake", topic_id: str = "id-1") -> StreamOffset:
    return StreamOffset(group, "m-7f31c0de", 17, {"orders": topic_id}, {TP: lanes})


def lane(hashes: HashRange, epoch: str, *offsets: str) -> Lane:
    read = tuple(map(OffsetRange.parse, offsets))
    return Lane(hashes, epoch, read[0].start, read)


def areas(of: Sequence[Strip]) -> list[str]:
    return [f"{s.area.hashes} {s.area.offsets} {s.head.split('/')[8]}" for s in of]


def strip(**of: str) -> Strip:
    whole = end(lane(WHOLE, "9c41ab03.17", "100-199"), **of)
    return strips_of(whole, whole.slices)[TP][0]


@given(st.integers(0, OFFSET_MAX - 1), st.integers(0, OFFSET_MAX - 1))
def test_a_text_says_what_to_commit(one: int, other: int) -> None:
    since, last = sorted((one, other))
    lane = Owned(WHOLE, "9c41ab03.17")
    assert Acknowledgement.parse(sealed(strip().head, since, last)) == (
        Acknowledgement("orders to/lake", "m-7f31c0de", 17, "id-1", TP, lane, OffsetRange(since, last + 1)),
    )


def test_a_text_with_holes_covers_them_too() -> None:
    lower, upper = "/".join((*SOUND[:7], str(LOWER), "aa.1")), "/".join((*SOUND[:7], str(UPPER), "aa.2"))
    text = sealed(lower, 111, 121)
    assert with_holes(text, ()) == text
    assert with_holes(text, [(lower, OffsetRange(122, 130))]) == sealed(lower, 111, 129)
    made = with_holes(
        text, [(lower, OffsetRange(122, 130)), (upper, OffsetRange(95, 130)), (lower, OffsetRange(140, 150))]
    )
    assert made == " ".join((sealed(lower, 111, 129), sealed(upper, 95, 129), sealed(lower, 140, 149)))
    assert [(a.lane.hashes, str(a.offsets)) for a in Acknowledgement.parse(made)] == [
        (LOWER, "111-129"),
        (UPPER, "95-129"),
        (LOWER, "140-149"),
    ]


@pytest.mark.parametrize("between", ["", "  ", " x ", "\n", "\t", " / "])
def test_parts_with_something_else_between_them_are_refused(between: str) -> None:
    one = sealed(strip().head, 1, 2)
    with pytest.raises(CorruptAcknowledgementError):
        Acknowledgement.parse(one + between + one)


@pytest.mark.parametrize("group", ["g", "a/b", "a%2Fb", "größe ☃", " 1/2/3 "])
def test_any_group_can_be_named(group: str) -> None:
    assert Acknowledgement.parse(sealed(strip(group=group).head, 1, 2))[0].group == group


def test_a_broker_without_topic_ids() -> None:
    assert Acknowledgement.parse(sealed(strip(topic_id="-").head, 1, 2))[0].topic_id == "-"


@given(st.data())
def test_a_changed_text_is_refused(data: st.DataObject) -> None:
    text = sealed(strip().head, 100, 110)
    at = data.draw(st.integers(0, len(text) - 1))
    how = data.draw(st.sampled_from(["cut", "drop", "other", "double"]))
    other = data.draw(st.sampled_from("0123456789abcdef/-. \n").filter(lambda c: c != text[at]))
    changed = {
        "cut": text[:at],
        "drop": text[:at] + text[at + 1 :],
        "other": text[:at] + other + text[at + 1 :],
        "double": text[:at] + text[at] + text[at:],
    }[how]
    with pytest.raises(CorruptAcknowledgementError, match="is not the acknowledgement of a row"):
        Acknowledgement.parse(changed)


def forged(*parts: str, since: int = 100, last: int = 110) -> str:
    """A text with a sound check, made by somebody else."""
    return sealed("/".join(parts), since, last)


SOUND = ("1", "g", "m-1", "0", "orders", "id-1", "3", str(WHOLE), "aa.1")


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        (0, "2", "another form"),
        (1, "", "not the name of a group"),
        (1, "%0a", "not the name of a group"),
        (2, "m,1", "not a member id"),
        (3, "-1", "not a reset epoch"),
        (3, "x", "not a reset epoch"),
        (3, "9" * 16, "reset epoch"),
        (3, "9" * 5_000, "cannot be read"),
        (6, "9" * 5_000, "not a partition"),
        (4, "or,ders", "not the name of a topic"),
        (5, "i,d", "not a topic id"),
        (6, "03", "not a partition"),
        (6, "-1", "not a partition"),
        (7, "0-1", "not a hash range"),
        (7, "8000000000000000-8000000000000001", "not a hash range"),
        (8, "aa", "not a lane epoch"),
    ],
)
def test_a_forged_text_is_refused_by_its_part(part: int, value: str, why: str) -> None:
    assert Acknowledgement.parse(forged(*SOUND))[0].member == "m-1"
    parts = list(SOUND)
    parts[part] = value
    with pytest.raises(CorruptAcknowledgementError, match=why) as refused:
        Acknowledgement.parse(forged(*parts))
    assert "pass the column acknowledgement of a row as it is" in str(refused.value)


def test_offsets_in_the_wrong_order_and_beyond_any_log_are_refused() -> None:
    for since, last in ((111, 110), (1, OFFSET_MAX), (1, 10**30)):
        with pytest.raises(CorruptAcknowledgementError):
            Acknowledgement.parse(forged(*SOUND, since=since, last=last))


LONE_SURROGATE = "/".join([*SOUND, "1", "2", "3"]).replace("/g/", "/\ud800/")


@pytest.mark.parametrize("value", [None, b"1/g", 7, "", "x" * 1_000_000, LONE_SURROGATE])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(CorruptAcknowledgementError) as refused:
        Acknowledgement.parse(value)
    assert len(str(refused.value).encode()) < 1_000


@given(st.lists(st.tuples(*[st.integers(0, OFFSET_MAX)] * 3), min_size=1, max_size=20))
def test_numpy_computes_the_same_checks(of: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, np.uint64) for column in zip(*of, strict=True)]
    assert check_of(*columns).tolist() == [check_of(*numbers) for numbers in of]


def test_lanes_that_read_the_same_offsets_at_one_epoch_are_one_strip() -> None:
    batch = end(
        lane(FIRST, "a.1", "10-19"),
        lane(SECOND, "a.1", "10-19"),
        lane(THIRD, "a.2", "10-19"),
        lane(FOURTH, "a.2", "5-9", "12-19"),
    )
    assert areas(strips_of(batch, batch.slices)[TP]) == [
        f"{LOWER} 10-19 a.1",
        f"{THIRD} 10-19 a.2",
        f"{FOURTH} 5-9 a.2",
        f"{FOURTH} 12-19 a.2",
    ]


def test_a_strip_ends_at_a_lane_that_no_task_reads() -> None:
    batch = end(*(lane(h, "a.1", "10-19") for h in cuts(4)))
    read = [s for s in batch.slices if s.hashes != SECOND]
    assert areas(strips_of(batch, read)[TP]) == [f"{FIRST} 10-19 a.1", f"{UPPER} 10-19 a.1"]


def test_lanes_that_were_read_to_different_ends_are_different_strips() -> None:
    batch = end(lane(LOWER, "a.1", "10-19"), lane(UPPER, "a.1", "10-19"))
    read = [Slice(TP, LOWER, OffsetRange(10, 15)), Slice(TP, UPPER, OffsetRange(10, 20))]
    assert areas(strips_of(batch, read)[TP]) == [f"{LOWER} 10-14 a.1", f"{UPPER} 10-19 a.1"]


def test_a_slice_that_stands_for_several_rows_is_cut() -> None:
    batch = end(lane(LOWER, "a.1", "10-19"), lane(UPPER, "a.2", "10-19"))
    assert areas(strips_of(batch, [Slice(TP, WHOLE, OffsetRange(10, 20))])[TP]) == [
        f"{LOWER} 10-19 a.1",
        f"{UPPER} 10-19 a.2",
    ]
