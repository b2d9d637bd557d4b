"""Checkpoints that somebody damaged or forged: each is refused by name, and the group in Redis stays as it was.

The offset is parsed; then a member takes it, as a replay and as a completed batch. What the scripts refuse to write is
in `test_hostile_requests`.
"""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.commits.commit_api import CommitApi
from coordinator.errors import CheckpointMismatchError, CoopKafkaError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OFFSET_MAX, WHOLE
from coordinator.values.subscription import TopicPartition
from forged_offsets import (
    Damage,
    Json,
    both,
    case,
    epoch,
    halves,
    header,
    lane,
    lanes,
    leader,
    named,
    partition,
    standalone,
    topic,
    unnamed_topic,
)
from group_dump import dump
from group_services import UNLIMITED, Group, PatientClock, batch, records, subscribed
from streams import Stream, eventually, keyed, state
from topics import Kafka

LOWER, UPPER = map(str, cuts(2))


RECORDS = 5


UNREADABLE = [
    case("a reset epoch of 2^63", header(reset=2**63), "reset epoch 9223372036854775808"),
    case("a reset epoch that scripts cannot count on", header(reset=10**18), "reset epoch 1000000000000000000"),
    case("a reset in the year 33658", header(reset=10**15), "from 0 to 999999999999999"),
    case("a reset before all resets", header(reset=-1), "reset epoch -1"),
    case("a reset epoch of four hundred digits", header(reset=10**400), "reset epoch 1000"),
    case("a version that is a truth value", header(v=True), "version True is not a whole number"),
    case("a version of five thousand digits", header(v="1" * 5_000), "version '1111"),
    case("a group without a name", header(group=""), "'' is not the name of a group"),
    case("a group of blanks", header(group=" \t"), "is not the name of a group"),
    case("a group with a name too long", header(group="g" * 256), "is not the name of a group"),
    case("a group whose name writes to the terminal", header(group="g\x1b]0;x\x07"), r"'g\x1b]0;x"),
    case("a group whose name forges a log line", header(group="g\nSTATE_LOST: all"), "is not the name of a group"),
    case("a member with a space, an owner that nobody reads", header(member="m 1"), "'m 1' is not a member id"),
    case("a member that ends a list", header(member="m-1;m-2"), "is not a member id"),
    case("a member that makes a key of another kind", header(member="m:1"), "is not a member id"),
    case("a member with a hash tag", header(member="{x}"), "is not a member id"),
    case("a member without an id", header(member=""), "'' is not a member id"),
    case("a member with an id too long", header(member="m" * 65), "is not a member id"),
    case("a member with a digit of another script", header(member="m-１"), "is not a member id"),
    case("a member that ends a line", header(member="m-1\n"), "is not a member id"),
    case("lanes of a group, and of no member", header(member=None), "only one of group and member"),
    case("lanes of a member, and of no group", header(group=None), "only one of group and member"),
    case("lanes that are shared, and no group", standalone, "has lane epoch"),
    case("a lane that is not shared, and a group", epoch("-"), "has lane epoch '-'"),
    case("a topic id that names a partition too", named("id-1 5"), "'id-1 5' is not a topic id"),
    case("a topic id that ends a list", named("id;1"), "is not a topic id"),
    case("a topic id too long", named("i" * 65), "is not a topic id"),
    case("a topic id that is nothing", named(None), "None is not a topic id"),
    case("lanes of a topic without an id", unnamed_topic, "has lanes, and no topic id"),
    case("an id of no topic",
         lambda body: body["#"]["topics"].update({"a b": "id"}), "'a b' is not the name of a topic"),
    case("a topic with a space", topic("orders 0"), "'orders 0' is not the name of a topic"),
    case("a topic without a name", topic(""), "'' is not the name of a topic"),
    case("a topic with a name too long", topic("t" * 250), "is not the name of a topic"),
    case("a topic that makes a key of another kind", topic("a:b"), "'a:b' is not the name of a topic"),
    case("one partition under two names", partition("00"), "'00' is not a partition"),
    case("a partition that Kafka cannot name", partition(str(2**31)), "partition 2147483648"),
    case("a partition of five thousand digits", partition("9" * 5_000), "checkpoint"),
    case("a leader epoch that Kafka cannot name", leader("0", 2**31), "leader epoch 2147483648"),
    case("a leader epoch of no partition", leader("0 1", 3), "'0 1' is not a partition"),
    case("a leader epoch that is text", leader("0", "3"), "leader epoch '3'"),
    case("a position behind every log", lane(f"{{}}@{OFFSET_MAX}"), f"{OFFSET_MAX} is not a whole number"),
    case("a position of 2^63", lane(f"{{}}@{2**63}"), "is not a whole number"),
    case("a position of forty digits", lane(f"{{}}@{10**40}"), "is not a whole number"),
    case("a batch that reads every offset there is", lane(f"{{}}@0-{OFFSET_MAX - 1}"), "is not a whole number"),
    case("a position with zeros before it", lane("{}@005"), "is not the form that coop-kafka writes"),
    case("offsets with zeros before them", lane("{}@0-4,005-009"), "is not an offset range"),
    case("a position in digits of another script", lane("{}@٣"), "is not the form that coop-kafka writes"),
    case("a lane with two ends", lane("{}@0-4@9"), "is not an offset range"),
    case("a lane epoch that names another owner", epoch("aa.1 m-2"), "is not a lane epoch"),
    case("a lane epoch with a zero before its counter", epoch("aa.01"), "is not a lane epoch"),
    case("a lane epoch in capitals", epoch("AA.1"), "is not a lane epoch"),
    case("a lane epoch without a counter", epoch("aa"), "is not a lane epoch"),
    case("a lane epoch with a counter too large", epoch("aa." + "9" * 19), "is not a lane epoch"),
    case("a lane epoch of five megabytes", epoch("a" * 5_000_000 + ".1"), "is not a lane epoch"),
    case("hashes in capitals", lanes({str(WHOLE).upper(): "aa.1@5"}), "is not a hash range"),
    case("hashes with a prefix", lanes({"0x00000000000000-7fffffffffffffff": "aa.1@5"}), "is not a hash range"),
    case("a hash in two lanes", lanes({str(WHOLE): "aa.1@5", UPPER: "aa.1@9"}), "overlap"),
    case("lanes in a list", lanes({"lanes": [[]] * 9}), "checkpoint"),
]  # fmt: skip


