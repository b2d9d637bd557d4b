"""What an operator wished and a group does not do: a log line and an event say so, and name what does it."""

import logging

import pytest

import kafka_groups
from coordinator.assignment.settings import GroupSettings
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.events import last_events
from coordinator.values.offset_spec import Earliest, Latest
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, batches, read, records, run, subscribed
from streams import eventually, keyed


def whys(members: Group, kind: str) -> list[str]:
    return [event.why for event in last_events(members.client, members.name, 1_000) if event.kind == kind]


def lines(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [r.message for r in caplog.records if word in r.message and r.name.startswith("coordinator.")]


def test_offsets_that_a_new_group_took_over_are_not_overruled(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    kafka_groups.commit(members.kafka.bootstrap, members.name, tp.topic, {0: 2})
    run(members, subscribed(tp))
    assert (lines(caplog, "another program"), whys(members, "overruled")) == ([], [])
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {0: 5}


@pytest.mark.parametrize("option", [None, "startingOffsets"])
def test_a_new_checkpoint_of_a_group_that_has_read_says_where_it_begins(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture, option: str | None
) -> None:
    """As in a full refresh of a pipeline's table."""
    caplog.set_level(logging.INFO, logger="coordinator")
    run(members, subscribed(tp))
    assert (lines(caplog, "reads on"), whys(members, "continue")) == ([], [])
    members.kafka.produce(tp.topic, keyed(3))
    settings = GroupSettings(members.name, capacity=2, session_ms=500, starting_option=option)
    service = members.aiming(subscribed(tp), Earliest() if option else Latest(), settings=settings)
    assert records(*batches(service, StreamOffset(members.name))) == read(tp, 5, 8)
    service.leave()
    (line,) = lines(caplog, "reads on")
    (why,) = whys(members, "continue")
    assert f"{tp} at 5" in why
    assert f"{tp} at 5" in line
    assert f"coop-kafka reset-offsets {members.name} --all-topics --to-earliest --execute" in line
    assert ("startingOffsets is not used" in line) == (option is not None)
    assert levels(caplog) == ["WARNING" if option else "INFO"], "latest reads more than it asked for"


def test_an_application_that_joins_a_group_is_no_reason_for_a_warning(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="coordinator")

    def started(session_ms: int) -> Service:
        return members.started(subscribed(tp), Earliest(), session_ms=session_ms)

    first = started(60_000)
    end = batch(first, StreamOffset(members.name))
    started(60_000)
    assert levels(caplog) == ["INFO"]
    assert first.next_offset(end, UNLIMITED) is None
    first.leave()
    assert started(500).next_offset(end, UNLIMITED) is None, "it has joined, and dies"
    assert levels(caplog) == ["INFO", "WARNING"]
    eventually(lambda: members.store.positions.status().alive == 0, "the end of its lease")
    started(500)
    assert levels(caplog) == ["INFO", "WARNING", "WARNING"]


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in caplog.records if "reads on" in record.message]
