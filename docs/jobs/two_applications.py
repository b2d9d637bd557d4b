"""Share a topic between two applications: run it with APP=a, and again, anywhere, with APP=b."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}

app = os.environ["APP"]  # "a" in one application, "b" in the other
group = {"group": "orders-to-both", "memberLabels": f"app={app}"}
orders = spark.readStream.format("coop-kafka").options(**servers, **group, subscribe="orders").load()
writer = orders.writeStream.queryName(f"orders-{app}").format("parquet")
writer.option("checkpointLocation", f"checkpoints/both-{app}").start(f"lake/both-{app}")

spark.streams.awaitAnyTermination()
