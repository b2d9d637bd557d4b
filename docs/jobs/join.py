"""Join two topics by key, once, without a shuffle."""

import os

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_coop_source import map_batches

spark = SparkSession.builder.getOrCreate()


def paid(batches):
    orders, payments = [], {}
    for batch in batches:  # batches of both topics, each of one topic and one partition
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        if batch.column("topic")[0].as_py() == "orders":
            orders += zip(keys, values, strict=True)
        else:
            for key, value in zip(keys, values, strict=True):
                payments.setdefault(key, []).append(value)
    rows = [{"key": k, "bought": o, "paid": p} for k, o in orders for p in payments.get(k, ())]
    yield pa.RecordBatch.from_pylist(rows, pa.schema([(name, pa.binary()) for name in ("key", "bought", "paid")]))


joined = (
    spark.read.format("coop-kafka")
    .option("kafka.bootstrap.servers", os.environ["COOP_KAFKA"])
    .option("subscribe", "orders,payments")
    .option("copartition", "orders,payments")
    .options(**map_batches(paid, "key binary, bought binary, paid binary"))
    .load()
)
joined.write.mode("overwrite").parquet("lake/paid")
