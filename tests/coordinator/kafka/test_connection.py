"""The connection to Kafka opens, or fails with a named error; with real brokers and with servers that do not answer."""

import gc
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from coordinator.errors import CoopKafkaError, InvalidOptionError, KafkaAccessError, KafkaUnavailableError
from coordinator.kafka import connection as kafka_connection
from coordinator.kafka.connection import FIRST_CONTACT_MS, KafkaConnection, Session
from coordinator.kafka.internals import NO_CONTROLLER
from coordinator.values.subscription import Bounds, Pattern, TopicPartition
from kafka_logs import kafka_log
from log_lines import own_lines
from one_address import one_address, opened_later
from secure_listener import SecureListener
from topics import Kafka

NOBODY = "127.0.0.1:1"


def test_it_can_be_asked_again_after_close(kafka: Kafka) -> None:
    log, tp = kafka_log(kafka.bootstrap), TopicPartition(kafka.create_topic(), 0)
    before = log.bounds([tp])
    log.close()
    log.close()

    assert log.bounds([tp]) == before


def test_nothing_is_opened_before_the_first_question() -> None:
    threads = threading.active_count()
    with closing(kafka_log(NOBODY)):
        assert threading.active_count() == threads


UNREACHABLE: Mapping[str, tuple[Mapping[str, object], type[CoopKafkaError], str]] = {
    "nobody listens at the port": ({"bootstrap_servers": NOBODY}, KafkaUnavailableError, "ECONNREFUSED"),
    "a list of servers is shown as the user writes it": (
        {"bootstrap_servers": [NOBODY, "127.0.0.1:2"]},
        KafkaUnavailableError,
        "127.0.0.1:1,127.0.0.1:2 within 0.5 s",
    ),
    "the host has no address": (
        {"bootstrap_servers": "no-such-host.invalid:9092"},
        KafkaUnavailableError,
        "no-such-host.invalid:9092",
    ),
    "the port is not a number": ({"bootstrap_servers": "localhost:http"}, InvalidOptionError, "localhost:http"),
    "the broker wants no TLS": (
        {"security_protocol": "SSL", "bootstrap_timeout_ms": 2_000},
        KafkaUnavailableError,
        "Handshake failed",
    ),
    "the broker wants no login": (
        {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "pa55word",
        },
        KafkaAccessError,
        "refused the credentials",
    ),
}


