"""conf/keda in a real Prometheus: the replicas that KEDA wants while a group reads, is away, and has read all."""

import time
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker_jars import ROOT
from exporters import Exporter, exporter
from prometheus import NO_PROMETHEUS, PROMETHEUS, PROMTOOL, Prometheus, prometheus
from spark_coop_source import map_records
from streams import Stream, eventually, keyed
from topics import Kafka

OBJECT = yaml.safe_load((ROOT / "conf" / "keda" / "scaled-object.yaml").read_text(encoding="utf-8"))
(TRIGGER,) = OBJECT["spec"]["triggers"]
RECORDS, DRAIN_S = 4_000, 2


def work() -> dict[str, str]:
    """The options of a function that takes its time; local, so that workers get it by value."""

    def slow(record: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.01)
        return {"offset": record["offset"]}

    return {**map_records(slow, "offset long")}


def replicas(server: Prometheus, group: str) -> int:
    """The replicas that KEDA's scaler for Prometheus asks for: by an average value of each, none while inactive."""
    (found,) = server.wait_for(TRIGGER["metadata"]["query"].replace('"orders"', f'"{group}"'))
    value = float(found["value"][1])
    active = value > float(TRIGGER["metadata"]["activationThreshold"])
    wanted = ceil(value / float(TRIGGER["metadata"]["threshold"])) if active else OBJECT["spec"]["minReplicaCount"]
    return min(int(OBJECT["spec"]["maxReplicaCount"]), int(wanted))


@pytest.mark.long
@pytest.mark.skipif(not (PROMTOOL and PROMETHEUS), reason=NO_PROMETHEUS)
def test_replicas_beyond_the_partition_count_and_never_none_while_work_is_left(
    kafka: Kafka, stream: Stream, group: str, redis_url: str, tmp_path: Path
) -> None:
    """40 s of work are to be done in 2 s: by several applications of four slots, and one partition."""
    kafka.produce(stream.options["subscribe"], keyed(RECORDS))
    options = {**stream.options, **work(), "batchTimeBudget": "2s", "sessionTimeout": "6s"}
    rows = stream.spark.readStream.format("coop-kafka").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(stream.checkpoint))
    with (
        exporter(redis_url, kafka.bootstrap, "--drain-within", str(DRAIN_S)) as running,
        prometheus(tmp_path, running.port) as server,
    ):
        query = writer.start()
        try:
            eventually(lambda: replicas(server, group) > 1, "more applications than partitions")
        finally:
            query.stop()
        eventually(lambda: working(running, group) == 0, "no application is there")
        eventually(lambda: replicas(server, group) == 1, "one, for records are unread")
        writer.trigger(availableNow=True).start().awaitTermination()
        eventually(lambda: working(running, group) == 0 and replicas(server, group) == 0, "none: all is read")


def working(running: Exporter, group: str) -> float | None:
    return running.scrape()("coop_kafka_consumer_group_members", group_id=group)
