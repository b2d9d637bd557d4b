"""Commit each row as soon as its work is done: after a crash, another application reads only the others."""

import os

from pyspark.sql import SparkSession

from spark_coop_source import GroupCommits

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}

commits = GroupCommits.of_group(servers["redisUrl"], "orders-to-rows")


def work(batch, batch_id):
    for row in batch.toLocalIterator():
        print(row.value.decode())  # here your work
        commits.acknowledge(row.acknowledgement)  # a token, or many


rows = {"subscribe": "orders", "group": "orders-to-rows", "columns": "value,acknowledgement"}
writer = spark.readStream.format("coop-kafka").options(**servers, **rows).load().writeStream.foreachBatch(work)
writer.option("checkpointLocation", "checkpoints/rows").start()

spark.streams.awaitAnyTermination()
