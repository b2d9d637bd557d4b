"""Ask a service about the records of many keys at once, each key in order. A key that fails is quarantined."""

import os

import httpx
from pyspark.sql import SparkSession

from spark_coop_source import OnError, map_keys

spark = SparkSession.builder.getOrCreate()
servers = {
    "kafka.bootstrap.servers": os.environ["COOP_KAFKA"],
    "redisUrl": os.environ["COOP_REDIS"],
    "startingOffsets": "earliest",  # applies until the group has positions
}


async def scored(key, records):
    async with httpx.AsyncClient() as client:
        answer = await client.post("http://scores:8080/", json=[record.value.decode() for record in records])
    answer.raise_for_status()
    return [
        {"key": key, "partition": record.partition, "offset": record.offset, "score": score}
        for record, score in zip(records, answer.json(), strict=True)
    ]


schema = "key binary, partition int, offset long, score double"
function = map_keys(scored, schema, concurrency=200, timeout="5s", on_error=OnError(attempts=10, then="park"))
scores = spark.readStream.format("coop-kafka").options(
    **servers, **function, subscribe="orders", group="orders-to-scores"
)
writer = scores.load().writeStream.format("parquet").option("checkpointLocation", "checkpoints/scores")
writer.start("lake/scores")

spark.streams.awaitAnyTermination()
