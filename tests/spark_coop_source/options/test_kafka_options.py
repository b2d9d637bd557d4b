"""kafka.* under Java's names: options for kafka-python, options without effect, and refused options."""

import pytest
from kafka import KafkaConsumer

from coordinator.errors import (
    ConfigurationError,
    ConflictingOptionsError,
    InvalidOptionError,
    MissingOptionError,
    UnknownOptionError,
)
from coordinator.kafka.client import client_arguments
from spark_coop_source.options.kafka_options import kafka_arguments
from spark_coop_source.options.kafka_table import NO_EFFECT, PASSED, REFUSED, REFUSED_FAMILIES, UNDERSTOOD
from spark_coop_source.options.names import check_name

SERVERS = {"kafka.bootstrap.servers": "broker:9092"}

# What ConfigDef of org.apache.kafka:kafka-clients:4.2.0's ConsumerConfig names, without sasl.oauthbearer.*.
JAVA = """\
allow.auto.create.topics auto.commit.interval.ms auto.offset.reset bootstrap.servers check.crcs
client.dns.lookup client.id client.rack config.providers connections.max.idle.ms default.api.timeout.ms
enable.auto.commit enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer max.partition.fetch.bytes
max.poll.interval.ms max.poll.records metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
partition.assignment.strategy receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
sasl.oauthbearer.token.endpoint.url security.protocol security.providers
send.buffer.bytes session.timeout.ms share.acknowledgement.mode share.acquire.mode
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols
ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
ssl.truststore.location ssl.truststore.password ssl.truststore.type value.deserializer"""


def arguments(**more: str) -> dict[str, object]:
    return kafka_arguments(SERVERS | {f"kafka.{name}": text for name, text in more.items()})


def test_every_option_of_javas_consumer_has_exactly_one_fate() -> None:
    assert sorted([*PASSED, *UNDERSTOOD, *NO_EFFECT, *REFUSED]) == sorted(JAVA.split())


def test_kafka_python_knows_each_passed_option_under_the_same_name() -> None:
    assert {name.replace(".", "_") for name in PASSED} <= KafkaConsumer.DEFAULT_CONFIG.keys()


def test_the_arguments_of_a_client_are_a_consumers() -> None:
    given = {"max.poll.records": "7", "sasl.mechanism": "PLAIN", "security.protocol": "SASL_PLAINTEXT"}
    login = {"sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p";'}
    assert client_arguments(arguments(**given, **login)).keys() <= KafkaConsumer.DEFAULT_CONFIG.keys()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("fetch.max.bytes", "1048576", 1_048_576, id="a number of bytes"),
        pytest.param("max.poll.records", " 50 ", 50, id="spaces around it, as Java allows"),
        pytest.param("check.crcs", "False", False, id="a switch"),
        pytest.param("allow.auto.create.topics", "true", True, id="topics made by asking for them, if so wanted"),
        pytest.param("isolation.level", "read_committed", "read_committed", id="the isolation level"),
        pytest.param("client.id", "my job", "my job", id="a name for the broker's log"),
        pytest.param("client.rack", "eu-1a", "eu-1a", id="the rack"),
        pytest.param("receive.buffer.bytes", "65536", 65_536, id="a socket buffer"),
        pytest.param("connections.max.idle.ms", "3000000000", 3_000_000_000, id="a long beyond 32 bits"),
    ],
)
def test_an_option_is_passed_as_the_type_kafka_python_wants(name: str, text: str, value: object) -> None:
    assert arguments(**{name: text})[name.replace(".", "_")] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("receive.buffer.bytes", "-1", id="the system's buffer size"),
        pytest.param("client.id", "", id="an empty client id"),
        *(pytest.param(name, "anything", id=f"{name} has no effect") for name in NO_EFFECT),
    ],
)
def test_an_option_is_accepted_without_effect(name: str, text: str) -> None:
    check_name(f"kafka.{name}")
    assert arguments(**{name: text}) == arguments()


