"""Kafka's answers about topics and about offsets of partitions, in one request to each broker.

kafka-python's own `list_partition_offsets` asks for metadata before every look-up; the coordinator
looks several times a second, so here leaders are remembered as long as the connection lives.
Knows requests and error codes; no rule about what the offsets are for.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from kafka import errors
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest

from coordinator.kafka_connection import Session
from coordinator.kafka_errors import forbidden_topic, unknown_partitions, unknown_topics
from coordinator.subscription import TopicPartition

Described: TypeAlias = Mapping[str, Any]
"""A topic as kafka-python's `describe_topics` gives it."""

Wanted: TypeAlias = Mapping[TopicPartition, int]
"""What to look up in each partition: a time in ms, or `offset_spec.LATEST` or `EARLIEST`."""

Offsets: TypeAlias = dict[TopicPartition, int]

Request: TypeAlias = Any
Response: TypeAlias = Any

_Topic = ListOffsetsRequest.ListOffsetsTopic
_Partition = _Topic.ListOffsetsPartition

NO_OFFSET = -1
"""The answer where no record is as late as the time."""

_NOT_THERE = (errors.UnknownTopicOrPartitionError.errno, errors.InvalidTopicError.errno)


def describe(session: Session, names: Iterable[str]) -> list[Described]:
    """Those topics as a broker knows them now; never creates one.

    Raises `UnknownTopicError` with the nearest names that exist.
    """
    found = session.admin.describe_topics(sorted(set(names)))
    if missing := [topic["name"] for topic in found if topic["error_code"] in _NOT_THERE]:
        raise unknown_topics(missing, session.admin.list_topics())
    return [_usable(session, topic) for topic in found]


def describe_matching(session: Session, regex: re.Pattern[str]) -> list[Described]:
    """The topics in whose name `regex` is found, without Kafka's internal ones; costs the metadata of all topics."""
    found = session.admin.describe_topics()
    return [_usable(session, t) for t in found if not t["is_internal"] and regex.search(t["name"])]


def look_up(session: Session, questions: Sequence[Wanted], isolation: IsolationLevel) -> list[Offsets]:
    """The offsets for each of `questions`, all asked at once; -1 where no record is as late as the time.

    Under READ_COMMITTED the end is the last stable offset, and no later record is seen.
    """
    _learn_leaders(session, {tp for wanted in questions for tp in wanted})
    requests = [list(_requests(wanted, session.leaders, isolation)) for wanted in questions]
    answers = session.manager.run(_answers, session.manager, requests)
    return [dict(found for answer in of_one for found in _offsets(answer)) for of_one in answers]


def _usable(session: Session, topic: Described) -> Described:
    _raise_on(topic["error_code"], topic["name"], None)
    for partition in topic["partitions"]:
        session.leaders[TopicPartition(topic["name"], partition["partition_index"])] = partition["leader_id"]
    return topic


def _learn_leaders(session: Session, partitions: set[TopicPartition]) -> None:
    unknown = partitions - session.leaders.keys()
    if unknown:
        describe(session, {tp.topic for tp in unknown})
    if missing := unknown - session.leaders.keys():
        raise unknown_partitions(missing)


def _requests(
    wanted: Wanted, leaders: Mapping[TopicPartition, int], isolation: IsolationLevel
) -> Iterator[tuple[int, Request]]:
    """One request for each broker that leads any of the partitions."""
    by_leader: dict[int, dict[str, list[object]]] = defaultdict(lambda: defaultdict(list))
    for tp, time in wanted.items():
        by_leader[leaders[tp]][tp.topic].append(_Partition(partition_index=tp.partition, timestamp=time))
    for leader, topics in by_leader.items():
        if leader < 0:
            raise errors.LeaderNotAvailableError(", ".join(topics))
        yield (
            leader,
            ListOffsetsRequest(
                isolation_level=isolation.value,
                topics=[_Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
                min_version=max(1, ListOffsetsRequest.min_version_for_isolation_level(isolation)),
            ),
        )


async def _answers(
    manager: KafkaConnectionManager, requests: Sequence[Sequence[tuple[int, Request]]]
) -> list[list[Response]]:
    """Runs in kafka-python's thread: everything is sent before the first answer is awaited."""
    sent = [[manager.send(request, node_id=leader) for leader, request in of_one] for of_one in requests]
    return [[await answer for answer in of_one] for of_one in sent]


def _offsets(answer: Response) -> Iterator[tuple[TopicPartition, int]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            _raise_on(partition.error_code, tp.topic, tp)
            yield tp, partition.offset


def _raise_on(code: int, topic: str, tp: TopicPartition | None) -> None:
    """Only what concerns one topic is told here; the rest is for `kafka_errors.explained`."""
    if code == errors.NoError.errno:
        return
    if code == errors.TopicAuthorizationFailedError.errno:
        raise forbidden_topic(topic)
    if tp is not None and code == errors.UnknownTopicOrPartitionError.errno:
        raise unknown_partitions({tp})
    raise errors.for_code(code)(str(tp or topic))
