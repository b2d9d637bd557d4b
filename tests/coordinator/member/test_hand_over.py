"""Ranges that changed hands, and leases that end, as one member sees it: on a real Redis, without Spark."""

import re

import pytest

from coordinator.errors import FencedMemberError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.events import last_events
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, read, records, subscribed
from streams import eventually


def plans_all(service: Service, group: str, tp: TopicPartition) -> bool:
    """Whether a member plans all the records, of all hashes; at first it may own a share."""
    end = service.next_offset(StreamOffset(group), UNLIMITED)
    if end is None or sum(s.hashes.size for s in end.slices) != WHOLE.size:
        return False
    return records(end) == read(tp, 0, 5)


def test_each_refused_call_of_a_member_that_lost_its_ranges_is_one_event(members: Group, tp: TopicPartition) -> None:
    slow, other = members.service(subscribed(tp)), members.service(subscribed(tp))
    slow.first_positions()
    end = batch(slow, StreamOffset(members.name))
    members.lose(slow)
    eventually(lambda: plans_all(other, members.name, tp), "the other takes over")
    slow.next_offset(end, UNLIMITED)
    zombie = members.service(subscribed(tp))
    for _ in range(2):
        zombie.tasks(end)
    with pytest.raises(FencedMemberError):
        slow.next_offset(end, UNLIMITED)
    fences = [(e.member, e.why, e.ranges) for e in last_events(members.client, members.name, 100) if e.kind == "fence"]
    whole, member = f"{tp.topic}-0 whole", end.member
    assert fences == [
        (
            member,
            "a commit left out ranges that have moved since, as after a restart; their owner reads them",
            whole,
        ),
        (
            member,
            "a batch left out ranges that have moved since, as after a restart; their owner reads them",
            whole,
        ),
        (member, "the member was started again, so its earlier life ends", ""),
    ]


@pytest.mark.parametrize(
    ("reports", "shown"),
    [
        pytest.param({"host": "h2", "driver_pid": "7"}, ": pid 7 on host h2, at 20", id="host and driver"),
        pytest.param({"pid": "7"}, "", id="no host"),
    ],
)
def test_a_fenced_member_names_the_checkpoint_and_the_driver_that_took_over(
    members: Group, tp: TopicPartition, reports: dict[str, str], shown: str
) -> None:
    elder, other = members.service(subscribed(tp)), members.service(subscribed(tp), fields=reports)
    elder.first_positions()
    end = batch(elder, StreamOffset(members.name))
    other.tasks(end)
    expected = f"driver with the same checkpoint has taken over member {end.member} of group {members.name!r}{shown}"
    with pytest.raises(FencedMemberError, match=re.escape(expected)):
        elder.next_offset(end, UNLIMITED)
