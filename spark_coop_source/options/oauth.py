"""OAUTHBEARER: where the tokens come from, in the options of Java's client.

kafka.sasl.oauthbearer.token.endpoint.url    https://... of an endpoint, or file:///... of a token
kafka.sasl.jaas.config                       clientId, clientSecret, scope and extension_NAME, for an endpoint
kafka.sasl.login.callback.handler.class      Java's own handler; without effect
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from coordinator.errors import ConfigurationError, InvalidOptionError, MissingOptionError
from coordinator.errors.quoting import quoted
from coordinator.kafka.client import TOKENS
from coordinator.kafka.token_source import FILE, TokenSource
from coordinator.values.options import invalid
from spark_coop_source.options.jaas import LoginModule

ENDPOINT, HANDLER = "sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"
LOGIN_LIMIT = (
    "one line of the form org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'clientId="..." clientSecret="..." scope="...";'
)
_ENDPOINT_LIMIT = "https://host/path of a token endpoint, or file:///path of a token"
_EXTENSION = "extension_"


def tokens(texts: Mapping[str, str], module: LoginModule | None, *, required: bool) -> dict[str, object]:
    """The argument with the source of tokens; empty if nothing names one and no login is required."""
    url = texts.get(ENDPOINT)
    if url is None:
        if not required:
            return {}
        raise MissingOptionError(
            f"kafka.sasl.mechanism = OAUTHBEARER needs kafka.{ENDPOINT}", f"set kafka.{ENDPOINT} to {_ENDPOINT_LIMIT}"
        )
    _check_url(url)
    options = {} if module is None else module.options
    extensions = tuple((k.removeprefix(_EXTENSION), v) for k, v in options.items() if k.startswith(_EXTENSION))
    if url.startswith(FILE):
        return {TOKENS: TokenSource(url, extensions=extensions)}
    if module is None or not {"clientId", "clientSecret"} <= options.keys():
        raise _incomplete(module)
    login = options["clientId"], options["clientSecret"], options.get("scope", "")
    return {TOKENS: TokenSource(url, *login, extensions)}


def check_handler(name: str | None) -> None:
    """Raise `InvalidOptionError` for a callback handler other than the one of Java's client."""
    if name is not None and not name.endswith("OAuthBearerLoginCallbackHandler"):
        raise InvalidOptionError(
            f"option kafka.{HANDLER} = {quoted(name)}: this project loads no Java class",
            f"remove it, and set kafka.{ENDPOINT} to {_ENDPOINT_LIMIT}",
        )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = bool(parts.path if url.startswith(FILE) else parts.scheme in ("http", "https") and parts.hostname)
    except ValueError:
        sound = False
    if not sound or "@" in url:
        raise invalid(f"kafka.{ENDPOINT}", url, "it is not a URL of tokens", _ENDPOINT_LIMIT, secret="@" in url)


def _incomplete(module: LoginModule | None) -> ConfigurationError:
    if module is None:
        what = f"kafka.{ENDPOINT} needs kafka.sasl.jaas.config"
        return MissingOptionError(what, f"set kafka.sasl.jaas.config to {LOGIN_LIMIT}")
    return invalid("kafka.sasl.jaas.config", "", "clientId or clientSecret is missing", LOGIN_LIMIT, secret=True)
