"""The Commit API of a member of a `World`, and short words for ranges and for the contents of Redis."""

import json

from coordinator.commits.commit_api import CommitApi
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import TP, WANTED, World


def ranges(text: str) -> list[OffsetRange]:
    """Inclusive, as people write them: "45-47 50-50"."""
    return [OffsetRange.parse(r) for r in text.split()]


def api(world: World, position: int = 43, ics: str = "", **limits: int) -> CommitApi:
    """The Commit API of a member that owns the partition at `position`, with those individual commits."""
    world.found(p0=position)
    world.logs_reach()
    world.set_ics({str(WHOLE): ics} if ics else {})
    world.store.positions.acquire(world.join(**{name.replace("_", "."): str(n) for name, n in limits.items()}), WANTED)
    return CommitApi.of_member(world.url, world.group, "m-1")


def batch_of(world: World, *lanes: Lane) -> CommitApi:
    """The Commit API of the member's batch that reads those lanes."""
    end = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: lanes})
    return CommitApi.of_offset(world.url, json.dumps(end.to_json()))


def state(world: World) -> tuple[dict[str, str], dict[str, str]]:
    """The positions and individual commits in Redis."""
    return world.positions(), world.ics()
