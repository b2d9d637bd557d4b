"""Members of one group that read different topics or partitions: a loss takes back nothing that one of them proves.

On real servers, whole members. Before, partitions that the recovering member did not read began at earliest.
"""

from contextlib import closing
from typing import cast

import pytest
import redis

from coordinator.assignment.settings import GroupSettings
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.offset_spec import Latest
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, TopicPartition
from group_services import UNLIMITED, Group, batch, batches, read, records, subscribed
from kafka_logs import Unmirrored
from streams import eventually, keyed
from topics import Record

pytestmark = pytest.mark.usefixtures("short_sessions")

RETENTION_MS = 60_000
ASKS_MS = 10_001
"""A member asks so often whether topics without a reader are forgotten."""


@pytest.fixture
def other(members: Group) -> TopicPartition:
    """The one partition of another topic, also with five records."""
    topic = members.kafka.create_topic("other")
    members.kafka.produce(topic, keyed(5))
    return TopicPartition(topic, 0)


def reads_all(service: Service, members: Group) -> StreamOffset:
    """The last offset of a member that has read everything: it is committed."""
    service.first_positions()
    return [StreamOffset(members.name), *batches(service, StreamOffset(members.name))][-1]


def test_redis_loses_everything__members_of_other_topics_go_on_where_they_were(
    members: Group, tp: TopicPartition, other: TopicPartition
) -> None:
    """Rule: recover-by-proof. The member that recovers knows the other topic by the mirror alone."""
    one, two = members.service(subscribed(tp)), members.service(subscribed(other))
    done, first = reads_all(one, members), reads_all(two, members)
    members.clock.skip(31_000)
    assert one.next_offset(done, UNLIMITED) is two.next_offset(first, UNLIMITED) is None  # the mirror is due
    members.kafka.produce(other.topic, keyed(3))
    end = batch(two, first)
    members.lose_everything()
    assert one.next_offset(done, UNLIMITED) is None
    assert members.state.stable == {tp: 5, other: 5}
    members.kafka.produce(other.topic, keyed(2))
    assert records(batch(two, end)) == read(other, 8, 10)
    assert members.state.stable == {tp: 5, other: 8}
    assert members.events.count("recover") == 1


def test_redis_loses_everything_without_a_mirror__a_pinned_member_proves_its_own_partition(members: Group) -> None:
    topic = members.kafka.create_topic("pinned", partitions=2)
    tps = [TopicPartition(topic, n) for n in range(2)]
    five_each = [Record(b"v", partition=tp.partition) for tp in tps for _ in range(5)]
    unmirrored, pinned = Unmirrored(members.log()), [Assigned({tp: (WHOLE,)}, pinned=True) for tp in tps]
    members.kafka.produce(topic, five_each)
    one, two = (members.service(mine, log=unmirrored, application=str(mine)) for mine in pinned)
    done, first = reads_all(one, members), reads_all(two, members)
    members.kafka.produce(topic, five_each)
    end = batch(two, first)
    members.lose_everything()
    assert {offset for _, offset in records(batch(one, done))} == {*range(5, 10)}
    assert two.next_offset(end, UNLIMITED) is None
    assert members.state.stable == {tps[0]: 5, tps[1]: 10}


def test_an_old_copy_of_redis_knows_a_topic_no_more__its_reader_restarts_where_it_was(
    members: Group, tp: TopicPartition, other: TopicPartition
) -> None:
    one = members.service(subscribed(tp))
    done = reads_all(one, members)
    with closing(redis.Redis.from_url(members.redis_url)) as raw:
        copy = {key: cast(bytes, raw.dump(key)) for key in members.keys}
        two = members.service(subscribed(other))
        first = reads_all(two, members)
        two.leave()
        members.lose_everything()
        for key, dump in copy.items():
            raw.restore(key, 0, dump)
    members.restart_redis()
    assert one.next_offset(done, UNLIMITED) is None
    members.kafka.produce(other.topic, keyed(3))
    again = members.service(subscribed(other))
    assert records(batch(again, first)) == read(other, 5, 8)


def test_a_topic_was_forgotten_while_its_reader_rested__the_checkpoint_proves_its_position(
    members: Group, tp: TopicPartition, other: TopicPartition
) -> None:
    """Rule: topic-expiry. It restarts with `startingOffsets=latest`. A life proves where the last batch began."""
    settings = GroupSettings(members.name, capacity=2, session_ms=500, retention_ms=RETENTION_MS)
    one, two = (members.service(subscribed(each), Latest(), settings=settings) for each in (tp, other))
    done = reads_all(one, members)
    two.first_positions()
    members.kafka.produce(other.topic, keyed(3))
    end = list(batches(two, StreamOffset(members.name)))[-1]
    two.leave()
    mark, meta = f"unsubscribed {other.topic}", GroupKeys(members.name).meta

    def asks() -> bool:
        members.clock.skip(ASKS_MS)
        return one.next_offset(done, UNLIMITED) is None

    eventually(lambda: asks() and bool(members.redis.hexists(meta, mark)), "it is marked")
    members.redis.hincrby(meta, mark, -RETENTION_MS)
    eventually(lambda: asks() and other not in members.state.stable, "it is forgotten")
    assert "forget" in members.events
    members.kafka.produce(other.topic, keyed(2))
    again = members.service(subscribed(other), Latest(), settings=settings)
    assert records(batch(again, end)) == read(other, 5, 10)
