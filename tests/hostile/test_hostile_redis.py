"""One damaged value or missing key in a sound group's Redis state: the results of a member's next calls and of views.

Each row: a member has read a third of a topic when somebody writes into Redis. The member then goes on, or a new life
of it starts. It either reads the rest, after an event that names the mended part, or ends with a named error. After an
error the state is put back, and a new life on the same checkpoint reads the rest. So: no bare traceback, no loop, no
silent stall, and nothing is lost.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import pytest
import redis

from applications import Application
from coordinator.errors import CoopKafkaError
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from damaged_groups import (
    HUGE,
    LOWER,
    RECORDS,
    UPPER,
    Case,
    Counting,
    Damage,
    application,
    both,
    delete,
    half_way,
    hdel,
    hset,
    looks,
    other_kind,
    sadd,
    to_the_end,
    zadd,
)
from group_services import Group
from streams import keyed
from topics import Kafka


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> TopicPartition:
    """A topic for all rows: each has a group of its own."""
    name = kafka.create_topic("hostile")
    kafka.produce(name, keyed(RECORDS))
    return TopicPartition(name, 0)


@pytest.fixture
def case(kafka: Kafka, redis_url: str, group: str, topic: TopicPartition) -> Iterator[Case]:
    with closing(Counting(redis_url)) as client, closing(redis.Redis.from_url(redis_url)) as raw:
        made = Group(kafka, redis_url, group)
        made.client = client
        yield Case(made, topic, client, raw)
        made.close()


pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Row:
    """The damage, and its result."""

    name: str
    damage: Damage
    message: str  # a piece of the error or of the events; GOES_ON where neither is needed
    shown: str = ""  # a piece of a view's refusal; empty if all views show the group
    restart: bool = False  # whether a new life of the member meets it


GOES_ON = "goes on"
AGAIN = both(hdel("meta", "occasion"))  # an assignment is due
FORMAT, KIND = "STATE_FORMAT: ", "WRONGTYPE"
ROWS = [
    Row("all topics are gone", delete("topics"), "recover: $TOPIC of $GROUP:topics is gone"),
    Row("all topics are gone at a start", delete("topics"), "mend: topic $TOPIC was missing in Redis", restart=True),
    Row("a topic is gone", hdel("topics", "$TOPIC"), "recover: $TOPIC of $GROUP:topics is gone"),
    Row(
        "a topic of a million partitions",
        hset("topics", "$TOPIC", "id 1000000"),
        "at most 100000",
        "at most 100000",
    ),
    Row("another topic of a million partitions", hset("topics", "x", "id 1000000"), "topic 'x' is recorded as", "'x'"),
    Row("a topic without an id", hset("topics", "$TOPIC", " 1"), "not <topic id>", "not <topic id>"),
    Row(
        "a topic with another id",
        hset("topics", "$TOPIC", "other 1"),
        "DATA_LOSS: topic '$TOPIC' was deleted and created",
    ),
    Row("a topic that nobody reads", hset("topics", "x", "id-9 3"), GOES_ON),
    Row("topics of another kind", other_kind("topics"), ":topics, a string, is damaged", KIND),
    Row("no positions", delete("segments"), "recover: $GROUP:segments:$TOPIC:0 is gone"),
    Row("no positions and no owners", delete("segments", "owners"), "recover: $GROUP:segments:$TOPIC:0 is gone"),
    Row(
        "no positions and no owners at a start",
        delete("segments", "owners"),
        "mend: $TOPIC-0 had no positions",
        restart=True,
    ),
    Row("nothing of a partition", delete("segments", "owners", "stable"), "recover: $GROUP:segments:$TOPIC:0 is gone"),
    Row(
        "nothing of a partition at a start",
        delete("segments", "owners", "stable"),
        "mend: $TOPIC-0 had no",
        restart=True,
    ),
    Row(
        "nothing of a topic",
        delete("segments", "owners", "stable", "topics"),
        "recover: $GROUP:segments:$TOPIC:0 is gone",
    ),
    Row(
        "a position that is none",
        hset("segments", str(WHOLE), "junk"),
        "of $GROUP:segments:$TOPIC:0 is damaged",
        "'junk'",
    ),
    Row("a position of forty digits", hset("segments", str(WHOLE), HUGE), "position 9999", "is not an offset"),
    Row(
        "a hole",
        both(delete("segments"), hset("segments", LOWER, "5")),
        "a hole from 4000000000000000 on",
        "leave holes",
    ),
    Row("positions of another kind", other_kind("segments"), KIND, KIND),
    Row("no owners", delete("owners"), "fence: a commit left out ranges that have moved since"),
    Row(
        "an owner who is nobody",
        hset("owners", str(WHOLE), "nobody"),
        "of $GROUP:owners:$TOPIC:0 is damaged",
        "as owned by 'nobody'",
    ),
    Row("an owner who is a stranger", hset("owners", str(WHOLE), "aa.1 stranger"), "fence: a commit"),
    Row(
        "a lane epoch with a semicolon",
        hset("owners", str(WHOLE), "aa.1;0 $MEMBER"),
        "of $GROUP:owners:$TOPIC:0 is damaged",
        "'aa.1;0 $MEMBER'",
    ),
    Row("an owner with a semicolon", hset("owners", str(WHOLE), "aa.1 m;1"), "fence: a commit"),
    Row("owners that overlap", hset("owners", UPPER, "aa.1 m-2"), "of $GROUP:owners:$TOPIC:0 is damaged"),
    Row("no stable offset", delete("stable"), GOES_ON),
    Row("no stable offset at a start", delete("stable"), GOES_ON, restart=True),
    Row("a stable offset that is none", hset("stable", "0", "junk"), GOES_ON, "'junk', not an offset"),
    Row(
        "a stable offset that is none at a start",
        hset("stable", "0", "junk"),
        "'junk', not an offset",
        "'junk'",
        restart=True,
    ),
    Row("a stable offset ahead of its positions", hset("stable", "0", "14"), GOES_ON, restart=True),
    Row(
        "individual commits that are none",
        hset("ics", str(WHOLE), "junk"),
        "mend: $GROUP:ics:$TOPIC:0 had 1 damaged entries",
    ),
    Row(
        "individual commits of no hashes", hset("ics", "junk", "5-6"), "mend: $GROUP:ics:$TOPIC:0 had 1 damaged entries"
    ),
    Row("no meta", delete("meta"), "recover: Redis holds nothing of this group", "UNKNOWN_GROUP"),
    Row("a nonce that is none", hset("meta", "nonce", "not hex"), "nonce of $GROUP:meta is damaged", "nonce is"),
    Row("another nonce", hset("meta", "nonce", "ffff"), "fence: a commit"),
    Row("no nonce", hdel("meta", "nonce"), "recover: Redis holds nothing of this group", "nonce is"),
    Row("another run id", hset("meta", "run_id", "0"), "recover: another Redis server"),
    Row("a smaller commit sequence", hset("meta", "commit_seq", "1"), "recover: Redis went back"),
    Row("no commit sequence", hdel("meta", "commit_seq"), "commit_seq of $GROUP:meta is damaged", "commit_seq is"),
    Row("a newer reset epoch", hset("meta", "reset_epoch", "77"), "fence: a commit"),
    Row("no reset epoch", hdel("meta", "reset_epoch"), "reset_epoch of $GROUP:meta is damaged", "reset_epoch is"),
    Row("a counter of epochs in words", hset("meta", "epochs", "ten"), "epochs of $GROUP:meta is damaged", "'ten'"),
    Row("a newer schema", hset("meta", "schema", "2"), "run a coop-kafka of the version that wrote it", "schema '2'"),
    Row("no generation", hdel("meta", "generation"), GOES_ON),
    Row("an assignor that nobody knows", hset("meta", "protocol", "junk 1"), "plan: generation 2 by grouped 1"),
    Row("an assignor that is none", hset("meta", "protocol", "junk"), "'junk' is not the name and version"),
    Row(
        "a recovery for 30,000 years",
        hset("meta", "recovering_until", "9" * 15),
        "clock: the recovery was cut",
    ),
    Row(
        "a recovery until it is over", hset("meta", "recovering_until", "x"), "recovering_until of", "recovering_until"
    ),
    Row("a session of forty digits", hset("meta", "session_ms", HUGE), "session_ms of $GROUP:meta", "session_ms"),
    Row("a turn that never ends", both(AGAIN, hset("meta", "computing_until", "9" * 15)), "plan: generation 2"),
    Row("meta of another kind", other_kind("meta"), KIND, KIND),
    Row(
        "no entry of the member",
        delete("member"),
        "FENCED_MEMBER: another driver with the same checkpoint "
        "has taken over member $MEMBER of group '$NAME', or its entry in Redis was deleted",
    ),
    Row("no entry of the member at a start", delete("member"), GOES_ON, restart=True),
    Row("another life in the entry", hset("member", "incarnation", "x"), "FENCED_MEMBER: another driver"),
    Row("a capacity in words", both(AGAIN, hset("member", "capacity", "lots")), "member $MEMBER has capacity 'lots'"),
    Row(
        "assignors that it does not know",
        both(AGAIN, hset("member", "protocols", "x 1")),
        "plan: generation 2 by grouped 1",
    ),
    Row(
        "assignors without versions",
        both(AGAIN, hset("member", "protocols", "x")),
        "of the assignors of member $MEMBER, 'x'",
    ),
    Row("a join at no time", both(AGAIN, hset("member", "joined_at", "soon")), "member $MEMBER joined at 'soon'"),
    Row(
        "half of its slots slow",
        both(AGAIN, hset("member", "slow_percent", "half")),
        "reports 'half'",
        "reports 'half'",
    ),
    Row("a call from the far future", hset("member", "called", HUGE), "incarnation"),
    Row(
        "a lease without an entry",
        zadd("leases", "ghost", 9e15),
        "mend: a lease without a member no longer counts: ghost",
    ),
    Row("no leases", delete("leases"), GOES_ON),
    Row("leases of another kind", other_kind("leases"), ":leases, a string, is damaged", KIND),
    Row("a batch that hangs", zadd("batches", "$MEMBER", 1), GOES_ON),
    Row("a member that leaves and does not know it", sadd("leaving", "$MEMBER"), GOES_ON),
    Row("no assignment", delete("assignment"), GOES_ON),
    Row("an assignment that is no JSON", hset("assignment", "$MEMBER", "{"), "'{' is not an assignment", "'{'"),
    Row("a nested assignment", hset("assignment", "$MEMBER", "[" * 100_000), "[' is not an assignment", "[' is not"),
    Row(
        "ranges in ranges",
        hset("assignment", "$MEMBER", '{"$TOPIC":{"0":[["0"]]}}'),
        "is not an assignment",
        "is not an",
    ),
    Row("a nested assignment of another", hset("assignment", "m-2", "[" * 100_000), GOES_ON, "[' is not an assignment"),
    Row(
        "an assignment that overlaps",
        hset("assignment", "$MEMBER", f'{{"$TOPIC":{{"0":["{WHOLE}","{LOWER}"]}}}}'),
        "overlap",
        "overlap",
    ),
    Row(
        "a policy that is neither",
        both(AGAIN, hset("policy", "accept.individual.commit", "maybe")),
        "coop-kafka policy GROUP",
        "coop-kafka policy GROUP",
    ),
    Row(
        "a growth that is none",
        hset("growth", "x 1 2", "junk"),
        "the growth 'x 1 2' is recorded as 'junk'",
        "the growth",
    ),
    Row("targets that are none", hset("targets", "$MEMBER", "junk"), "targets 'junk' of AvailableNow"),
    Row("a strike that is none at a start", hset("strikes", "x", "junk"), "strike 'x' is 'junk'", restart=True),
    Row("lanes that are none", hset("lanes", "$MEMBER", "junk"), GOES_ON, "does not describe a lane"),
    Row("a log end that is none", hset("end", "0", "far"), GOES_ON, "'far', not an offset"),
    Row("a leader epoch that is none at a start", hset("epoch", "0", "junk"), "leader epoch of $TOPIC-0", restart=True),
    Row("no events", delete("events"), GOES_ON),
    Row("events of another kind at a start", other_kind("events"), ":events, a string, is damaged", restart=True),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_damage_is_mended_or_named_and_nothing_is_lost(case: Case, row: Row) -> None:
    app = half_way(case)
    copy = {key: case.raw.dump(key) or b"" for key in case.group.keys}
    row.damage(case)
    shown = "\n".join(looks(case))
    assert case.text(row.shown) in shown
    assert bool(row.shown) == bool(shown), shown
    result = outcome(case, app, row, copy)
    assert case.text(row.message) in result


def outcome(case: Case, app: Application, row: Row, copy: Mapping[str, bytes]) -> str:
    """The name of the error, or of the event; afterwards all is read."""
    case.client.ran = 0
    try:
        if row.restart:
            app = Application(application(case).service, app.done, app.read)
        to_the_end(case, app)
    except CoopKafkaError as error:
        assert error.remedy
        app.service.leave()
        case.restore(copy)
        to_the_end(case, Application(application(case).service, app.done, app.read))
        return str(error)
    return "\n".join((GOES_ON, *case.events()))


def test_a_member_that_leaves_while_all_topics_are_gone_leaves_its_ranges(case: Case) -> None:
    app = half_way(case)
    delete("topics")(case)
    app.service.leave()
    assert "leave: all its batches are confirmed" in case.events()[-1] or "leave: unconfirmed" in case.events()[-1]
    to_the_end(case, Application(application(case).service, app.done, app.read))
