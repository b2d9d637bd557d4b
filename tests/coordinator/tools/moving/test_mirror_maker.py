"""A real MirrorMaker 2 copies a topic and the offsets of a group to a second Kafka cluster. Redis stays behind."""

import string
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyspark
import pytest

import processes
import servers
from broker_jars import MIRROR_MAKER, ROOT
from command_runs import Run
from coordinator.errors import StateLostError, UnknownTopicError
from coordinator.progress.mirror import is_mirror
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.offset_spec import Latest
from coordinator.values.subscription import TopicPartition
from group_services import Group, batches, read, records, subscribed
from group_services import run as read_all
from spark_coop_source.servers.programs import in_java
from streams import keyed
from topics import Kafka

READ, LEFT = 30, 20
PATIENCE_S = 120.0

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Kafka]]:
    """Two brokers of these tests' own, each a cluster; and the jars of MirrorMaker."""
    if not MIRROR_MAKER.present():
        MIRROR_MAKER.fetch(Path(pyspark.__file__).parent)
    started = [servers.start_broker(tmp_path_factory.mktemp(name)) for name in ("first", "second")]
    yield Kafka(started[0].address), Kafka(started[1].address)
    for server in started:
        server.stop()


def mirror(folder: Path, first: Kafka, second: Kafka, tp: TopicPartition, group: str) -> None:
    """Let MirrorMaker work until the second cluster has all records, and an offset of the group."""
    properties, log = folder / "mirror-maker.properties", folder / "mirror-maker.log"
    template = string.Template((ROOT / "conf" / "mirror-maker.properties").read_text())
    values = {"first": first.bootstrap, "second": second.bootstrap, "topic": tp.topic, "group": group}
    properties.write_text(template.substitute(values))
    settings = [f"-Dcoop.log={log}", f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'}"]
    program = in_java(MIRROR_MAKER, "-Xmx512m", *settings)
    process = processes.start([*program, "org.apache.kafka.connect.mirror.MirrorMaker", properties], log)
    try:
        with closing(Group(second, "redis://none", "none")) as there:
            processes.wait_until(lambda: _arrived(there, tp, group), PATIENCE_S, process, log)
    finally:
        processes.stop(process)


def _arrived(there: Group, tp: TopicPartition, group: str) -> bool:
    try:
        log = there.log()
        log.topics(subscribed(tp))
    except UnknownTopicError:
        return False
    return log.bounds((tp,))[tp].end == READ + LEFT and tp in log.group_offsets(group)


def test_copied_offsets_are_refused_by_name_and_after_an_import_no_record_is_missing(
    clusters: tuple[Kafka, Kafka], redis_url: str, group: str, tmp_path: Path, run: Run
) -> None:
    first, second = clusters
    tp = TopicPartition(first.create_topic("orders"), 0)
    with closing(Group(first, redis_url, group)) as at_home:
        first.produce(tp.topic, keyed(READ))
        read_all(at_home, subscribed(tp))
        first.produce(tp.topic, keyed(LEFT, first=READ))
        mirror(tmp_path, first, second, tp, group)
        at_home.lose_everything()

    with closing(Group(second, redis_url, group)) as away:
        offset, text = away.log().group_offsets(group)[tp]
        assert 0 < offset <= READ
        assert text.startswith("coop-kafka v1 "), "our text comes along"
        with pytest.raises(StateLostError, match=f"of another topic '{tp.topic}'"):
            away.service(subscribed(tp), Latest()).first_positions()
        assert not away.keys

        place = "--redis", redis_url, "--bootstrap-server", second.bootstrap
        code, _, err = run("import", group, "--from", f"kafka-group:{group}", "--execute", *place)
        assert code == 0, err
        service = away.aiming(subscribed(tp), Latest())
        assert records(*batches(service, StreamOffset(group))) == read(tp, offset, READ + LEFT)
        service.leave()
        assert is_mirror({tp: away.log().group_offsets(group)[tp]})
