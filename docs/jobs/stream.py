"""Write a topic to Parquet, each key in order."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()

orders = (
    spark.readStream.format("coop-kafka")  # was: kafka
    .option("kafka.bootstrap.servers", os.environ["COOP_KAFKA"])
    .option("subscribe", "orders")
    .option("startingOffsets", "earliest")
    .option("group", "orders-to-lake")  # new
    .option("redisUrl", os.environ["COOP_REDIS"])  # new: Redis or Valkey keeps the positions
    .load()
)
# set a new checkpoint and folder: those of format("kafka") do not fit
orders.writeStream.format("parquet").option("checkpointLocation", "checkpoints/orders-to-lake").start("orders.parquet")

spark.streams.awaitAnyTermination()
