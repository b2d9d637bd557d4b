"""The owner of a key, as `coop-kafka owner` shows it."""

from dataclasses import replace

import pytest

from coordinator.errors import UnknownTopicError
from coordinator.kafka.partitioning import partition_for
from coordinator.progress.segments import Rectangle
from coordinator.redis.group_state import KnownTopic
from coordinator.tools.fields import Inclusive
from coordinator.tools.operations.key_owner import KeyOwner, key_owners
from coordinator.values.key_hash import hash_key
from coordinator.values.ranges import WHOLE, OffsetRange
from group_states import LOWER, UPPER, group_state


def test_a_key_is_looked_for_in_every_partition_and_the_usual_one_is_marked() -> None:
    point = hash_key(b"key")
    mine, not_mine = (LOWER, UPPER) if point in LOWER else (UPPER, LOWER)
    picture = group_state(
        ((LOWER, 8), (UPPER, 8)), Rectangle(mine, OffsetRange(12, 14)), Rectangle(not_mine, OffsetRange(20, 30))
    )
    picture = replace(picture, topics={"orders": KnownTopic("id-1", 2)})
    owned, usual = mine == LOWER, partition_for(b"key", 2, keyless=0)

    assert key_owners(picture, "orders", b"key") == (
        KeyOwner(
            "orders",
            0,
            usual == 0,
            f"{point:016x}",
            str(mine),
            8,
            (Inclusive(12, 13),),
            "n.1" if owned else None,
            "m-1" if owned else None,
            "h1" if owned else None,
        ),
        KeyOwner("orders", 1, usual == 1, f"{point:016x}", str(WHOLE), 3, (), None, None, None),
    )
    assert [o.partition for o in key_owners(picture, "orders", b"key", 1)] == [1]


@pytest.mark.parametrize(("topic", "partition", "named"), [("returns", None, "returns"), ("orders", 7, "orders-7")])
def test_a_topic_or_partition_without_positions_is_named(topic: str, partition: int | None, named: str) -> None:
    with pytest.raises(UnknownTopicError, match=f"no position in {named}.*with positions: orders"):
        key_owners(group_state(((WHOLE, 8),)), topic, b"", partition)
