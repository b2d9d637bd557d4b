"""The stream offset's JSON form: canonical, self-contained, and refused where it is not ours."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import CheckpointMismatchError
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.identifiers import RESET_MAX
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange, union
from coordinator.values.subscription import TopicPartition

offset_ranges = st.tuples(st.integers(0, 200), st.integers(1, 20)).map(lambda t: OffsetRange(t[0], t[0] + t[1]))


@st.composite
def stream_offsets(draw: st.DrawFn) -> StreamOffset:
    lanes = {}
    for topic, partition in draw(st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.integers(0, 12)), unique=True)):
        of_partition = []
        for hashes in cuts(draw(st.integers(1, 4))):
            offsets = union(draw(st.lists(offset_ranges, max_size=3)))
            position = offsets[0].start if offsets else draw(st.integers(0, 2**62))
            of_partition.append(Lane(hashes, f"abcd.{draw(st.integers(0, 9))}", position, offsets))
        lanes[TopicPartition(topic, partition)] = tuple(of_partition)
    ids = {tp.topic: f"id-{tp.topic}" for tp in lanes}
    epochs = {tp: draw(st.integers(0, 9)) for tp in lanes if draw(st.booleans())}
    return StreamOffset("g", "m-1", draw(st.integers(0, RESET_MAX)), ids, dict(sorted(lanes.items())), epochs)


@given(stream_offsets())
def test_parsing_the_json_returns_the_same_offset(offset: StreamOffset) -> None:
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


@given(stream_offsets())
def test_a_row_is_of_neighbours_that_read_the_same(offset: StreamOffset) -> None:
    for tp, lanes in offset.lanes.items():
        rows = offset.rows[tp]
        values = [(row.epoch, row.position, row.offsets) for row in rows]
        parts = [(lane.hashes, i) for lane in lanes for i, row in enumerate(rows) if lane.hashes.lo in row.hashes]
        assert [values[i] for _, i in parts] == [(lane.epoch, lane.position, lane.offsets) for lane in lanes]
        assert sum(row.hashes.size for row in rows) == sum(lane.hashes.size for lane in lanes)
        assert all(left != right for left, right in pairwise(values)), "the lanes tile, so neighbours would be one row"


@given(stream_offsets())
def test_equal_offsets_have_equal_text_however_they_were_built(offset: StreamOffset) -> None:
    shuffled = StreamOffset(
        offset.group,
        offset.member,
        offset.reset,
        dict(reversed(list(offset.topic_ids.items()))),
        {tp: tuple(reversed(lanes)) for tp, lanes in reversed(list(offset.lanes.items()))},
        dict(reversed(list(offset.leader_epochs.items()))),
    )
    assert json.dumps(shuffled.to_json()) == json.dumps(offset.to_json())


def test_offset_ranges_are_written_inclusive_and_an_idle_lane_names_its_position() -> None:
    whole = cuts(2)
    lanes = (
        Lane(whole[0], "ab.1", 120, (OffsetRange(120, 161), OffsetRange(171, 241))),
        Lane(whole[1], "ab.2", 241),
    )
    tp = TopicPartition("orders", 0)
    body = StreamOffset("g", "m-7f", 0, {"orders": "id"}, {tp: lanes}, {tp: 3}).to_json()
    header = {"group": "g", "member": "m-7f", "reset": 0, "topics": {"orders": "id"}, "v": 2}
    assert body == {
        "#": header | {"epochs": {"orders": {"0": 3}}},
        "orders": {
            "0": {
                "0000000000000000-3fffffffffffffff": "ab.1@120-160,171-240",
                "4000000000000000-7fffffffffffffff": "ab.2@241",
            }
        },
    }


GOOD = {"#": {"v": 2, "group": "g", "reset": 0, "topics": {}}}
LOWER, UPPER = (str(h) for h in cuts(2))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="an empty offset"),
        pytest.param({"orders": {"0": 240}}, id="an offset of Spark's own Kafka source"),
        pytest.param({"logOffset": 3}, id="an offset of another source"),
        pytest.param({"#": {"v": 3, "group": "g", "reset": 0, "topics": {}}}, id="a newer version"),
        pytest.param({"#": {"v": 2, "group": 5, "reset": 0, "topics": {}}}, id="a group that is no text"),
        pytest.param({"#": {"v": 2, "group": "g", "reset": -1, "topics": {}}}, id="a negative reset epoch"),
        pytest.param({"#": GOOD["#"] | {"epochs": {"t": {"0": -3}}}}, id="a negative leader epoch"),
        pytest.param({"#": {"v": 2, "group": "g", "reset": True, "topics": {}}}, id="a reset epoch that is no number"),
        pytest.param({"#": {"v": 2, "group": "g", "reset": 0}}, id="no topic ids"),
        pytest.param(GOOD | {"t": {"x": {}}}, id="a partition that is no number"),
        pytest.param(GOOD | {"t": {"0": "no lanes"}}, id="a partition without lanes"),
        pytest.param(GOOD | {"t": {"0": {LOWER: "5-9"}}}, id="a lane without epoch"),
        pytest.param(GOOD | {"t": {"0": {LOWER: "a.1@"}}}, id="a lane without offsets"),
        pytest.param(GOOD | {"t": {"0": {LOWER: "a.1@9-5"}}}, id="an inverted offset range"),
        pytest.param(GOOD | {"t": {"0": {LOWER: "a.1@5-9,7-12"}}}, id="overlapping offset ranges"),
        pytest.param(GOOD | {"t": {"0": {LOWER: "a.1@5-99999999999999999999"}}}, id="an offset beyond 2^63"),
        pytest.param(GOOD | {"t": {"0": {"5-9": "a.1@5-9"}}}, id="a hash range that is not 16 digits"),
        pytest.param(GOOD | {"t": {"0": {LOWER: "a.1@1", LOWER[:17] + UPPER[17:]: "a.1@1"}}}, id="lanes that overlap"),
    ],
)
def test_a_foreign_or_damaged_checkpoint_is_refused_by_name(body: dict[str, object]) -> None:
    with pytest.raises(CheckpointMismatchError, match="checkpoint"):
        StreamOffset.from_json(body)
