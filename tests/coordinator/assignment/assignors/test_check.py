"""An assignment is checked: it tiles each partition, and it fits members and topics."""

import pytest

from assignor_groups import some_members
from coordinator.assignment.assignors.assignor import Assignment
from coordinator.assignment.assignors.check import check
from coordinator.errors import (
    ConsumerRangeFetchNotAcceptedError,
    InvalidAssignmentError,
)
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

T0, T1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)


LEFT, RIGHT = cuts(2)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        pytest.param({}, "no member owns 0000000000000000-7fffffffffffffff of t-0", id="a partition without an owner"),
        pytest.param({"m0": {T0: (LEFT,)}}, "4000000000000000-7fffffffffffffff of t-0", id="a hole at the end"),
        pytest.param({"m0": {T0: (RIGHT,)}}, "0000000000000000-3fffffffffffffff of t-0", id="a hole at the start"),
        pytest.param(
            {"m0": {T0: (LEFT,)}, "m1": {T0: (HashRange(RIGHT.lo + 1, HASH_MAX),)}},
            "4000000000000000-4000000000000000 of t-0",
            id="one hash missing between two members",
        ),
        pytest.param(
            {"m0": {T0: (WHOLE,)}, "m1": {T0: (RIGHT,)}},
            "4000000000000000-7fffffffffffffff of t-0 is assigned to m0 and m1",
            id="an overlap",
        ),
        pytest.param(
            {"m0": {T0: (HashRange(0, RIGHT.lo),)}, "m1": {T0: (RIGHT,)}},
            "4000000000000000-4000000000000000 of t-0 is assigned to m0 and m1",
            id="one hash with two owners",
        ),
        pytest.param({"m0": {T0: (LEFT, LEFT, RIGHT)}}, "overlap or do not ascend", id="one member has a range twice"),
        pytest.param({"m0": {T0: (RIGHT, LEFT)}}, "overlap or do not ascend", id="ranges in no order"),
        pytest.param({"x": {T0: (WHOLE,)}}, "x, which is not a member", id="a stranger"),
        pytest.param(
            {"m0": {T0: (WHOLE,), OTHER: (WHOLE,)}}, "does not subscribe", id="a topic its member does not subscribe to"
        ),
        pytest.param(
            {"m0": {T0: (WHOLE,), T1: (WHOLE,)}}, "t-1 is assigned, but does not exist", id="no such partition"
        ),
    ],
)
def test_an_assignment_that_does_not_fit_is_refused(given: Assignment, what: str) -> None:
    with pytest.raises(InvalidAssignmentError, match=what) as refused:
        check(given, some_members(2, "t"), {"t": 1, "other": 1})
    assert refused.value.remedy


def test_a_part_for_a_member_that_does_not_share_is_code_90() -> None:
    members = some_members(2, "t", sharing=False)
    with pytest.raises(ConsumerRangeFetchNotAcceptedError, match="NOT_ACCEPTED: code 90: m0") as refused:
        check({"m0": {T0: (LEFT,)}, "m1": {T0: (RIGHT,)}}, members, {"t": 1})
    assert refused.value.code == 90


def test_several_ranges_and_members_without_any_are_accepted() -> None:
    a, b, c, d = cuts(4)
    check({"m0": {T0: (a, c)}, "m1": {T0: (b, d)}, "m2": {}}, some_members(3, "t"), {"t": 1})
