"""Kafka's answers about topics and about offsets of partitions, with one request to each broker.

kafka-python's own `list_partition_offsets` requests metadata before every look-up. The coordinator looks several times
a second, so this module keeps the leaders as long as the connection lives. kafka-python's `describe_topics` makes a
dict of the whole answer, which takes three times as long as the answer.

Leader epochs come with the offsets. The current end of a leader epoch needs a request of its own.

    look_up        all answers, or an error
    look_up_now    the answers that come now: a leader that is dead or frozen holds up nobody else's question

Knows requests and error codes; nothing of the use of the offsets.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from kafka import errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest

from coordinator.kafka.connection import Session, sent
from coordinator.kafka.errors import error_text, forbidden_topic, is_passing, unknown_partitions, unknown_topics
from coordinator.values.subscription import NO_ID, POLICIES, Topic, TopicPartition

Wanted: TypeAlias = Mapping[TopicPartition, int]
"""The look-up in each partition: a time in ms, or `offset_spec.LATEST` or `EARLIEST`."""

OfTopics: TypeAlias = dict[str, dict[int, int]]
"""What to look up: topic -> partition -> time or leader epoch."""


class LookedUp(NamedTuple):
    """An offset, and the leader epoch in the same answer; -1 without one."""

    offset: int
    epoch: int


KafkaRequest: TypeAlias = Any
Response: TypeAlias = Any

_Topic = ListOffsetsRequest.ListOffsetsTopic
_Partition = _Topic.ListOffsetsPartition
_EpochTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_EpochPartition = _EpochTopic.OffsetForLeaderPartition

NO_OFFSET = -1
"""The answer where no record has this time or a later one."""

CONSUMER = -1
"""The replica id of a client that is not a replica."""

METADATA_MS, LAST_METADATA_MS, OTHERS = 1_000, 6_000, 2
"""The wait for one broker's metadata. Then another broker is asked, at most `OTHERS` times, one with a question under
way last; it gets more time, since large clusters take longer."""

LEADER_MS = 1_000
"""The wait for leaders that do not answer at once. Later looks do not wait for them, and take their late answers."""

NO_ANSWER_YET = errors.KafkaTimeoutError("no answer yet")

_NO_IDS = ("None", str(UUID(int=0)))
"""Brokers before 2.8 have no field for a topic id, and newer ones answer zeros until the whole cluster is upgraded."""

_NOT_THERE = (errors.UnknownTopicOrPartitionError.errno, errors.InvalidTopicError.errno)


def describe(session: Session, names: Iterable[str]) -> list[Topic]:
    """The current topics of these names, as a broker knows them; never creates one.

    Raises `UnknownTopicError` with the nearest names that exist.
    """
    answer = _metadata(session, sorted(set(names)))
    if missing := [topic.name for topic in answer.topics if topic.error_code in _NOT_THERE]:
        raise unknown_topics(missing, session.admin.list_topics())
    return [_usable(session, topic) for topic in answer.topics]


def described(session: Session, name: str) -> Topic | None:
    """The topic of this name; None if it does not exist."""
    answer = _metadata(session, [name])
    (topic,) = answer.topics
    return None if topic.error_code in _NOT_THERE else _usable(session, topic)


def describe_those(session: Session, names: Sequence[str]) -> list[Topic] | None:
    """The current topics of these names; None if one is gone, or may no longer be seen."""
    topics = _metadata(session, names).topics if names else []
    if any(topic.error_code in (*_NOT_THERE, errors.TopicAuthorizationFailedError.errno) for topic in topics):
        return None
    return [_usable(session, topic) for topic in topics]


def describe_matching(session: Session, regex: re.Pattern[str]) -> list[Topic]:
    """The topics with `regex` in their name, without internal ones; costs the metadata of all topics."""
    answer = _metadata(session, None)
    wanted = (topic for topic in answer.topics if not _ours(topic) and regex.search(topic.name))
    return [_usable(session, topic) for topic in wanted]


def _ours(topic: Response) -> bool:
    return bool(topic.is_internal or topic.name == POLICIES)


def leader_racks(session: Session, names: Sequence[str]) -> dict[TopicPartition, str]:
    """The racks of the leaders now, of partitions whose leader's broker names its rack."""
    answer = _metadata(session, names)
    racks = {broker.node_id: broker.rack for broker in answer.brokers if broker.rack}
    return {
        TopicPartition(topic.name, partition.partition_index): racks[partition.leader_id]
        for topic in answer.topics
        for partition in topic.partitions
        if partition.leader_id in racks
    }


