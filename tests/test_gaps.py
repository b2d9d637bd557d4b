"""The gaps above a stable offset, and who owns a key: as `coop-kafka gaps` and `coop-kafka owner` tell it."""

import pytest

from coordinator.errors import UnknownTopicError
from coordinator.group_state import GroupState
from coordinator.key_hash import cuts, hash_key
from coordinator.operations.gaps import Gap, PartitionGaps, gaps
from coordinator.operations.key_owner import KeyOwner, key_owners
from coordinator.progress.segments import Rectangle
from coordinator.ranges import WHOLE, HashRange, OffsetRange
from coordinator.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOWER, UPPER = cuts(2)


def state(segments: tuple[tuple[HashRange, int], ...], *ics: Rectangle) -> GroupState:
    return GroupState(
        now_ms=0,
        meta={},
        leases_ms={},
        members={"m-1": {"host": "h1"}},
        topics={},
        segments={TP: segments, OTHER: ((WHOLE, 3),)},
        owners={TP: ((LOWER, "n.1", "m-1"),)},
        stable={},
        ends={},
        ics={TP: ics},
    )


def test_the_gaps_are_what_is_missing_before_the_furthest_that_is_done() -> None:
    picture = state(((LOWER, 8), (UPPER, 24)), Rectangle(UPPER, OffsetRange(28, 30)))

    assert gaps(picture) == (
        PartitionGaps("orders", 0, 8, 30, (Gap(str(LOWER), 8, ("8-29",)), Gap(str(UPPER), 24, ("24-27",)))),
        PartitionGaps("orders", 1, 3, 3, ()),
    )


def test_gaps_between_individual_commits_are_written_inclusive() -> None:
    """The example of the draft KIP: stable 42, [45-47] and [50-50] are done. Its stable offset is 43 here."""
    picture = state(((WHOLE, 43),), Rectangle(WHOLE, OffsetRange(45, 48)), Rectangle(WHOLE, OffsetRange(50, 51)))

    assert gaps(picture)[0].gaps == (Gap(str(WHOLE), 43, ("43-44", "48-49")),)


def test_a_key_is_looked_for_in_every_partition_and_the_usual_one_is_marked() -> None:
    point = hash_key(b"key")
    mine, not_mine = (LOWER, UPPER) if point in LOWER else (UPPER, LOWER)
    picture = state(
        ((LOWER, 8), (UPPER, 8)), Rectangle(mine, OffsetRange(12, 14)), Rectangle(not_mine, OffsetRange(20, 30))
    )
    owned = mine == LOWER

    assert key_owners(picture, "orders", b"key", usual=1, partition=None) == (
        KeyOwner(
            "orders",
            0,
            False,
            f"{point:016x}",
            str(mine),
            8,
            ("12-13",),
            "n.1" if owned else None,
            "m-1" if owned else None,
            "h1" if owned else None,
        ),
        KeyOwner("orders", 1, True, f"{point:016x}", str(WHOLE), 3, (), None, None, None),
    )
    assert [o.partition for o in key_owners(picture, "orders", b"key", None, 1)] == [1]


@pytest.mark.parametrize(("topic", "partition", "named"), [("returns", None, "returns"), ("orders", 7, "orders-7")])
def test_a_topic_or_partition_without_positions_is_named(topic: str, partition: int | None, named: str) -> None:
    with pytest.raises(UnknownTopicError, match=f"no position in {named}.*with positions: orders"):
        key_owners(state(((WHOLE, 8),)), topic, b"", None, partition)
