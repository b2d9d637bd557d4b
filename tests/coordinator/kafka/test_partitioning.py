"""Keys go where Kafka's own tools put them."""

import pytest

from coordinator.kafka.partitioning import partition_for

JAVA = {
    b"21": -973_932_308,
    b"foobar": -790_332_482,
    b"a-little-bit-long-string": -985_981_536,
    b"a-little-bit-longer-string": -1_486_304_829,
    b"abc": 479_470_107,
}
"""Keys with their murmur2 hashes, from Kafka's own test of `Utils.murmur2`."""


@pytest.mark.parametrize(("key", "murmur2"), JAVA.items())
def test_a_key_is_in_the_partition_that_java_chooses(key: bytes, murmur2: int) -> None:
    assert partition_for(key, 1_000, keyless=7) == (murmur2 & 0x7FFFFFFF) % 1_000


def test_a_record_without_a_key_is_in_the_partition_of_its_number() -> None:
    assert [partition_for(None, 3, keyless=number) for number in range(5)] == [0, 1, 2, 0, 1]
