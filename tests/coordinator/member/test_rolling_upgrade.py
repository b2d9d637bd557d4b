"""Assignors of members at work: rolled from one version to the next, refused, and a user's own that reads racks.

Several members, a real Kafka, a real Redis, no Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from applications import Application, all_whole, application, owners, restarted, take_turns, times_read
from coordinator.assignment.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.assignors.reverse import RoundRobin
from coordinator.errors import InconsistentGroupProtocolError
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition, Topics
from group_services import Group, subscribed
from streams import keyed


@dataclass
class Mine:
    """A user's assignor: `grouped`, in several versions."""

    version: int
    name: str = "mine"

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        return Grouped().assign(members, partitions, previous)


OLD: tuple[Assignor, ...] = (Mine(0),)
NEW: tuple[Assignor, ...] = (Mine(1), Mine(0))


def protocol(members: Group) -> str:
    return members.state.meta.get("protocol", "")


def everything_done(members: Group, running: list[Application], tp: TopicPartition, count: int) -> None:
    take_turns(running, lambda: members.state.stable == {tp: count}, f"{count} records are done")
    assert times_read(running, tp) == count


def test_a_new_version_is_used_once_the_last_member_knows_it(members: Group, tp: TopicPartition) -> None:
    running = [application(members, subscribed(tp), assignors=OLD) for _ in range(3)]
    take_turns(running, lambda: len(owners(members.state).get(tp, ())) == 3, "all three share the partition")
    used, generations = [protocol(members)], {members.state.meta["generation"]}
    for i in range(3):
        running[i] = restarted(members, running[i], subscribed(tp), assignors=NEW)
        take_turns(
            running,
            lambda: len(set(owners(members.state)[tp])) == 3 and members.state.meta["generation"] not in generations,
            "all three share it again",
        )
        generations.add(members.state.meta["generation"])
        used.append(protocol(members))
        members.kafka.produce(tp.topic, keyed(5))
        everything_done(members, running, tp, 5 * (i + 2))
    assert used == ["mine 0", "mine 0", "mine 0", "mine 1"]


def test_a_member_without_the_groups_assignor_is_refused_and_the_others_continue(
    members: Group, tp: TopicPartition
) -> None:
    running = [application(members, subscribed(tp), assignors=(Grouped(),)) for _ in range(2)]
    take_turns(running, lambda: len(owners(members.state).get(tp, ())) == 2, "both own a part")
    stranger = application(members, subscribed(tp), assignors=(RoundRobin(),))
    with pytest.raises(InconsistentGroupProtocolError) as refused:
        take_turns([stranger], lambda: False, "it is refused")
    first, second = running
    assert f"knows roundrobin 1, unknown to {first.member}, {second.member}" in refused.value.what
    members.kafka.produce(tp.topic, keyed(5))
    everything_done(members, running, tp, 10)
    stranger.service.leave()
    everything_done(members, running, tp, 10)


def test_a_stranger_is_refused_also_where_another_member_saw_it_first(members: Group, tp: TopicPartition) -> None:
    one = application(members, subscribed(tp), assignors=(Grouped(),))
    take_turns([one], lambda: members.state.stable == {tp: 5}, "one works alone")
    stranger = application(members, subscribed(tp), assignors=(RoundRobin(),))
    stranger.service.tasks(stranger.done)  # joins, and asks for no assignment
    generation = members.state.meta["generation"]
    take_turns([one], lambda: members.state.meta["generation"] != generation, "one computes an assignment without it")
    with pytest.raises(InconsistentGroupProtocolError, match="unknown to"):
        take_turns([stranger], lambda: False, "it is refused")
    assert set(owners(members.state)[tp]) == {one.member}


class ByRack:
    """Each partition goes whole to a member in the rack of its number: r0, r1."""

    name, version = "by-rack", 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        racks = {m.metadata["rack"]: m.member for m in members}
        given: dict[str, dict[TopicPartition, tuple[object, ...]]] = {m.member: {} for m in members}
        for topic, count in partitions.items():
            for p in range(count):
                given[racks.get(f"r{p}", next(iter(racks.values())))][TopicPartition(topic, p)] = (WHOLE,)
        return given  # type: ignore[return-value]


def test_a_users_assignor_reads_the_free_metadata_of_members(members: Group) -> None:
    topic = members.kafka.create_topic("racks", partitions=2)
    running = {
        rack: application(members, Topics((topic,)), fields={"rack": rack, "label.team": "a"}, assignors=(ByRack(),))
        for rack in ("r1", "r0")
    }
    take_turns(
        list(running.values()),
        lambda: owners(members.state) == {TopicPartition(topic, p): [running[f"r{p}"].member] for p in (0, 1)},
        "each partition is owned in its rack",
    )
    assert all_whole(members.state)
    assert members.state.members[running["r1"].member]["label.team"] == "a", "and everybody can see it"
