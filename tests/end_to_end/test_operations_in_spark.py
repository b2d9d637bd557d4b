"""An operator's work as a Spark query meets it: a checkpoint of before a reset, and a listener beside the driver."""

from pathlib import Path
from urllib.parse import urlsplit

from command_runs import Run
from streams import Stream, eventually, keyed, stable
from topics import Kafka

LISTENER = """
from coordinator.assignment.ownership_listener import OwnershipListener


class Recorder(OwnershipListener):
    def on_assigned(self, ranges):
        self._write("assigned", ranges)

    def on_revoked(self, ranges):
        self._write("revoked", ranges)

    def _write(self, what, ranges):
        with open({file!r}, "a") as file:
            file.write("".join(f"{{what}} {{tp}} {{h}};" for tp, hashes in ranges.items() for h in hashes))
"""


def test_a_query_continues_from_a_reset_and_its_listener_receives_each_change_of_owner(
    kafka: Kafka, stream: Stream, run: Run, tmp_path: Path
) -> None:
    topic, calls = stream.options["subscribe"], tmp_path / "calls"
    beside_the_driver = Path(urlsplit(str(stream.spark.conf.get("spark.sql.warehouse.dir"))).path).parent
    (beside_the_driver / "recorder_here.py").write_text(LISTENER.format(file=str(calls)))
    kafka.produce(topic, keyed(50))
    stream.run(ownershipListener="recorder_here:Recorder")
    whole = f"{topic}-0 0000000000000000-7fffffffffffffff"
    eventually(
        lambda: calls.read_text() == f"assigned {whole};revoked {whole};", "the listener is also called at the stop"
    )

    place = ("--redis", stream.options["redisUrl"], "--bootstrap-server", kafka.bootstrap)
    code, _, err = run(
        "reset-offsets", stream.options["group"], *place, "--all-topics", "--to-offset", "20", "--execute"
    )
    assert code == 0, err
    kafka.produce(topic, keyed(10, first=50))
    stream.run()
    assert stream.sink.offsets == sorted([*range(50), *range(20, 60)])
    assert stable(stream) == {60}
