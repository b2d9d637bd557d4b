"""The mirror as Kafka's own tool shows it: `kafka-consumer-groups --describe`, the Java class itself."""

from coordinator.values.subscription import TopicPartition
from group_services import Group, run, subscribed
from kafka_groups import described
from streams import keyed


def test_kafkas_own_tool_shows_the_stable_offset_and_the_lag(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    (row,) = described(members.kafka.bootstrap, members.name)
    assert row[:6] == [members.name, tp.topic, "0", "5", "8", "3"]
