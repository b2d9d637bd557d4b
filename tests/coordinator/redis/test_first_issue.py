"""What the first version wrote is read by this one: a frozen dump of a group that it left in the middle of a batch.

`first_issue.json` holds the group's keys and the offset of the batch under way, as code of commit b992cb6 wrote them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator import verdicts
from coordinator.errors import StateFormatError
from coordinator.progress.ownership import Owned, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import WHOLE
from coordinator.redis.calls import Caller
from coordinator.redis.keys import GroupKeys
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import RedisStore
from coordinator.subscription import TopicPartition
from store_world import LONGEST, NOBODY, SESSION, TOPICS, StoreServer

FROZEN: dict[str, Any] = json.loads((Path(__file__).parent / "first_issue.json").read_text())
UNDER_WAY = StreamOffset.from_json(FROZEN["offset"])
GROUP, NONCE, AT_MS = "first issue", "a1b2", 1_795_000_000_000
ME = Caller("m-1", "i1", NONCE, "8")
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def store(store_server: StoreServer) -> Iterator[RedisStore]:
    """The group as the first version left it, on the server that it ran on."""
    redis = store_server.redis
    for key, value in FROZEN["keys"].items():
        redis.delete(key)
        kind = key.split("}:")[1].partition(":")[0]
        if kind in ("leases", "batches"):
            redis.zadd(key, value)
        elif kind == "events":
            for entry in value:
                redis.xadd(key, entry)
        else:
            redis.hset(key, mapping=value)
    redis.hset(GroupKeys(GROUP).meta, "run_id", redis.info("server")["run_id"])
    yield RedisStore(
        store_server.client, GROUP, session_ms=SESSION, longest_ms=LONGEST, retention_ms=60_000, now=lambda: AT_MS
    )
    for key in redis.scan_iter(GroupKeys(GROUP).meta.replace("meta", "*")):
        redis.delete(key)


def positions(server: StoreServer, tp: TopicPartition) -> list[int]:
    return [position for _, position in read_group(server.client, GROUP).segments[tp]]


def test_the_batch_under_way_is_replayed_and_committed_and_nothing_is_read_twice(
    store: RedisStore, store_server: StoreServer
) -> None:
    assert [(str(s.offsets), s.hashes.lo == 0) for s in UNDER_WAY.slices] == [("10-29", True), ("20-29", False)]
    assert store.authorize(ME, UNDER_WAY).value == {FIRST: (Owned(WHOLE, "a1b2.1"),)}
    assert store.commit(ME, UNDER_WAY, completed(UNDER_WAY)).value.refused == {}
    assert (positions(store_server, FIRST), positions(store_server, SECOND)) == ([30], [9, 7])
    acquired = store.acquire(ME, {FIRST: (WHOLE,), SECOND: (WHOLE,)}).value
    assert [o.epoch for o in acquired.ownership[SECOND]] == ["a1b2.1", "a1b2.2"], "what was free has a new lane epoch"
    assert {tp: [s.position for s in of_tp.segments] for tp, of_tp in acquired.progress.items()} == {
        FIRST: [30],
        SECOND: [9, 7],
    }


def test_on_another_server_the_positions_stay_and_the_lane_epochs_are_void(
    store: RedisStore, store_server: StoreServer
) -> None:
    store_server.redis.hset(GroupKeys(GROUP).meta, "run_id", "of another server")
    with pytest.raises(verdicts.Lost):
        store.authorize(ME, UNDER_WAY)
    store.recover(ME, "cc", "another server", 0, TOPICS, {FIRST: None, SECOND: None})
    assert store.stable(["orders"]) == {FIRST: 10, SECOND: 7}
    with pytest.raises(verdicts.Recovering):
        store.authorize(Caller("m-1", "i1", "cc", "0"), UNDER_WAY)


def test_a_newer_version_s_state_is_refused_and_kept(store: RedisStore, store_server: StoreServer) -> None:
    store_server.redis.hset(GroupKeys(GROUP).meta, "schema", "2")
    segments = GroupKeys(GROUP).segments(FIRST)
    before = store_server.redis.hgetall(segments)
    for verb in (
        lambda: store.status(NOBODY),
        lambda: store.commit(ME, UNDER_WAY, completed(UNDER_WAY)),
        lambda: read_group(store_server.client, GROUP),
    ):
        with pytest.raises(StateFormatError, match="schema '2', this coop-kafka reads schema '1'"):
            verb()
    assert len(before) == 2
    assert store_server.redis.hgetall(segments) == before
