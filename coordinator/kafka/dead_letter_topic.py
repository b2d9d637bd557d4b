"""Checks the dead-letter topic before a query reads its first record. Driver side.

Opens a connection of its own and closes it. Knows the subscription of the query; writes nothing.
"""

import re
from collections.abc import Mapping

from coordinator.errors import ConflictingOptionsError
from coordinator.errors.quoting import quoted
from coordinator.kafka.writable import check_writable
from coordinator.values.subscription import Assigned, Pattern, Subscription


def check_dead_letter_topic(kafka: Mapping[str, object], topic: str, subscription: Subscription) -> None:
    """Raise an error unless the topic exists, the user may write to it, and the query does not read it.

    `kafka`: the Kafka arguments of the query.

    Raises:
        ConflictingOptionsError: the query would read its own dead letters.
        UnknownTopicError: Kafka has no such topic.
        KafkaAccessError: the user may not write to it. Brokers before 2.3 report that at the first write.
        LogError: Kafka does not answer.
    """
    _check_not_read(topic, subscription)
    check_writable(kafka, topic)


def _check_not_read(topic: str, subscription: Subscription) -> None:
    match subscription:
        case Pattern(regex):
            option, read = "subscribePattern", bool(re.search(regex, topic))
        case Assigned(partitions):
            option, read = "assign", any(tp.topic == topic for tp in partitions)
        case _:
            option, read = "subscribe", topic in subscription.names
    if read:
        raise ConflictingOptionsError(
            f"the query reads its own dead-letter topic {quoted(topic)}: {option} means it too",
            f"change {option} so that it does not mean {quoted(topic)}, or write dead letters to another topic",
        )
