"""The job of a driver that joins two topics by Spark's own join of two streams: a `load()` for each topic.

Arguments as for `job`; the option `subscribe` names the two topics. Its batches are lists of pairs.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from drivers.joining_job import append_pairs


def main() -> None:
    """Run until the query fails or is killed."""
    folder, options, pace = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    spark = SparkSession.builder.appName(folder.name).config("spark.sql.shuffle.partitions", 2).getOrCreate()

    def side(topic: str, name: str) -> DataFrame:
        rows = spark.readStream.format("coop-kafka").options(**options | {"subscribe": topic}).load()
        return rows.selectExpr("cast(key as string) as key", f"offset as {name}")

    left, right = options["subscribe"].split(",")
    rows = side(left, "left").join(side(right, "right"), "key")
    writer = rows.writeStream.foreachBatch(lambda found, batch: append_pairs(found, batch, folder, options))
    query = writer.trigger(processingTime=pace).option("checkpointLocation", str(folder / "checkpoint")).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