@pytest.fixture
def _sockets_collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """kafka-python leaves the sockets of failed attempts to the garbage collector: not in a later test.

    The records of its log hold exceptions, and these the sockets: so there are none.
    """
    caplog.set_level(logging.CRITICAL, logger="kafka")
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
@pytest.mark.parametrize(("settings", "kind", "message"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_a_broker_that_cannot_be_used_is_a_named_error_and_leaves_no_thread(
    kafka: Kafka, settings: Mapping[str, object], kind: type[CoopKafkaError], message: str
) -> None:
    threads = threading.active_count()
    log = kafka_log(kafka.bootstrap, {"bootstrap_timeout_ms": 500, **settings}, patience_ms=0)

    with pytest.raises(kind) as error:
        log.bounds([TopicPartition("t", 0)])

    assert message in error.value.what
    assert error.value.remedy
    assert "pa55word" not in str(error.value)
    assert threading.active_count() <= threads


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
def test_all_brokers_are_away_at_the_first_contact_and_come_back__it_waits_and_says_so_once(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="coordinator")
    with (
        opened_later(int(kafka.bootstrap.rpartition(":")[2]), 5.0) as address,
        closing(kafka_log(address, {"bootstrap_timeout_ms": 500}, patience_ms=50_000)) as log,
    ):
        assert log.group_offsets("of-nobody") == {}
    begins, ends = own_lines(caplog)
    assert begins.startswith(f"no Kafka broker answered at {address}")
    assert begins.endswith("; asked again for up to 50 s")
    assert re.fullmatch(r"Kafka answers again, after \d+ s", ends)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
def test_without_patience_it_tries_to_connect_as_often_as_retries_say(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, opens = list[object](), kafka_connection.open_client

    def counted(kind: Callable[..., object], *of_it: Any) -> object:
        opened.append(kind)
        return opens(kind, *of_it)

    monkeypatch.setattr(kafka_connection, "open_client", counted)
    settings = {"bootstrap_servers": NOBODY, "bootstrap_timeout_ms": 100}
    with pytest.raises(KafkaUnavailableError):
        KafkaConnection(settings, retries=2, retry_interval_ms=10, patience_ms=0).ask("topics", lambda _: None)
    assert len(opened) == 3


def test_a_controller_that_moves_twice__ask_again(kafka: Kafka) -> None:
    moved = iter([NO_CONTROLLER, NO_CONTROLLER])

    def question(_: Session) -> str:
        for text in moved:
            raise RuntimeError(text)
        return "answered"

    connection = KafkaConnection({"bootstrap_servers": kafka.bootstrap}, retries=0, retry_interval_ms=10)
    with closing(connection):
        assert connection.ask("to create a topic", question) == "answered"


def test_a_controller_that_moves_for_too_long_is_a_named_error__and_any_other_bare_error_stays(kafka: Kafka) -> None:
    def question(text: str, _: Session) -> None:
        raise RuntimeError(text)

    settings = {"bootstrap_servers": kafka.bootstrap}
    connection = KafkaConnection(settings, retries=0, retry_interval_ms=10, patience_ms=0)
    with closing(connection):
        with pytest.raises(KafkaUnavailableError, match="has a new controller, asked for to create a topic"):
            connection.ask("to create a topic", partial(question, NO_CONTROLLER))
        with pytest.raises(RuntimeError, match="of ours"):
            connection.ask("to create a topic", partial(question, "of ours"))


def test_the_login_at_one_of_several_servers_may_take_longer_than_a_frozen_server_gets(
    secure_listener: SecureListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is there in time, and all packets together take longer. Each packet takes a second."""
    monkeypatch.setattr(kafka_connection, "NEXT_SERVER_MS", 5_000)
    port = int(secure_listener.bootstrap.rpartition(":")[2])
    with one_address(port, delay_s=1) as one, one_address(port, delay_s=1) as other:
        began = time.monotonic()
        servers = f"{one.address},{other.address}"
        settings = {**secure_settings(secure_listener), "bootstrap_timeout_ms": 20_000}
        with closing(kafka_log(servers, settings, patience_ms=0)) as log:
            assert log.topics(Pattern("^none$")) == {}
        assert time.monotonic() - began > 5
        assert one.connections + other.connections == 1


def secure_settings(listener: SecureListener) -> dict[str, object]:
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": listener.user,
        "sasl_plain_password": listener.password,
        "ssl_cafile": str(listener.authority),
    }


def test_over_tls_with_the_right_password_it_answers(kafka: Kafka, secure_listener: SecureListener) -> None:
    tp = TopicPartition(kafka.create_topic(), 0)
    with closing(kafka_log(secure_listener.bootstrap, secure_settings(secure_listener))) as log:
        assert log.bounds([tp]) == {tp: Bounds(0, 0, epoch=0)}


@pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
def test_a_wrong_password_is_an_error_before_the_timeout_and_is_never_shown(secure_listener: SecureListener) -> None:
    began = time.monotonic()
    settings = secure_settings(secure_listener) | {"sasl_plain_password": "pa55word"}

    with pytest.raises(KafkaAccessError, match="refused the credentials") as error:
        kafka_log(secure_listener.bootstrap, settings).group_offsets("g")

    assert "pa55word" not in str(error.value)
    assert time.monotonic() - began < FIRST_CONTACT_MS / 1000


@pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning")
@pytest.mark.usefixtures("_sockets_collected")
def test_a_certificate_of_an_unknown_authority_is_an_error_at_once(secure_listener: SecureListener) -> None:
    settings = secure_settings(secure_listener)
    del settings["ssl_cafile"]

    with pytest.raises(KafkaAccessError, match="is not trusted"):
        kafka_log(secure_listener.bootstrap, settings).group_offsets("g")
