"""A Spark job to copy: read a topic in key order with many tasks, and write a folder for each batch.

    spark-submit --master 'local[4]' flights_job.py --bootstrap HOST:PORT --topic flights \
        --group flights-to-parquet --redis redis://HOST:6379/0 --output OUT --checkpoint CHECKPOINT

Needs this project (`pip install .`) in the interpreter that PYSPARK_PYTHON names. The name of the folder is the query
id and the batch id. The job overwrites the folder, so a batch that is replayed after a crash does not appear twice. The
batch id alone is not enough, because batch ids begin at 0 with each checkpoint.
"""

import argparse
import os
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, monotonically_increasing_id, spark_partition_id

ROW_NUMBER_BITS = 33  # the lower part of monotonically_increasing_id is the row's place in its input partition


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description="Write a Kafka topic to Parquet, each key in order.")
    parser.add_argument("--bootstrap", required=True, help="Kafka, HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True, help="name under which Redis keeps the positions")
    redis = os.environ.get("COOP_REDIS")  # better here than on the command line, if it has a password
    parser.add_argument("--redis", default=redis, required=not redis, help="redis://HOST:PORT/DATABASE, or COOP_REDIS")
    parser.add_argument("--output", required=True, help="folder to write to")
    parser.add_argument("--checkpoint", required=True, help="folder of Spark's checkpoint")
    parser.add_argument("--slots", type=int, default=4, help="tasks at the same time")
    parser.add_argument("--per-batch", type=int, default=50_000, help="records in a batch, about")
    parser.add_argument("--available-now", action="store_true", help="stop at the end of the topic")
    return parser.parse_args()


def read(spark: SparkSession, wanted: argparse.Namespace) -> DataFrame:
    """The topic as a stream of rows in the schema of Spark's own Kafka source."""
    return (
        spark.readStream.format("coop-kafka")
        .option("kafka.bootstrap.servers", wanted.bootstrap)
        .option("subscribe", wanted.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", wanted.per_batch)
        .option("group", wanted.group)
        .option("redisUrl", wanted.redis)
        .option("slots", wanted.slots)
        .load()
    )


def write_batch(rows: DataFrame, batch_id: int, output: str) -> None:
    """Write one batch, each row with the input partition that read it and its place in there."""
    query_id = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    place = monotonically_increasing_id().bitwiseAND(lit((1 << ROW_NUMBER_BITS) - 1))
    rows.select(
        spark_partition_id().alias("input_partition"),
        place.alias("place"),
        col("partition"),
        col("offset"),
        col("key").cast("string").alias("key"),
        col("value").cast("string").alias("value"),
    ).write.mode("overwrite").parquet(f"{output}/query={query_id}/batch={batch_id}")


def main() -> None:
    """Run until the end of the topic, or without end."""
    wanted = arguments()
    spark = SparkSession.builder.appName("flights").getOrCreate()
    writer = read(spark, wanted).writeStream.queryName(wanted.group).option("checkpointLocation", wanted.checkpoint)
    writer = writer.foreachBatch(partial(write_batch, output=wanted.output))
    if wanted.available_now:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
