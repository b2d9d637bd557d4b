"""A user's assignor that fails where a member computes: an event and whole partitions, and no query ends.

Several members, a real Kafka, a real Redis, no Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from applications import Application, all_whole, application, owners, take_turns, times_read
from coordinator.assignment.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.redis.events import last_events
from coordinator.tools.operations.views import view
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed
from streams import keyed


@dataclass
class Mine:
    """A user's assignor, known to all members by its name, and broken where some of them run."""

    error: BaseException | None = None
    asked: list[int] = field(default_factory=list)  # with how many members
    name: str = "mine"
    version: int = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        self.asked.append(len(members))
        if self.error:
            raise self.error
        return Grouped().assign(members, partitions, previous)


def done(members: Group, running: Sequence[Application], tp: TopicPartition, count: int) -> None:
    take_turns(running, lambda: members.state.stable == {tp: count}, f"{count} records are done")
    assert times_read(running, tp) == count


def failures(members: Group) -> list[str]:
    return [e.why for e in last_events(members.client, members.name, 1_000) if e.kind == "assignor"]


@pytest.mark.parametrize("error", [ValueError("no rack"), SystemExit(1)], ids=["it raises", "it ends the process"])
def test_an_assignor_that_is_broken_everywhere_ends_no_query(
    members: Group, tp: TopicPartition, error: BaseException
) -> None:
    broken = Mine(error)
    first, second = running = [application(members, subscribed(tp), assignors=(broken,)) for _ in range(2)]
    take_turns(running, lambda: members.state.assignment.keys() == {a.member for a in running}, "both are assigned")
    done(members, running, tp, 5)
    for count in (10, 15):
        members.kafka.produce(tp.topic, keyed(5))
        done(members, running, tp, count)
    assert all_whole(members.state)
    assert len(broken.asked) == len(failures(members)) <= 3, "it is asked once for the same members"
    why = failures(members)[-1]
    assert why.startswith("mine 1 of m-")
    assert f"failed: INVALID_ASSIGNMENT: the assignor 'mine' failed: {type(error).__name__}: {error}" in why
    assert view(members.name, members.state).assignor == "mine 1 (failed: grouped, whole partitions)"
    assert {first.member, second.member} >= set(owners(members.state)[tp])


def test_a_broken_assignor_is_tried_again_when_members_change(members: Group, tp: TopicPartition) -> None:
    broken = Mine(ImportError("numpy"))
    one = application(members, subscribed(tp), assignors=(broken,))
    take_turns([one], lambda: members.state.stable == {tp: 5}, "it works alone")
    assert failures(members)
    broken.error = None
    two = application(members, subscribed(tp), assignors=(broken,))
    take_turns([one, two], lambda: len(owners(members.state).get(tp, ())) == 2, "they share the partition again")
    assert view(members.name, members.state).assignor == "mine 1"
    members.kafka.produce(tp.topic, keyed(5))
    done(members, [one, two], tp, 10)


def test_members_that_know_nothing_but_the_broken_assignor_follow_the_fallback(
    members: Group, tp: TopicPartition
) -> None:
    assignors: list[tuple[Assignor, ...]] = [(Mine(KeyError("zone")),), (Mine(),), (Mine(), Grouped())]
    running = [application(members, subscribed(tp), assignors=known) for known in assignors]
    done(members, running, tp, 5)
    for each in running[::-1]:
        each.service.leave()
    assert members.state.stable == {tp: 5}
