"""Read a fixed quarter of the keys. Three more programs read the others, in the same group."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}

quarter = {"group": "orders-to-quarters", "assign": '{"orders": {"0": [[0, 2305843009213693951]]}}'}
writer = spark.readStream.format("coop-kafka").options(**servers, **quarter).load().writeStream
writer.format("parquet").option("checkpointLocation", "checkpoints/quarter-1").start("lake/quarter-1")

spark.streams.awaitAnyTermination()
