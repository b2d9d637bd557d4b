"""Read a whole topic once: no group, no Redis, no checkpoint."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()

servers = {"kafka.bootstrap.servers": os.environ["COOP_KAFKA"]}
everything = spark.read.format("coop-kafka").options(**servers, subscribe="orders").load()
everything.groupBy("partition").count().show()
