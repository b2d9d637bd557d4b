"""Reads offsets and key hashes of a log, column by column, for an audit. Values are never copied.

Combines `fetch` and `select`. Runs in the process that audits; knows nothing of groups, sinks or Spark.
"""

from collections.abc import Callable, Generator, Iterator, Mapping

from coordinator.tools.audit.columns import LogColumns
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.sizes import DecodeLimits
from spark_coop_source.fetch.ahead import ahead
from spark_coop_source.fetch.consumers import MOST_UNFILTERED, answer_bytes, borrowed, close_idle, record_bytes
from spark_coop_source.fetch.fetch import FetchSettings, fetch
from spark_coop_source.select.hashing import hash_records

WAIT_MS = 120_000
"""Longest wait for the next records, as a query has it by default (`kafkaConsumer.pollTimeoutMs`)."""

MOST_UNCOMPRESSED = 1024 * 1024 * 1024
"""Most bytes of a compressed record batch, as a query has it by default."""


def key_columns(kafka: Mapping[str, object], tp: TopicPartition, stretch: OffsetRange) -> Iterator[LogColumns]:
    """The records of a stretch that Kafka still has, in offset order; raises the errors of `fetch`.

    `kafka` are the arguments of the client. Its isolation level decides whether records of aborted transactions count.
    """
    answer = answer_bytes(MOST_UNFILTERED)
    settings = FetchSettings(
        kafka, WAIT_MS, False, answer, DecodeLimits(MOST_UNCOMPRESSED, record_bytes(MOST_UNFILTERED))
    )
    try:
        with borrowed(kafka, [tp]) as consumer:

            def fetched(stopped: Callable[[], bool]) -> Generator[Chunk, None, None]:
                yield from fetch(consumer, tp, stretch, settings, stopped)

            for chunk in ahead(fetched):
                yield LogColumns(chunk.offsets, hash_records(chunk.keys, chunk.offsets), ~chunk.keys.nulls)
    finally:
        close_idle()