def look_up(
    session: Session, questions: Sequence[Wanted], isolation: IsolationLevel
) -> list[dict[TopicPartition, LookedUp]]:
    """The offsets for each of `questions`, all requested at once; -1 where no record has this time or a later one.

    Under READ_COMMITTED the end is the last stable offset, and later records do not count.
    """
    _learn_leaders(session, {tp for wanted in questions for tp in wanted})
    requests = [
        [(leader, _of_times(topics, isolation)) for leader, topics in by_leader(wanted, session.leaders).items()]
        for wanted in questions
    ]
    all_answers = session.manager.run(_answers, session.manager, requests)
    return [dict(entry for answer in answers for entry in _offsets(answer)) for answers in all_answers]


def look_up_now(
    session: Session, questions: Mapping[int, Sequence[TopicPartition]], isolation: IsolationLevel
) -> tuple[dict[int, dict[TopicPartition, LookedUp]], dict[TopicPartition, str]]:
    """What leaders answer now to each of `questions`, by its time; and why some partitions have no answer to all.

    A question that a leader has not answered is not asked again: the next look takes its answer.
    """
    partitions = {tp for wanted in questions.values() for tp in wanted}
    _learn_leaders(session, partitions)
    missing = {tp: f"no leader; copies on {_copies(session, tp)}" for tp in partitions if session.leaders[tp] < 0}
    requests = {
        (leader, time_ms, isolation.value): _of_times(topics, isolation)
        for time_ms, wanted in questions.items()
        for leader, topics in by_leader({tp: time_ms for tp in wanted if tp not in missing}, session.leaders).items()
    }
    answers = session.manager.run(_answers_now, session.manager, session.pending, requests)
    found: dict[int, dict[TopicPartition, LookedUp]] = {time_ms: {} for time_ms in questions}
    for (leader, time_ms, _), answer in answers.items():
        known, refused = _parted(answer)
        found[time_ms] |= known
        of_leader = [tp for tp in questions[time_ms] if session.leaders[tp] == leader and tp not in known]
        why = answer if isinstance(answer, BaseException) else NO_ANSWER_YET  # to the question before this one
        missing |= {tp: f"{_address(session, leader)}: {error_text(refused.get(tp, why))}" for tp in of_leader}
    for tp in missing:  # another broker may lead it by now
        session.leaders.pop(tp, None)
    return found, missing


def _address(session: Session, leader: int) -> str:
    return session.addresses.get(leader, f"broker {leader}")


def _copies(session: Session, tp: TopicPartition) -> str:
    """The brokers that have the log of a partition without a leader."""
    where = {node: session.addresses.get(node) for node in session.copies[tp]}
    return ", ".join(f"broker {node} ({address})" if address else f"broker {node}" for node, address in where.items())


