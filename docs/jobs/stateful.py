"""Count the records of each key, in one application: state does not move with the keys."""

import os
import sqlite3

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}


def replace(rows, batch_id):
    database = sqlite3.connect("counts.db")
    with database:
        database.execute("CREATE TABLE IF NOT EXISTS counts (key PRIMARY KEY, orders)")
        database.executemany("REPLACE INTO counts VALUES (?, ?)", rows.collect())
    database.close()


orders = spark.readStream.format("coop-kafka").options(**servers, subscribe="orders", group="orders-to-counts")
counts = orders.option("sharing", "never").load().groupBy("key").count()
writer = counts.writeStream.outputMode("update").foreachBatch(replace)
writer.option("checkpointLocation", "checkpoints/counts").start()

spark.streams.awaitAnyTermination()
