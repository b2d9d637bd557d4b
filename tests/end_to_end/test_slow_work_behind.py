"""Slow work behind the read, in `mapInArrow`: a slow key is found by the time of whole batches."""

import random
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from streams import Sink, Stream, sent
from topics import Record
from verdict import judge, require_good

RECORDS, SLOW, SLOW_MS = 20_000, "key-7", 50


class Worked(Sink):
    """Collects batches once each of their records is worked on."""

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                slow = batch.column("key").to_pylist().count(SLOW.encode())
                time.sleep((len(batch) - slow + SLOW_MS * slow) / 1_000)
                yield batch

        records = rows.select("partition", "offset", "key", "value")
        super().__call__(records.mapInArrow(work, records.schema), batch_id)


@pytest.mark.long
def test_a_slow_key_is_left_behind_alone(stream: Stream, kafka: Any) -> None:
    """It has two thirds of all work: 40 s, in one slot at a time. The others have 19 s, on four slots.

    If all keys kept in step, the last record of each would come in the same batch.
    """
    names = [b"key-%d" % i for i in range(25)]
    chosen = random.Random(7).choices(names, k=RECORDS)
    records = [Record(b"%d" % i, name) for i, name in enumerate(chosen)]
    kafka.produce(stream.options["subscribe"], records)
    stream.sink = Worked()
    stream.run(batchTimeBudget="3s", slots="4")
    require_good(judge(sent(records), stream.sink.received))
    others_done = max(delivery.batch for delivery in stream.sink.received if delivery.key != SLOW)
    slow = [delivery.batch <= others_done for delivery in stream.sink.received if delivery.key == SLOW]
    assert sum(slow) <= 0.9 * len(slow)
