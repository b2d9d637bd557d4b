"""Spark reads a topic that grows: each producer's records of a key stay in order (rule: growth-order)."""

from growing_topics import KEYS, Producer, topic_of_two
from streams import Stream
from topics import Kafka


def test_spark_reads_a_topic_that_doubled_in_order(stream: Stream, kafka: Kafka) -> None:
    topic = topic_of_two(kafka)
    stream.options |= {"subscribe": topic, "maxOffsetsPerTrigger": "40"}
    stream.run()
    producer = Producer("one", 2)
    kafka.produce(topic, producer.records(96))
    kafka.add_partitions(topic, 4)
    producer.partitions = 4
    kafka.produce(topic, producer.records(96))
    stream.run()
    arrived = sorted(stream.sink.received, key=lambda d: (d.batch, d.input_partition, d.place))
    numbers = {key: [int(str(d.value).split()[1]) for d in arrived if d.key == key] for key in map(str, range(KEYS))}
    assert numbers == {str(key): list(range(key, 192, KEYS)) for key in range(KEYS)}
