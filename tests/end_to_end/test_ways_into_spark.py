"""SQL, Spark Connect and pipelines, by the code of docs/getting-started.md as it stands there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyarrow import parquet
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import processes
from broker_jars import ROOT
from coordinator.errors import UnknownOptionError
from documented import WAY, Place, blocks, commands
from streams import DEADLINE_S, keyed
from topics import Kafka

PAGE = "docs/getting-started.md"
STATEMENTS = [each for each in blocks(PAGE, "sql")[0].split(";") if each.strip()]
STREAM_VIEW, CONNECT, PIPELINE = (code for code in blocks(PAGE, "python") if WAY.search(code))
BIN = Path(pyspark.__file__).parent / "bin"
BEGIN = """
import os, sys, time
import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from spark_coop_source import ProgressListener, error_of, map_batches

url, topic, group = sys.argv[1:]
servers = {"kafka.bootstrap.servers": os.environ["COOP_KAFKA"], "subscribe": topic, "startingOffsets": "earliest"}
in_group = servers | {"redisUrl": os.environ["COOP_REDIS"]}

def started(client, name, options, **trigger):
    orders = client.readStream.format("coop-kafka").options(**options).load()
    writer = orders.writeStream.queryName(name).format("memory")
    return (writer.trigger(**trigger) if trigger else writer).start()
"""
WHAT_WORKS = f"""{BEGIN}
def doubled(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({{"twice": [2 * each for each in batch.column("offset").to_pylist()]}})

client = SparkSession.builder.remote(url).getOrCreate()
heard = []
client.streams.addListener(ProgressListener(heard.append))
print("batch", client.read.format("coop-kafka").options(**servers).load().count())
texts = ", ".join(f"`{{name}}` '{{value}}'" for name, value in servers.items())
client.sql(f"CREATE TEMPORARY VIEW orders USING `coop-kafka` OPTIONS ({{texts}})")
print("view", client.sql("SELECT count(*) FROM orders").first()[0])
function = map_batches(doubled, "twice long")
started(client, "twice", in_group | function | {{"group": f"{{group}}-twice"}}, availableNow=True).awaitTermination()
print("function", client.sql("SELECT sum(twice) FROM twice").first()[0])
deadline = time.monotonic() + 60
while not heard and time.monotonic() < deadline:
    time.sleep(0.1)
print("progress", {{progress.name for progress in heard}})
client.stop()
"""
TWO_CLIENTS = f"""{BEGIN}
clients = [SparkSession.builder.remote(url).create() for _ in range(2)]
for more in ({{}}, {{"allowSeveralQueries": "true"}}):
    options = in_group | more | {{"group": f"{{group}}-{{len(more)}}"}}
    first = started(clients[0], "first", options)
    first.processAllAvailable()
    try:
        second = started(clients[1], "second", options)
        second.processAllAvailable()
        print("both")
        second.stop()
    except StreamingQueryException as raised:
        print(error_of(raised).name)
    first.stop()
for client in clients:
    client.stop()
"""


def test_a_view_in_sql_is_the_topic_as_a_batch(spark: SparkSession, place: Place) -> None:
    create, select = (place.put_in(each).replace("'orders'", f"'{place.topic}'") for each in STATEMENTS)
    spark.sql(create)
    try:
        assert [tuple(row) for row in spark.sql(select).collect()] == [(0, 50)]
        with pytest.raises(AnalysisException, match=UnknownOptionError.name) as refused:
            spark.sql(create.replace("TEMPORARY VIEW orders", "TABLE orders_table"))
        assert "use CREATE TEMPORARY VIEW" in str(refused.value)
    finally:
        spark.catalog.dropTempView("orders")


def test_a_stream_can_be_read_in_sql(spark: SparkSession, place: Place, group: str) -> None:
    names: dict[str, object] = {"spark": spark}
    try:
        exec(place.put_in(STREAM_VIEW).replace("orders-by-sql", group), names)  # it is our own page
        rows = names["texts"]
        assert isinstance(rows, DataFrame)
        assert rows.columns == ["customer", "text"]
        assert len(place.drained(rows, "texts")) == 50
    finally:
        spark.catalog.dropTempView("live_orders")


@pytest.fixture(scope="module")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server of its own."""
    folder = tmp_path_factory.mktemp("connect")
    command = [str(BIN / "spark-submit"), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    command += ["--conf", "spark.connect.grpc.binding.port=0"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "log"
    server = processes.start(command, log, folder=folder)
    started = re.compile(r"Spark Connect server started at: .*:(\d+)")
    try:
        processes.wait_until(lambda: started.search(log.read_text()) is not None, DEADLINE_S, server, log)
        found = started.search(log.read_text())
        assert found
        yield f"sc://127.0.0.1:{found[1]}"
    finally:
        processes.stop(server)


def client(program: str, place: Place, *arguments: str) -> str:
    """What a program of a Connect client prints."""
    (place.folder / "client.py").write_text(program)
    return place.run(f"python client.py {' '.join(arguments)}")


@pytest.mark.long
def test_a_client_of_spark_connect_needs_nothing_of_ours(connect_url: str, place: Place, group: str) -> None:
    here = place.put_in(CONNECT).replace("sc://localhost:15002", connect_url).replace("orders-by-connect", group)
    loaded = "\nimport sys; print({'spark_coop_source', 'coordinator'} & {*sys.modules})\n"
    printed = client(here + loaded, place)
    assert printed.split("\n")[-3:] == ["50", "set()", ""]


@pytest.mark.long
def test_what_the_page_says_works_through_connect(connect_url: str, place: Place, group: str) -> None:
    printed = client(WHAT_WORKS, place, connect_url, place.topic, group).splitlines()
    assert printed[-4:] == ["batch 50", "view 50", f"function {2 * sum(range(50))}", "progress {'twice'}"]


@pytest.mark.long
def test_two_clients_of_a_server_are_one_application(connect_url: str, place: Place, group: str) -> None:
    assert client(TWO_CLIENTS, place, connect_url, place.topic, group).splitlines()[-2:] == ["GROUP_BUSY", "both"]


@pytest.mark.long
def test_a_pipeline_has_a_streaming_table_of_a_topic(kafka: Kafka, place: Place, group: str) -> None:
    (spec,) = blocks(PAGE, "yaml")
    (command,) = (each for each in commands(PAGE) if each.startswith("spark-pipelines "))
    (place.folder / "spark-pipeline.yml").write_text(
        spec.replace("/data/orders-pipeline", str(place.folder / "storage"))
    )
    (place.folder / "transformations").mkdir()
    code = PIPELINE.replace('"subscribe", "orders"', f'"subscribe", "{place.topic}"').replace("orders-pipeline", group)
    (place.folder / "transformations" / "orders.py").write_text(code)
    kept, refresh = place.folder / "spark-warehouse" / "orders_of_partitions", " --full-refresh-all"
    for number, (flag, records) in enumerate((("", 50), ("", 70), (refresh, 20), (refresh, 110))):
        if number == 3:
            (reset,) = re.findall(r"`(coop-kafka reset-offsets .*)`", (ROOT / PAGE).read_text())
            place.run(reset.replace("orders-pipeline", group))
        place.run(command + flag, SPARK_TESTING="1")  # its Connect server takes a free port
        (part,) = kept.glob("*.parquet")
        assert parquet.read_table(part).to_pylist() == [{"partition": 0, "count": records}]
        kafka.produce(place.topic, keyed(20, 50 + 20 * number))
