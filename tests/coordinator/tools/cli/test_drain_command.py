"""An operator drains a member from the command line, on a real broker and a real Redis, without Spark."""

import json
import re

import pytest

from command_runs import Run
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import GroupBusyError, UnknownGroupError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import STANDBY, WORKING
from coordinator.tools.operations.views import view
from coordinator.values.subscription import TopicPartition
from group_services import UNLIMITED, Group, batch, read, records, subscribed
from streams import eventually, keyed

LONG_MS = 60_000


def joining(members: Group, tp: TopicPartition, host: str) -> Service:
    settings = GroupSettings(members.name, capacity=2, session_ms=LONG_MS)
    return members.started(subscribed(tp), settings=settings, fields={"host": host})


def started(members: Group, tp: TopicPartition, host: str) -> Service:
    """A member that has joined."""
    service = joining(members, tp, host)
    service.next_offset(StreamOffset(members.name), UNLIMITED)
    return service


@pytest.fixture
def leaves(members: Group, tp: TopicPartition) -> Service:
    """A member that owns everything, and has a batch under way; the next one is `stays`."""
    return started(members, tp, "old")


def owners(members: Group, tp: TopicPartition) -> set[str]:
    return {member for _, _, member in members.state.owners[tp]}


def test_a_drained_member_hands_over_after_its_batch_and_stays_a_standby(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    leaves = joining(members, tp, "old")
    under_way = batch(leaves, StreamOffset(members.name))
    stays = started(members, tp, "new")
    at = (members.name, "--redis", members.redis_url)

    code, out, err = run("drain", *at, "--host", "old")
    said = f"Would move 1 range of {leaves.member}.\nNothing was changed. Add --execute to make the change.\n"
    assert (code, out, err) == (0, said, "")
    code, out, _ = run("drain", *at, "--host", "old", "--json")
    assert json.loads(out) == {"executed": False, "members": [leaves.member], "seconds": 0.0, "done": False}
    assert (members.events.count("drain"), members.state.standbys) == (0, {})

    code, out, err = run("drain", *at, "--host", "old", "--timeout", "0", "--execute")
    assert (code, out) == (1, "")
    assert re.match(rf"{leaves.member} still owns ranges after \d+ s: they move after the running batch", err)
    assert owners(members, tp) == {leaves.member}, "its batch goes on"

    stays.next_offset(StreamOffset(members.name), UNLIMITED)
    assert leaves.next_offset(under_way, UNLIMITED) is None, "it commits, and plans nothing"
    members.kafka.produce(tp.topic, keyed(4, first=5))
    assert records(batch(stays, StreamOffset(members.name))) == read(tp, 5, 9), "at once, and nothing twice"
    assert {m.member: m.state for m in view(members.name, members.state).members} == {
        leaves.member: STANDBY,
        stays.member: WORKING,
    }
    assert not {"lost", "expire", "fence"} & set(members.events)

    code, out, _ = run("drain", *at, "--member", leaves.member, "--execute")
    assert code == 0
    assert re.fullmatch(rf"Other members own all ranges of {leaves.member} after \d+\.\d s\.\n", out)
    code, out, _ = run("drain", *at, "--member", leaves.member, "--json", "--execute")
    answer = json.loads(out)
    assert 0 <= answer.pop("seconds") < LONG_MS / 1_000
    assert answer == {"executed": True, "members": [leaves.member], "done": True}


def test_who_cannot_be_drained(run: Run, members: Group, leaves: Service) -> None:
    at = (members.name, "--redis", members.redis_url)
    for execute in (), ("--execute",):
        code, _, err = run("drain", *at, "--member", leaves.member, *execute)
        assert code == 1
        assert err.startswith(f"{GroupBusyError.name}: group {members.name!r} has no other working member")
    code, _, err = run("drain", *at, "--host", "elsewhere")
    assert code == 1
    assert err.startswith(
        f"{UnknownGroupError.name}: group {members.name!r} has no active member on the host elsewhere"
    )
    for flags in ((), ("--member", "m", "--host", "h")):
        code, _, err = run("drain", *at, *flags)
        assert (code, "pass either --member or --host" in err) == (2, True)


def test_a_drained_member_reads_again_when_the_others_are_gone(
    run: Run, members: Group, tp: TopicPartition, leaves: Service
) -> None:
    stays = started(members, tp, "new")
    run("drain", members.name, "--redis", members.redis_url, "--host", "old", "--timeout", "0", "--execute")
    stays.leave()
    members.kafka.produce(tp.topic, keyed(4, first=5))
    eventually(lambda: leaves.next_offset(StreamOffset(members.name), UNLIMITED) is not None, "it reads")
