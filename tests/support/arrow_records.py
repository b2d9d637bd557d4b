"""Records as `read` sees them, without a broker: Arrow batches of one partition with the columns of Spark's source."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from coordinator.progress.slices import Slice
from coordinator.values.key_hash import hash_record
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.arrow_output.record_batch import to_arrow
from spark_coop_source.arrow_output.schema import PLAIN
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HEADERS

ALL = Slice(TopicPartition("orders", 0), WHOLE, OffsetRange(0, 1_000_000))


def batch(keys: Sequence[bytes | None], first: int = 0, value: bytes = b"v", of: Slice = ALL) -> pa.RecordBatch:
    """Records with these keys, from offset `first` on."""
    count = len(keys)
    chunk = Chunk(
        keys=ByteColumn.of(keys),
        values=ByteColumn.of([value] * count),
        offsets=np.arange(first, first + count),
        timestamps_ms=np.zeros(count, np.int64),
        timestamp_types=np.zeros(count, np.int32),
        headers=pa.nulls(count, HEADERS),
    )
    return to_arrow(of.topic_partition, chunk, None, PLAIN)


def points(batches: Iterable[pa.RecordBatch]) -> list[tuple[bytes | None, int]]:
    """Key and offset of each record, in order."""
    return [
        (key, offset)
        for each in batches
        for key, offset in zip(each.column("key").to_pylist(), each.column("offset").to_pylist(), strict=True)
    ]


def only(key: bytes) -> HashRange:
    """The one hash of a key."""
    return HashRange(hash_record(key, 0), hash_record(key, 0))
