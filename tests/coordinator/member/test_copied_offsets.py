"""Offsets that MirrorMaker 2 copied from another cluster, with our text beside them, which names another topic id.

A second topic stands for the topic of the other cluster: it has the same records, at the same offsets.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import kafka_groups
from command_runs import Run
from coordinator.errors import StateLostError
from coordinator.progress.mirror import is_mirror
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.offset_spec import Earliest, Latest, OffsetSpec
from coordinator.values.subscription import TopicPartition
from documented import commands
from group_services import Group, batches, read, records, run, subscribed
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")


@dataclass(frozen=True, slots=True)
class Copied:
    """A topic of eight records, and a group whose copied offset in it is 5."""

    tp: TopicPartition
    group: Group


@pytest.fixture
def copied(members: Group, tp: TopicPartition) -> Iterator[Copied]:
    run(members, subscribed(tp))
    (offset, text) = members.log().group_offsets(members.name)[tp]
    here = TopicPartition(members.kafka.create_topic("copied"), 0)
    members.kafka.produce(here.topic, keyed(8))
    other = Group(members.kafka, members.redis_url, f"{members.name}-here")
    assert other.log().commit_group_offsets(other.name, {here: (offset, text)})
    yield Copied(here, other)
    other.close()


@pytest.mark.parametrize("start", [Latest(), Earliest()])
def test_a_start_beside_offsets_of_another_topic_id_is_refused(copied: Copied, start: OffsetSpec) -> None:
    service = copied.group.service(subscribed(copied.tp), start)
    with pytest.raises(StateLostError, match=f"of another topic '{copied.tp.topic}'") as refused:
        service.first_positions()
    assert f"coop-kafka import {copied.group.name} --from kafka-group:{copied.group.name}" in str(refused.value)
    assert not copied.group.keys, "nothing was written"
    assert copied.group.log().group_offsets(copied.group.name)[copied.tp][0] == 5


def test_an_import_begins_at_the_copied_offsets(copied: Copied, run: Run) -> None:
    group, tp = copied.group, copied.tp
    place = "--redis", group.redis_url, "--bootstrap-server", group.kafka.bootstrap
    for command in (each for each in commands("docs/migrate.md") if "kafka-group:" in each):
        code, out, _ = run(*shlex.split(command.replace("orders-to-lake", group.name))[1:], *place)
        assert (code, [line.split() for line in out.splitlines()][1][:3]) == (0, [tp.topic, "0", "5"])
    service = group.aiming(subscribed(tp), Latest())
    assert records(*batches(service, StreamOffset(group.name))) == read(tp, 5, 8)
    service.leave()
    found = group.log().group_offsets(group.name)[tp]
    assert found[0] == 8
    assert is_mirror({tp: found})

    group.lose_everything()
    group.kafka.produce(tp.topic, keyed(2))
    service = group.aiming(subscribed(tp), Latest())
    assert records(*batches(service, StreamOffset(group.name))) == read(tp, 8, 10), "the mirror is of this cluster now"
    service.leave()


def test_copied_offsets_without_our_text_begin_the_group(copied: Copied) -> None:
    kafka_groups.commit(copied.group.kafka.bootstrap, copied.group.name, copied.tp.topic, {0: 5})
    service = copied.group.aiming(subscribed(copied.tp), Latest())
    assert records(*batches(service, StreamOffset(copied.group.name))) == read(copied.tp, 5, 8)
    service.leave()
