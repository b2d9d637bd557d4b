"""The topic of the cluster's policies, on a real broker (rule: cluster-policies)."""

from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from coordinator.assignment.policies import cluster_policy, of_all_groups
from coordinator.errors import InvalidOptionError, KafkaUnavailableError, UnknownOptionError
from coordinator.kafka.connection import KafkaConnection
from coordinator.kafka.policy_topic import PolicyTopic
from coordinator.values.subscription import POLICIES, Pattern
from kafka_logs import kafka_log
from topics import Kafka, Record

ORDERS, BILLS = "accept.range.fetch:orders", "accept.range.fetch:bills"


@pytest.fixture
def policies(kafka: Kafka) -> Iterator[Kafka]:
    """A broker without the topic of policies, before the test and after it."""
    kafka.delete_topic(POLICIES)
    yield kafka
    kafka.delete_topic(POLICIES)


def test_the_last_value_of_each_policy_holds_and_an_empty_one_ends_it(policies: Kafka) -> None:
    with closing(kafka_log(policies.bootstrap)) as operator, closing(kafka_log(policies.bootstrap)) as member:
        assert member.cluster_policies() == ("", {}), "no topic: it is not created by a reader"
        assert POLICIES not in member.topics(Pattern(".*"))
        operator.set_cluster_policies({ORDERS: "false", BILLS: "true"})
        version, fields = member.cluster_policies()
        assert fields == {ORDERS: "false", BILLS: "true"}
        assert member.cluster_policies() == (version, fields), "read once"
        operator.set_cluster_policies({BILLS: "false", ORDERS: ""})
        later, fields = member.cluster_policies()
        assert fields == {BILLS: "false"}
        assert later.split()[0] == version.split()[0], "the topic id"
        assert int(later.split()[1]) == int(version.split()[1]) + 2
        assert POLICIES not in member.topics(Pattern(".*")), "no pattern reads it"


def test_a_topic_without_a_record_has_no_policy(policies: Kafka) -> None:
    """As after a kill between its creation and the first policy."""
    with closing(KafkaAdminClient(bootstrap_servers=policies.bootstrap)) as admin:
        admin.create_topics([NewTopic(POLICIES, 1, 1, topic_configs={"cleanup.policy": "compact"})])
        admin.wait_for_topics([POLICIES])
    with closing(kafka_log(policies.bootstrap)) as member:
        version, fields = member.cluster_policies()
        assert (version.split()[1], fields) == ("0", {})
        member.set_cluster_policies({ORDERS: "false"})
        assert member.cluster_policies()[1] == {ORDERS: "false"}


def test_strange_records_are_read_strictly_or_not_at_all(policies: Kafka) -> None:
    with closing(kafka_log(policies.bootstrap)) as log:
        log.set_cluster_policies({ORDERS: "true"})
        strange = (b"maybe", ORDERS.encode()), (b"false", b"\xff"), (b"false", b"")
        junk = [Record(value, key) for value, key in strange]
        policies.produce(POLICIES, junk)
        found = cluster_policy(log.cluster_policies()[1])
        assert (found.in_order("orders"), found.in_order("bills"), found.accept_individual_commit) == (
            True,
            False,
            True,
        )


def test_a_topic_that_would_lose_policies_is_refused(policies: Kafka) -> None:
    with closing(kafka_log(policies.bootstrap)) as log:
        log.set_cluster_policies({ORDERS: "true"})
        policies.configure(POLICIES, {"cleanup.policy": "delete"})
        with pytest.raises(InvalidOptionError, match=r"cleanup\.policy=delete.*set cleanup\.policy=compact"):
            log.set_cluster_policies({ORDERS: "false"})
        assert log.cluster_policies()[1] == {ORDERS: "true"}


class Scripted:
    """A connection with these answers."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)

    def ask(self, what: str, question: object, *, patient: bool) -> object:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_while_the_partition_is_away_the_policies_that_were_read_last_hold() -> None:
    away, place = KafkaUnavailableError("no leader"), ("id", 0, 2)
    answers = Scripted(away, place, {ORDERS: "false"}, away, place)
    topic = PolicyTopic({}, cast(KafkaConnection, answers))
    with pytest.raises(KafkaUnavailableError):
        topic.read()
    for _ in range(3):
        assert topic.read() == ("id 2", {ORDERS: "false"})


@pytest.mark.parametrize(
    ("topic", "name", "value", "error"),
    [
        (None, "accept.range.fetch", "false", UnknownOptionError),
        (None, ORDERS, "false", UnknownOptionError),
        ("orders", "accept.individual.commit", "false", UnknownOptionError),
        ("orders", ORDERS, "false", UnknownOptionError),
        ("orders", "accept.range.fetch", "no", InvalidOptionError),
    ],
)
def test_a_policy_of_another_level_is_refused(topic: str | None, name: str, value: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        of_all_groups({name: value}, topic)
    assert of_all_groups({"accept.individual.commit": "FALSE"}, None) == {"accept.individual.commit": "false"}
    assert of_all_groups({"accept.range.fetch": ""}, "orders") == {ORDERS: ""}
