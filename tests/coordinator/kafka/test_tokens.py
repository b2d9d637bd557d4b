"""Tokens of an endpoint and of a file: reused until they are old, and errors that name the place and no secret."""

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.errors import KafkaError, SaslAuthenticationFailedError

from coordinator.kafka.client import TOKENS, client_arguments
from coordinator.kafka.token_source import TokenSource
from coordinator.kafka.tokens import TokenEndpointError, Tokens, tokens_of
from token_endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint() as running:
        yield running


def source(endpoint: TokenEndpoint, secret: str = SECRET) -> TokenSource:
    return TokenSource(endpoint.url, CLIENT, secret, "read write", (("cluster", "one"),))


class Clock:
    """The seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_one_token_serves_all_connections_until_four_fifths_of_its_life(endpoint: TokenEndpoint, clock: Clock) -> None:
    provider = Tokens(source(endpoint), clock)
    first = provider.token()
    clock.now_s += 0.79 * 3600
    assert provider.token() == first
    clock.now_s += 0.02 * 3600
    assert provider.token() != first
    assert endpoint.forms == [{"grant_type": ["client_credentials"], "scope": ["read write"]}] * 2
    assert provider.extensions() == {"cluster": "one"}


def test_the_last_token_serves_to_its_end_while_the_endpoint_is_away(endpoint: TokenEndpoint, clock: Clock) -> None:
    provider = Tokens(source(endpoint), clock)
    first, endpoint.status = provider.token(), 503
    clock.now_s += 0.9 * 3600
    assert provider.token() == first
    clock.now_s += 0.1 * 3600
    with pytest.raises(TokenEndpointError, match="503"):
        provider.token()
    endpoint.status = 200
    assert provider.token() != first


@pytest.mark.parametrize(
    ("status", "body", "kind", "why"),
    [
        (401, b"", SaslAuthenticationFailedError, "answers 401"),
        (500, b"", TokenEndpointError, "answers 500"),
        (200, b"<html>", TokenEndpointError, "gives no token: JSONDecodeError"),
        (200, b"[]", TokenEndpointError, "gives no token: TypeError"),
        (200, b'{"token": 1}', TokenEndpointError, "gives no token: KeyError"),
        (200, b"[" * 100_000, TokenEndpointError, "gives no token: RecursionError"),
        (
            200,
            b'{"access_token": "t", "expires_in": 1' + b"0" * 400 + b"}",
            TokenEndpointError,
            "gives no token: OverflowError",
        ),
    ],
)
def test_an_answer_without_a_token(
    endpoint: TokenEndpoint, status: int, body: bytes, kind: type[KafkaError], why: str
) -> None:
    endpoint.status, endpoint.body = status, body
    with pytest.raises(kind, match=re.escape(f"the token endpoint {endpoint.url} {why}")):
        Tokens(source(endpoint)).token()


def test_a_wrong_secret_is_a_refused_login_that_shows_no_secret(endpoint: TokenEndpoint) -> None:
    wrong = source(endpoint, "hunter3")
    with pytest.raises(SaslAuthenticationFailedError) as error:
        Tokens(wrong).token()
    assert "hunter3" not in str(error.value) + repr(wrong)


def test_without_an_endpoint() -> None:
    with pytest.raises(TokenEndpointError, match="gives no token: URLError"):
        Tokens(TokenSource("http://127.0.0.1:1/token", "c", "s")).token()


def test_a_token_of_a_file_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    provider = Tokens(TokenSource(f"file://{file}"))
    with pytest.raises(TokenEndpointError, match=r"token cannot be read: FileNotFoundError"):
        provider.token()
    for text in ("first", "second"):
        file.write_text(f"{text}\n")
        assert provider.token() == text


def test_a_client_gets_the_provider_of_its_source_from_a_pickled_partition(endpoint: TokenEndpoint) -> None:
    kafka = pickle.loads(pickle.dumps({TOKENS: source(endpoint), "sasl_mechanism": "OAUTHBEARER"}))
    arguments = client_arguments(kafka)
    assert arguments["sasl_oauth_token_provider"] is tokens_of(source(endpoint))
    assert TOKENS not in arguments