@dataclass(frozen=True)
class Lived:
    """A group whose one member has read five records; `body` is the end of that batch, as Spark holds it."""

    members: Group
    tp: TopicPartition
    body: Json

    def forged(self, damage: Damage) -> Json:
        body = copy.deepcopy(self.body)
        damage(body)
        return cast(Json, json.loads(json.dumps(body)))

    def next_life(self, **settings: Any) -> Service:
        return self.members.service(subscribed(self.tp), settings=GroupSettings(self.members.name, **settings))

    def dump(self) -> dict[str, object]:
        return dump(self.members.redis, self.members.name)


@pytest.fixture(scope="module")
def shared(kafka: Kafka, redis_url: str) -> Iterator[Lived]:
    """One group for all cases: whatever a case is refused, it must leave the group as it was."""
    name = kafka.create_topic("hostile")
    kafka.produce(name, keyed(RECORDS))
    members, tp = Group(kafka, redis_url, f"hostile-{name}", PatientClock()), TopicPartition(name, 0)
    service = members.started(subscribed(tp), settings=GroupSettings(members.name, session_ms=600_000))
    yield Lived(members, tp, batch(service, StreamOffset(members.name)).to_json())
    members.close()


@pytest.mark.parametrize(("damage", "piece"), UNREADABLE)
def test_an_unreadable_checkpoint_is_refused_when_it_is_parsed(shared: Lived, damage: Damage, piece: str) -> None:
    body, before = shared.forged(damage), shared.dump()
    for parse in (StreamOffset.from_json, lambda forged: CommitApi.of_offset(shared.members.redis_url, forged)):
        with pytest.raises(CheckpointMismatchError) as refused:
            parse(body)
        message = str(refused.value)
        assert message.startswith("CHECKPOINT_MISMATCH: ")
        assert piece in message
        assert "Remedy: start the query with a new checkpointLocation" in message
        assert "delete" not in message
        assert len(message) < 600
        assert message.isprintable()
    assert shared.dump() == before


def test_a_checkpoint_that_is_nested_too_deeply_is_refused_by_the_commit_api(shared: Lived) -> None:
    with pytest.raises(CheckpointMismatchError, match="is not the JSON of an offset"):
        CommitApi.of_offset(shared.members.redis_url, "[" * 100_000)


# -- what is refused against Kafka, and before Redis ----------------------------------------------


def test_the_offset_that_is_forged_here_is_good(shared: Lived) -> None:
    good = StreamOffset.from_json(shared.body)
    assert records(good) == {(shared.tp.topic, n) for n in range(RECORDS)}
    assert good.to_json() == shared.body


