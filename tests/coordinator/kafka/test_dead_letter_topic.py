"""The dead-letter topic is checked when a query starts: that it exists, that it can be written, and is not read."""

from collections.abc import Mapping

import pytest
from kafka.admin import ACLOperation, ResourceType

from coordinator.errors import (
    ConflictingOptionsError,
    CoopKafkaError,
    KafkaAccessError,
    KafkaUnavailableError,
    UnknownTopicError,
)
from coordinator.kafka import writable
from coordinator.kafka.dead_letter_topic import check_dead_letter_topic
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, Pattern, Subscription, TopicPartition, Topics
from guarded_broker import GuardedBroker
from topics import Kafka
from written_records import consumed

ORDERS = Topics(("orders",))
NOWHERE: Mapping[str, object] = {"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 300}


def refusal(kafka: Mapping[str, object], topic: str, kind: type[CoopKafkaError]) -> CoopKafkaError:
    with pytest.raises(kind) as error:
        check_dead_letter_topic(kafka, topic, ORDERS)
    assert "wonder-land" not in str(error.value)
    return error.value


def test_a_topic_that_exists_is_accepted_and_nothing_is_written(kafka: Kafka) -> None:
    topic = kafka.create_topic("dead")
    check_dead_letter_topic({"bootstrap_servers": kafka.bootstrap}, topic, ORDERS)
    assert consumed(kafka.bootstrap, topic) == []


@pytest.mark.usefixtures("hasty")
def test_a_topic_that_does_not_exist_is_named_and_not_created(kafka: Kafka) -> None:
    settings = {"bootstrap_servers": kafka.bootstrap, "allow_auto_create_topics": True}
    error = refusal(settings, "orders-daed", UnknownTopicError)
    assert "no topic 'orders-daed'" in error.what
    assert error.remedy == "create topic 'orders-daed', or correct its name"


@pytest.mark.usefixtures("hasty")
def test_a_name_that_no_topic_can_have_is_named(kafka: Kafka) -> None:
    assert "'dead letters!'" in refusal({"bootstrap_servers": kafka.bootstrap}, "dead letters!", UnknownTopicError).what


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown topic is asked for again at once."""
    monkeypatch.setattr(writable, "RETRY_INTERVAL_MS", 10)


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_nobody_answers__a_named_error() -> None:
    assert "127.0.0.1:1" in refusal(NOWHERE, "dead", KafkaUnavailableError).what


@pytest.mark.parametrize("rights", [(), (ACLOperation.READ, ACLOperation.DESCRIBE)], ids=["none", "to read only"])
def test_a_user_without_the_right_to_write_is_told_topic_right_and_remedy(
    guarded: GuardedBroker, rights: tuple[ACLOperation, ...]
) -> None:
    topic = guarded.kafka.create_topic("dead")
    if rights:
        guarded.grant(ResourceType.TOPIC, topic, *rights)
    error = refusal(guarded.settings, topic, KafkaAccessError)
    assert error.what == f"Kafka does not permit this user to write to topic '{topic}'"
    assert error.remedy.startswith(f"grant this user WRITE and DESCRIBE on topic '{topic}'")


@pytest.mark.parametrize("right", [ACLOperation.WRITE, ACLOperation.ALL])
def test_a_user_who_may_write_is_accepted_over_tls_and_a_login(guarded: GuardedBroker, right: ACLOperation) -> None:
    topic = guarded.kafka.create_topic("dead")
    guarded.grant(ResourceType.TOPIC, topic, right)
    check_dead_letter_topic(guarded.settings, topic, ORDERS)


READ: Mapping[str, tuple[Subscription, str]] = {
    "by name": (Topics(("orders", "orders-dead")), "subscribe"),
    "by a pattern": (Pattern("orders"), "subscribePattern"),
    "by an assigned partition": (Assigned({TopicPartition("orders-dead", 1): (WHOLE,)}), "assign"),
}


@pytest.mark.parametrize(("subscription", "option"), READ.values(), ids=READ)
def test_a_query_that_would_read_its_own_dead_letters_is_refused_without_kafka(
    subscription: Subscription, option: str
) -> None:
    with pytest.raises(ConflictingOptionsError, match=f"{option} means it too"):
        check_dead_letter_topic(NOWHERE, "orders-dead", subscription)


@pytest.mark.parametrize(
    "subscription", [Pattern("^orders$"), Topics(("orders",)), Assigned({TopicPartition("orders", 0): (WHOLE,)})]
)
def test_a_topic_that_the_query_does_not_read_is_accepted(kafka: Kafka, subscription: Subscription) -> None:
    topic = kafka.create_topic("orders-dead")
    check_dead_letter_topic({"bootstrap_servers": kafka.bootstrap}, topic, subscription)
