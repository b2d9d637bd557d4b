"""Offsets and key hashes of a log, from real Kafka: each record once, holes and compression included."""

import subprocess
import sys

import numpy as np
import pytest

from broker_jars import ROOT
from coordinator.tools.audit.columns import LogColumns, joined
from coordinator.values.key_hash import hash_record
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.key_columns import key_columns
from streams import keyed
from topics import Kafka
from written_records import consumed


def read(kafka: Kafka, topic: str, first: int, until: int) -> LogColumns:
    arguments = {"bootstrap_servers": kafka.bootstrap, "isolation_level": "read_committed"}
    return joined([*key_columns(arguments, TopicPartition(topic, 0), OffsetRange(first, until))])


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_offset_hash_and_key_of_each_record(kafka: Kafka, compression: str | None) -> None:
    topic = kafka.create_topic("columns")
    kafka.produce_committed(topic, keyed(500), compression=compression)
    kafka.produce_aborted(topic, keyed(20), compression=compression)
    kafka.produce_committed(topic, keyed(100), compression=compression)
    expected = consumed(kafka.bootstrap, topic, isolation="read_committed")
    found = read(kafka, topic, 0, 623)
    assert found.offsets.tolist() == [r.offset for r in expected]
    assert found.hashes.tolist() == [hash_record(r.key, r.offset) for r in expected]
    assert found.keyed.tolist() == [r.key is not None for r in expected]


def test_only_the_stretch(kafka: Kafka) -> None:
    topic = kafka.create_topic("columns")
    kafka.produce(topic, keyed(100))
    assert np.array_equal(read(kafka, topic, 30, 60).offsets, np.arange(30, 60))


def test_it_needs_no_pyspark() -> None:
    loaded = "import spark_coop_source.key_columns, sys; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
