"""What every group promises: nothing lost, key order, exact resume, bounded repeats (docs/protocol.md#promises)."""

import json

from applications import Application, application, take_turns
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Authorized
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, read, records, slices_read, subscribed
from store_world import TP, World, lane, offset
from streams import keyed


def test_nothing_lost__no_position_moves_before_the_sink_has_the_batch(members: Group, tp: TopicPartition) -> None:
    """Rule: nothing-lost.

    Every record left of the stable offset was in a batch that the sink completed, or the user committed it.
    """
    _, end = members.begun(subscribed(tp))
    reborn = members.service(subscribed(tp))  # the driver died
    assert records(end) == read(tp, 0, 5)
    assert slices_read(reborn, end) == tuple(sorted(end.slices))
    assert members.state.stable == {tp: 0}
    assert reborn.next_offset(end, UNLIMITED) is None, "Spark says that the batch is in the sink"
    assert members.state.stable == {tp: 5}


def test_key_order__each_key_comes_in_order_while_applications_come_and_go(members: Group, tp: TopicPartition) -> None:
    """Rule: key-order. The first deliveries of a key reach the sink in offset order."""
    first, second = application(members, subscribed(tp)), application(members, subscribed(tp))
    second.read = first.read  # in the order in which the sinks got them

    def read_on(end: int, *running: Application) -> None:
        take_turns(running, lambda: members.state.stable == {tp: end}, f"offset {end} is done")
        members.kafka.produce(tp.topic, keyed(5, first=end))

    read_on(5, first)
    read_on(10, first, second)
    read_on(15, second, first)
    first.service.leave()
    read_on(20, second)
    for hashes in cuts(64):
        assert [
            o for s in first.read if hashes.lo in s.hashes for o in range(s.offsets.start, s.offsets.until)
        ] == list(range(20))


def test_exact_resume__a_restart_reads_the_same_records_again(members: Group, tp: TopicPartition) -> None:
    """Rule: exact-resume. A restart that still owns its lanes replays the unconfirmed batch with the same id."""
    _, end = members.begun(subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    members.redis.hset(GroupKeys(members.name).ics(tp), str(WHOLE), "2-3")  # acknowledged meanwhile
    written = StreamOffset.from_json(json.loads(json.dumps(end.to_json())))
    assert slices_read(members.service(subscribed(tp)), written) == tuple(sorted(end.slices))


def test_exact_resume__also_of_a_first_batch_that_no_life_has_authorised(world: World) -> None:
    """The driver died right after it had written the batch to its WAL, and Redis has lost nothing."""
    world.owner()
    reborn, end = world.join("m-1", "i2"), offset(lane("aa.1", 0, 10))
    answer = world.store.positions.authorize(reborn, end, replayed=True).value
    assert answer == Authorized({TP: (Owned(WHOLE, "aa.1"),)})


def test_bounded_repeats__after_a_death_only_the_unconfirmed_batch_comes_again(
    members: Group, tp: TopicPartition
) -> None:
    """Rule: bounded-repeats. Only slices that were unconfirmed can repeat."""
    lost, end = members.begun(subscribed(tp))
    assert lost.next_offset(end, UNLIMITED) is None
    members.kafka.produce(tp.topic, keyed(3))
    following = batch(lost, end)
    members.lose(lost)
    heir = members.service(subscribed(tp))
    assert records(batch(heir, StreamOffset(members.name))) == records(following) == read(tp, 5, 8)
