"""Records as a task reads them, and a task that writes them as dead letters."""

import pyarrow as pa

from spark_coop_source.dead_letters.dead_letters import DeadLetters
from spark_coop_source.decode.header_column import HEADERS

T0 = 1_700_000_000_000
TYPES = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", HEADERS),
    ]
)


def send(topic: str, kafka: dict[str, object], *rows: pa.RecordBatch) -> object:
    """A task with these dead letters; returns its producer."""
    with DeadLetters(topic, kafka, "g") as letters:
        for each in rows:
            letters.send(each, "E", "", 1)
        return letters._producer


def row(offset: int = 17, **fields: object) -> pa.RecordBatch:
    """One record as a task reads it."""
    sound = {"key": b"k", "value": b"v", "topic": "orders", "partition": 3, "timestamp": T0 * 1_000}
    return pa.RecordBatch.from_pylist([{"headers": None, **sound, "offset": offset, **fields}], schema=TYPES)
