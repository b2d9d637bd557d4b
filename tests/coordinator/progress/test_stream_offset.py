"""The stream offset's JSON form: canonical, self-contained, and refused where it is not ours."""

from itertools import pairwise

import pytest
from hypothesis import given

from coordinator.errors import CheckpointMismatchError
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from stream_offsets import stream_offsets


@given(stream_offsets())
def test_a_row_is_of_neighbours_that_read_the_same(offset: StreamOffset) -> None:
    for tp, lanes in offset.lanes.items():
        rows = offset.rows[tp]
        values = [(row.epoch, row.position, row.offsets) for row in rows]
        parts = [(lane.hashes, i) for lane in lanes for i, row in enumerate(rows) if lane.hashes.lo in row.hashes]
        assert [values[i] for _, i in parts] == [(lane.epoch, lane.position, lane.offsets) for lane in lanes]
        assert sum(row.hashes.size for row in rows) == sum(lane.hashes.size for lane in lanes)
        assert all(left != right for left, right in pairwise(values)), "the lanes tile, so neighbours would be one row"


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
