"""OAUTHBEARER by the options of Java's client."""

import pytest

from coordinator.errors import ConfigurationError, InvalidOptionError, MissingOptionError
from coordinator.kafka.client import TOKENS
from coordinator.kafka.token_source import TokenSource
from spark_coop_source.options.kafka_security import security_arguments

URL = "https://login.example/token"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
LOGIN = f'{MODULE} clientId="job" clientSecret="secret" scope="read" extension_logicalCluster="lkc-1";'
BEARER = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OF_URL = {**BEARER, "sasl.oauthbearer.token.endpoint.url": URL}


@pytest.mark.parametrize(
    ("texts", "source"),
    [
        pytest.param(
            {**OF_URL, "sasl.jaas.config": LOGIN},
            TokenSource(URL, "job", "secret", "read", (("logicalCluster", "lkc-1"),)),
            id="an endpoint",
        ),
        pytest.param(
            {**BEARER, "sasl.oauthbearer.token.endpoint.url": "file:///var/run/token"},
            TokenSource("file:///var/run/token"),
            id="a file",
        ),
        pytest.param(
            {
                **OF_URL,
                "sasl.jaas.config": f'{MODULE} clientId="job" clientSecret="secret";',
                "sasl.login.callback.handler.class": "org.apache.kafka.x.OAuthBearerLoginCallbackHandler",
            },
            TokenSource(URL, "job", "secret"),
            id="with Java's own handler",
        ),
    ],
)
def test_options_name_the_source_of_tokens(texts: dict[str, str], source: TokenSource) -> None:
    found = security_arguments(texts)
    assert (found["sasl_mechanism"], found[TOKENS]) == ("OAUTHBEARER", source)
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("texts", "error", "words"),
    [
        pytest.param(BEARER, MissingOptionError, "needs kafka.sasl.oauthbearer.token.endpoint.url", id="no endpoint"),
        pytest.param(OF_URL, MissingOptionError, "needs kafka.sasl.jaas.config", id="no login"),
        pytest.param(
            {**OF_URL, "sasl.jaas.config": f'{MODULE} clientId="job";'}, InvalidOptionError, "missing", id="no secret"
        ),
        pytest.param(
            {**OF_URL, "sasl.oauthbearer.token.endpoint.url": "ftp://host"}, InvalidOptionError, "not a URL", id="ftp"
        ),
        pytest.param(
            {**OF_URL, "sasl.oauthbearer.token.endpoint.url": "https:///token"},
            InvalidOptionError,
            "not a URL",
            id="no host",
        ),
        pytest.param(
            {**OF_URL, "sasl.oauthbearer.token.endpoint.url": "https://u:secret@host/"},
            InvalidOptionError,
            "not shown",
            id="a password in the url",
        ),
    ],
)
def test_wrong_options_are_named(texts: dict[str, str], error: type[ConfigurationError], words: str) -> None:
    with pytest.raises(error, match=words) as refused:
        security_arguments(texts)
    assert "secret" not in str(refused.value)
