"""Send records that fail to the topic `orders-dead`, which you create first; their keys continue."""

import os

from pyspark.sql import SparkSession

from spark_coop_source import OnError, map_records

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}


def amount(record):
    return {"key": record.key, "offset": record.offset, "amount": float(record.value)}


on_error = OnError(attempts=3, then="dead_letter", topic="orders-dead", retry_on=(OSError,))
function = map_records(amount, "key binary, offset long, amount double", on_error=on_error)
orders = spark.readStream.format("coop-kafka").options(
    **servers, **function, subscribe="orders", group="orders-to-amounts"
)
writer = orders.load().writeStream.format("parquet").option("checkpointLocation", "checkpoints/amounts")
writer.start("lake/amounts")

spark.streams.awaitAnyTermination()
