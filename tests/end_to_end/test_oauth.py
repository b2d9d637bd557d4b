"""A stream on a broker that wants tokens, which end while it runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import servers
from streams import Stream, eventually, keyed, sent, stable
from token_endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint
from topics import Kafka
from verdict import judge, require_good

LIFE_S = 5
ENDS = 3
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint(LIFE_S) as running:
        yield running


@pytest.fixture
def bearer(tmp_path: Path) -> Iterator[tuple[Kafka, str]]:
    """A broker, and the address of its listener that wants tokens."""
    (port,) = servers.free_ports(1)
    more = (
        f"listeners=PLAIN://127.0.0.1:${{port}},BEARER://127.0.0.1:{port},CONTROLLER://127.0.0.1:${{controller_port}}",
        "listener.security.protocol.map=PLAIN:PLAINTEXT,BEARER:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.bearer.sasl.enabled.mechanisms=OAUTHBEARER",
        f'listener.name.bearer.oauthbearer.sasl.jaas.config={MODULE} unsecuredLoginStringClaim_sub="broker";',
        "listener.name.bearer.oauthbearer.connections.max.reauth.ms=3600000",  # a session ends with its token
    )
    server = servers.start_broker(tmp_path, more=more)
    yield Kafka(server.address), f"127.0.0.1:{port}"
    server.stop()


def login(address: str, endpoint: TokenEndpoint, secret: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": address,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "kafka.sasl.jaas.config": f'{MODULE} clientId="{CLIENT}" clientSecret="{secret}";',
    }


@pytest.mark.long
def test_a_stream_goes_on_over_the_ends_of_its_tokens(
    spark: SparkSession, bearer: tuple[Kafka, str], endpoint: TokenEndpoint, redis_url: str, group: str, tmp_path: Path
) -> None:
    kafka, address = bearer
    options = login(address, endpoint, SECRET) | {
        "subscribe": kafka.create_topic("bearer"),
        "startingOffsets": "earliest",
        "group": group,
        "redisUrl": redis_url,
    }
    records, stream = keyed(40), Stream(spark, options, tmp_path / "checkpoint")
    kafka.produce(options["subscribe"], records[:10])
    with stream.running(lambda: stable(stream) == {40}, "all records after the last end"):
        for part in range(1, 1 + ENDS):
            asked = len(endpoint.forms)
            eventually(lambda before=asked: len(endpoint.forms) > before, "a new token was asked for")  # type: ignore[misc]
            eventually(lambda done=10 * part: stable(stream) == {done}, "the records before")  # type: ignore[misc]
            kafka.produce(options["subscribe"], records[10 * part : 10 * part + 10])
    require_good(judge(sent(records), stream.sink.received))


@pytest.mark.long
def test_a_refused_client_is_named_without_its_secret(
    spark: SparkSession, bearer: tuple[Kafka, str], endpoint: TokenEndpoint
) -> None:
    kafka, address = bearer
    options = login(address, endpoint, "hunter3") | {"subscribe": kafka.create_topic("refused")}
    with pytest.raises(Exception, match="KAFKA_ACCESS") as error:
        spark.read.format("coop-kafka").options(**options).load().collect()
    assert "answers 401" in str(error.value)
    assert "hunter3" not in str(error.value)
