"""State that another version wrote (docs/protocol.md#compatibility)."""

import pytest

from coordinator.errors import StateFormatError
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE
from store_world import TOPICS, TP, World

ON_EACH_SERVER = True


def test_schema_number__state_of_a_newer_one_is_refused_and_kept(world: World) -> None:
    """Rule: schema-number. The layout of Redis, the offset JSON and each entry of the mirror carry a schema number."""
    world.found()
    world.redis.hset(GroupKeys(world.group).meta, "schema", "2")
    with pytest.raises(StateFormatError, match="schema '2'"):
        world.store.positions.create("bb", TOPICS, {TP: 9})
    assert world.positions() == {str(WHOLE): "0"}