def ends_of_epochs(session: Session, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The end, in each current log, of the records of that leader epoch and of older ones, if its leader knows."""
    _learn_leaders(session, set(epochs))
    requests = [(leader, _of_epochs(topics)) for leader, topics in by_leader(epochs, session.leaders).items()]
    (answers,) = session.manager.run(_answers, session.manager, [requests])
    return {tp: end for answer in answers for tp, end in _epoch_ends(answer)}


def _metadata(session: Session, names: Sequence[str] | None) -> Response:
    """A broker's metadata of these topics, or of all."""
    topics = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = session.manager.run(_answer, session.manager, request)
    session.addresses |= {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
    return answer


def _usable(session: Session, topic: Response) -> Topic:
    _raise_on(topic.error_code, topic.name, None)
    for partition in topic.partitions:
        tp = TopicPartition(topic.name, partition.partition_index)
        session.leaders[tp] = partition.leader_id
        if partition.leader_id < 0:
            session.copies[tp] = tuple(partition.replica_nodes)
    numbers = sorted(partition.partition_index for partition in topic.partitions)
    found = str(topic.topic_id)
    return Topic(topic.name, NO_ID if found in _NO_IDS else found, tuple(numbers))


def _learn_leaders(session: Session, partitions: set[TopicPartition]) -> None:
    unknown = partitions - session.leaders.keys()
    if unknown:
        describe(session, {tp.topic for tp in unknown})
    if missing := unknown - session.leaders.keys():
        raise unknown_partitions(missing)


def _of_times(topics: OfTopics, isolation: IsolationLevel) -> KafkaRequest:
    asked = [
        _Topic(name=t, partitions=[_Partition(partition_index=p, timestamp=time) for p, time in times.items()])
        for t, times in topics.items()
    ]
    least = max(1, ListOffsetsRequest.min_version_for_isolation_level(isolation))
    return ListOffsetsRequest(isolation_level=isolation.value, topics=asked, min_version=least)


def _of_epochs(topics: OfTopics) -> KafkaRequest:
    asked = [
        _EpochTopic(topic=t, partitions=[_EpochPartition(partition=p, leader_epoch=e) for p, e in epochs.items()])
        for t, epochs in topics.items()
    ]
    return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=asked)


def by_leader(wanted: Wanted, leaders: Mapping[TopicPartition, int]) -> dict[int, OfTopics]:
    """The requested value of each partition, by its leader and by topic."""
    found: dict[int, OfTopics] = defaultdict(lambda: defaultdict(dict))
    for tp, what in wanted.items():
        if leaders[tp] < 0:
            raise errors.LeaderNotAvailableError(tp.topic)
        found[leaders[tp]][tp.topic][tp.partition] = what
    return found


async def _answer(manager: KafkaConnectionManager, request: KafkaRequest) -> Response:
    """Runs in kafka-python's thread. Any broker will do, so it asks another one if one does not answer."""
    failure: Exception = errors.MetadataEmptyBrokerList()
    others = min(OTHERS, max(0, len(manager.cluster.brokers()) - 1))
    for wait_ms in [METADATA_MS] * others + [LAST_METADATA_MS]:
        try:
            return await manager.wait_for(manager.send(request), wait_ms)
        except (errors.KafkaError, OSError) as error:
            if not is_passing(error):
                raise
            failure = error
    raise failure


async def _answers_now(
    manager: KafkaConnectionManager,
    pending: dict[object, Future],
    requests: Mapping[tuple[int, int, int], KafkaRequest],
) -> dict[tuple[int, int, int], Response]:
    """Runs in kafka-python's thread. The answers or errors; it waits only for questions that are new."""
    new = requests.keys() - pending.keys()
    pending |= {key: sent(manager, requests[key], key[0]) for key in new}
    deadline = time.monotonic() + LEADER_MS / 1000
    answers: dict[tuple[int, int, int], Response] = {}
    for key in sorted(requests):
        if key in new or pending[key].is_done:
            try:
                answers[key] = await manager.wait_for(pending[key], max(0.0, 1000 * (deadline - time.monotonic())))
            except (errors.KafkaError, OSError) as error:
                answers[key] = error
        else:
            answers[key] = NO_ANSWER_YET
        if pending[key].is_done:
            del pending[key]
    return answers


async def _answers(
    manager: KafkaConnectionManager, requests: Sequence[Sequence[tuple[int, KafkaRequest]]]
) -> list[list[Response]]:
    """Runs in kafka-python's thread. It sends all requests before it awaits the first answer."""
    sent = [[manager.send(request, node_id=leader) for leader, request in to_leaders] for to_leaders in requests]
    return [[await answer for answer in answers] for answers in sent]


def _offsets(answer: Response) -> Iterator[tuple[TopicPartition, LookedUp]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            _raise_on(partition.error_code, tp.topic, tp)
            yield tp, LookedUp(partition.offset, partition.leader_epoch)


def _parted(answer: Response) -> tuple[dict[TopicPartition, LookedUp], dict[TopicPartition, BaseException]]:
    """The offsets in an answer, and passing errors; raises all others."""
    if isinstance(answer, BaseException):
        if not is_passing(answer):
            raise answer
        return {}, {}
    known, refused = dict[TopicPartition, LookedUp](), dict[TopicPartition, BaseException]()
    for topic in answer.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code and is_passing(error := errors.for_code(partition.error_code)(str(tp))):
                refused[tp] = error
            else:
                _raise_on(partition.error_code, tp.topic, tp)
                known[tp] = LookedUp(partition.offset, partition.leader_epoch)
    return known, refused


def _epoch_ends(answer: Response) -> Iterator[tuple[TopicPartition, int]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.topic, partition.partition)
            _raise_on(partition.error_code, tp.topic, tp)
            if partition.end_offset >= 0:
                yield tp, partition.end_offset


def _raise_on(code: int, topic: str, tp: TopicPartition | None) -> None:
    """Raises errors about one topic; `errors.explained` handles all others."""
    if code == errors.NoError.errno:
        return
    if code == errors.TopicAuthorizationFailedError.errno:
        raise forbidden_topic(topic)
    if tp is not None and code == errors.UnknownTopicOrPartitionError.errno:
        raise unknown_partitions({tp})
    raise errors.for_code(code)(str(tp or topic))