@pytest.mark.parametrize("name", [*REFUSED, *(f"{start}something" for start in REFUSED_FAMILIES)])
def test_an_option_is_refused_by_name_with_a_remedy(name: str) -> None:
    check_name(f"kafka.{name}")
    with pytest.raises(InvalidOptionError) as refused:
        arguments(**{name: "hunter2"})
    assert f"kafka.{name}" in refused.value.what
    assert len(refused.value.remedy) > len("remove it")
    assert "hunter2" not in str(refused.value)


def test_a_start_left_to_kafka_is_refused_in_favour_of_starting_offsets() -> None:
    with pytest.raises(InvalidOptionError, match=r"kafka\.auto\.offset\.reset .* startingOffsets"):
        arguments(**{"auto.offset.reset": "earliest"})


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        pytest.param("broker:9092", ["broker:9092"], id="one broker"),
        pytest.param(" a:1 , b:2,", ["a:1", "b:2"], id="two, with spaces and a comma too many"),
        pytest.param("SASL_SSL://broker:9093", ["broker:9093"], id="a listener's name before it, as Java allows"),
        pytest.param("[::1]:9092", ["[::1]:9092"], id="an IPv6 address"),
        pytest.param("::1:9092", ["[::1]:9092"], id="an IPv6 address without brackets"),
        pytest.param("127.0.0.1:9092", ["127.0.0.1:9092"], id="an IPv4 address"),
        pytest.param("broker_1.example-2.org:65535", ["broker_1.example-2.org:65535"], id="the last port"),
    ],
)
def test_bootstrap_servers_are_read(text: str, servers: list[str]) -> None:
    assert kafka_arguments({"kafka.bootstrap.servers": text})["bootstrap_servers"] == servers


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(" , ", id="only commas"),
        pytest.param("broker", id="no port"),
        pytest.param("broker:x", id="a port that is no number"),
        pytest.param("broker:0", id="port 0"),
        pytest.param("broker:65536", id="a port too large"),
        pytest.param(":9092", id="no host"),
        pytest.param("broker:9092/", id="a path"),
        pytest.param("user@broker:9092", id="a user"),
        pytest.param("a:1;b:2", id="semicolons"),
        pytest.param("a:1,b", id="one good and one bad"),
    ],
)
def test_bootstrap_servers_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"kafka\.bootstrap\.servers = .*host:port"):
        kafka_arguments({"kafka.bootstrap.servers": text})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        pytest.param({"fetch.max.bytes": "1MB"}, InvalidOptionError, "kafka.fetch.max.bytes = '1MB'", id="a unit"),
        pytest.param({"max.poll.records": "0"}, InvalidOptionError, "at least|from 1", id="no records"),
        pytest.param({"fetch.max.bytes": "3000000000"}, InvalidOptionError, "too large", id="more than Java's int"),
        pytest.param({"isolation.level": "READ_COMMITTED"}, InvalidOptionError, "read_committed", id="capitals"),
        pytest.param(
            {"request.timeout.ms": "400"},
            ConflictingOptionsError,
            r"fetch\.max\.wait\.ms \(500\).*request\.timeout\.ms \(400\)",
            id="a request that times out before the broker answers",
        ),
        pytest.param(
            {"connections.max.idle.ms": "30000"}, ConflictingOptionsError, "ascending", id="idle before timed out"
        ),
    ],
)
def test_a_value_is_refused(given: dict[str, str], error: type[ConfigurationError], words: str) -> None:
    with pytest.raises(error, match=words):
        arguments(**given)


def test_without_bootstrap_servers_there_is_nothing_to_ask() -> None:
    with pytest.raises(MissingOptionError, match=r"kafka\.bootstrap\.servers"):
        kafka_arguments({})


def test_an_unknown_kafka_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownOptionError, match=r"did you mean kafka\.max\.poll\.records"):
        check_name("kafka.max.poll.record")
