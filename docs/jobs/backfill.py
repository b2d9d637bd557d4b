"""Read what is there in batches, then stop. The next run continues at its end."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}

backfill = {"group": "orders-to-backfill", "subscribe": "orders", "maxOffsetsPerTrigger": "100000"}
orders = spark.readStream.format("coop-kafka").options(**servers, **backfill).load()
writer = orders.writeStream.format("parquet").option("checkpointLocation", "checkpoints/backfill")
writer.trigger(availableNow=True).start("lake/backfill").awaitTermination()