BEYOND = [
    case("one record more than the log has", lane("{}@0-5"), "DATA_LOSS", "before the offset 6"),
    case("an idle lane far beyond the log", lane(f"{{}}@{2**62}"), "DATA_LOSS", f"before the offset {2**62}"),
    case("one of two lanes beyond the log", halves("{}@0-4", "{}@0-99"), "DATA_LOSS", "before the offset 100"),
    case("a lane beyond the log, and another member",
         both(lane(f"{{}}@{2**62}"), header(member="m-2")), "DATA_LOSS", "before the offset"),
    case("a lane beyond the log, and a reset that never was",
         both(lane(f"{{}}@{2**62}"), header(reset=10**15 - 1)), "DATA_LOSS", "before the offset"),
    case("a partition too many", partition("7"), "CHECKPOINT_MISMATCH", "a partition that its topic does not have"),
    case("another topic", topic("another"), "CHECKPOINT_MISMATCH", "'another', to which this query does not subscribe"),
    case("another group", header(group="another"), "CHECKPOINT_MISMATCH", "belongs to group 'another'"),
]  # fmt: skip


@pytest.mark.parametrize("door", [Service.tasks, lambda service, end: service.next_offset(end, UNLIMITED)],
                         ids=["as a replay", "as a completed batch"])  # fmt: skip
@pytest.mark.parametrize(("damage", "name", "piece"), BEYOND)
def test_offsets_that_kafka_does_not_have_are_refused_before_any_write(
    shared: Lived,
    damage: Damage,
    name: str,
    piece: str,
    door: Callable[[Service, StreamOffset], object],
) -> None:
    offset, before = StreamOffset.from_json(shared.forged(damage)), shared.dump()
    with pytest.raises(CoopKafkaError) as refused:
        door(shared.next_life(), offset)
    assert refused.value.name == name
    assert piece in refused.value.what
    assert "checkpoint" in refused.value.remedy
    assert shared.dump() == before, "it was refused, and has written"


def test_of_an_offset_beyond_the_log_nothing_is_committed_and_all_records_are_read_where_losses_are_accepted(
    kafka: Kafka, members: Group
) -> None:
    tp = TopicPartition(kafka.create_topic("hostile"), 0)
    kafka.produce(tp.topic, keyed(RECORDS))
    members.clock = PatientClock()
    settings = GroupSettings(members.name, session_ms=60_000, fail_on_data_loss=False)
    first = members.started(subscribed(tp), settings=settings)
    lived = Lived(members, tp, batch(first, StreamOffset(members.name)).to_json())
    forged = StreamOffset.from_json(lived.forged(lane("{}@0-99")))
    again = batch(lived.next_life(session_ms=60_000, fail_on_data_loss=False), forged)
    assert records(again) == {(tp.topic, n) for n in range(RECORDS)}
    assert members.state.stable == {tp: 0}


def test_a_batch_that_ends_exactly_at_the_log_end_is_committed(kafka: Kafka, members: Group) -> None:
    tp = TopicPartition(kafka.create_topic("hostile"), 0)
    kafka.produce(tp.topic, keyed(RECORDS))
    _, end = members.begun(subscribed(tp), session_ms=60_000)
    assert members.service(subscribed(tp), session_ms=60_000).next_offset(end, UNLIMITED) is None
    assert members.state.stable == {tp: RECORDS}


# -- the same through Spark -----------------------------------------------------------------------


def forge(stream: Stream, damage: Damage) -> None:
    """Change the end of the last batch that Spark has recorded."""
    last = max((p for p in (stream.checkpoint / "offsets").iterdir() if p.name.isdecimal()), key=lambda p: int(p.name))
    *more, text = last.read_text().splitlines()
    body = json.loads(text)
    damage(body)
    last.write_text("\n".join([*more, json.dumps(body)]))
    _checksum(last).unlink(missing_ok=True)


def _checksum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


@pytest.mark.parametrize(
    ("damage", "pieces"),
    [
        pytest.param(header(member="m 1"), ["CHECKPOINT_MISMATCH", "'m 1'"], id="a member with a space"),
        pytest.param(
            lane("{}@0-99"),
            ["DATA_LOSS", "log ends at 5", "nothing was committed"],
            id="beyond the log",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_query_with_a_forged_checkpoint_ends_by_name(
    stream: Stream, shared: Lived, kafka: Kafka, damage: Damage, pieces: list[str]
) -> None:
    kafka.produce(stream.options["subscribe"], keyed(RECORDS))
    stream.run()
    server, group = shared.members.redis, stream.options["group"]
    eventually(lambda: state(stream).leases_ms == {}, "the first query has left the group")
    forge(stream, damage)
    before = dump(server, group)
    with pytest.raises(Exception, match=pieces[0]) as failed:
        stream.run()
    assert [piece for piece in pieces if piece not in str(failed.value)] == []
    assert dump(server, group) == before
