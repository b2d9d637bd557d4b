"""The fields of a member that its options choose."""

from typing import Any

from spark_coop_source.driver.wiring import member_fields
from spark_coop_source.options.options import validate

STREAM = {
    "kafka.bootstrap.servers": "broker:9092",
    "subscribe": "orders",
    "group": "to-lake",
    "redis.url": "redis://redis:6379",
}


def fields(**more: Any) -> dict[str, str]:
    return member_fields(validate({**STREAM, **more}, streaming=True))


def test_without_a_choice_there_are_none() -> None:
    assert fields() == {}


def test_rack_labels_and_the_topic_of_dead_letters() -> None:
    function = {"map.in.read": "operator:itemgetter", "map.in.read.schema": "k binary", "map.in.read.per.key": "true"}
    policy = {"map.in.read.on.error": '{"then": "dead_letter", "topic": "orders-dead"}'}
    found = fields(**function, **policy, **{"kafka.client.rack": "r1", "member.labels": "app=billing"})
    assert found == {"rack": "r1", "dead_letters": "orders-dead", "label.app": "billing"}
