"""A log that was cut, and a mirror from before the cut: it proves nothing of the new records. On real servers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from coordinator.errors import LogError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, batches, read, records, subscribed
from kafka_logs import Elected
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")


def _nothing() -> None:
    """The write of the mirror is as quick as any."""


@dataclass
class Mirrored(Elected):
    """Unclean elections, and writes of the mirror that something comes before: `meanwhile`."""

    meanwhile: Callable[[], None] = field(default=_nothing)

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        run, self.meanwhile = self.meanwhile, _nothing
        run()
        return self.log.commit_group_offsets(group, offsets)


def away() -> None:
    raise LogError("the group coordinator is not available")


def read_and_copied(members: Group, tp: TopicPartition, log: Elected) -> tuple[Service, StreamOffset, dict[str, bytes]]:
    """A member that has read the log, the offset of its batch, and a copy of Redis."""
    service, end = members.begun(subscribed(tp), log=log, fail_on_data_loss=False)
    assert service.next_offset(end, UNLIMITED) is None
    assert members.state.stable == {tp: 5}
    return service, end, members.copied()


def test_an_old_copy_of_redis_from_before_a_cut_that_was_accepted_skips_no_record(
    members: Group, tp: TopicPartition
) -> None:
    """Its position lies beyond the new log's records, and its own leader epoch says so."""
    log = Elected(members.log())
    service, end, copy = read_and_copied(members, tp, log)
    log.elect(tp, at=3)
    members.kafka.produce(tp.topic, keyed(3))
    batch(service, end)
    assert members.state.stable == {tp: 3}
    members.restore(copy)
    members.restart_redis()
    again = members.service(subscribed(tp), log=log, fail_on_data_loss=False)
    assert read(tp, 3, 8) <= records(batch(again, end))


@pytest.mark.parametrize("fail", [True, False])
def test_an_old_copy_whose_positions_the_mirror_raises_again_is_no_loss(
    members: Group, tp: TopicPartition, *, fail: bool
) -> None:
    log = Elected(members.log())
    service, end, copy = read_and_copied(members, tp, log)
    log.elect(tp, at=3)
    members.kafka.produce(tp.topic, keyed(6))
    end = batch(service, end)
    assert service.next_offset(end, UNLIMITED) is None
    service.leave()  # writes the mirror
    members.restore(copy)
    members.restart_redis()
    again = members.service(subscribed(tp), log=log, fail_on_data_loss=fail)
    assert not records(*batches(again, end))


def test_a_mirror_from_before_a_cut_that_was_accepted_raises_no_position(members: Group, tp: TopicPartition) -> None:
    log = Mirrored(members.log())
    service, end = members.begun(subscribed(tp), log=log, fail_on_data_loss=False)
    members.clock.skip(31_000)
    assert service.next_offset(end, UNLIMITED) is None
    assert log.group_offsets(members.name)[tp][0] == 5
    log.elect(tp, at=3)
    log.meanwhile = away
    members.kafka.produce(tp.topic, keyed(3))
    after = service.next_offset(end, UNLIMITED)
    assert after is not None
    assert members.state.stable == {tp: 3}
    assert log.group_offsets(members.name)[tp][0] == 5, "the mirror is from before the cut"
    members.restart_redis()
    again = members.service(subscribed(tp), log=log, fail_on_data_loss=False)
    assert read(tp, 3, 8) <= records(batch(again, after))
    assert members.state.stable[tp] == 3


def test_a_mirror_that_is_written_late_gives_way_to_a_cut_that_was_accepted_meanwhile(
    members: Group, tp: TopicPartition
) -> None:
    log = Mirrored(members.log())
    service, end = members.begun(subscribed(tp), log=log)
    assert service.next_offset(end, UNLIMITED) is None

    def cut() -> None:
        topics = service.state.log.topics
        text = f"1@3 reset=0 topic={topics[tp.topic].id}"
        members.store.positions.recreate(topics, {tp: 3}, {tp: text})

    log.meanwhile = cut
    service.leave()
    assert log.group_offsets(members.name)[tp][0] == 3
