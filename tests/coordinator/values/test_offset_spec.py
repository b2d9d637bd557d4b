"""Where to begin or end: the part of a wish that is for some partitions."""

import pytest

from coordinator.values.offset_spec import (
    EARLIEST,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    NoMatch,
    OffsetSpec,
    within,
)
from coordinator.values.subscription import TopicPartition

TP, OTHER, STRANGE = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("bills", 0)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(Earliest(), Earliest(), id="earliest is for every partition"),
        pytest.param(Latest(), Latest(), id="latest is for every partition"),
        pytest.param(
            AtTimestamp(5, NoMatch.LATEST), AtTimestamp(5, NoMatch.LATEST), id="one time is for every partition"
        ),
        pytest.param(
            AtOffsets({TP: 7, OTHER: EARLIEST, STRANGE: 9}),
            AtOffsets({TP: 7, OTHER: EARLIEST}),
            id="offsets of other partitions fall away",
        ),
        pytest.param(
            AtTimestamps({TP: 7, STRANGE: 9}, NoMatch.LATEST),
            AtTimestamps({TP: 7}, NoMatch.LATEST),
            id="times of other partitions fall away, the strategy stays",
        ),
        pytest.param(AtOffsets({STRANGE: 9}), AtOffsets({}), id="a wish for none of them is an empty wish"),
    ],
)
def test_within(spec: OffsetSpec, expected: OffsetSpec) -> None:
    assert within(spec, [TP, OTHER]) == expected
