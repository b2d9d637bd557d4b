"""OAUTHBEARER: a token of an endpoint, by client id and secret (RFC 6749, 4.4), or of a file, as in Java's client.

Input partitions carry a `TokenSource`, and each process asks for tokens of its own. kafka-python asks for one whenever
it connects, and before the broker's session ends (KIP-368).
"""

import json
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request, urlopen

from kafka.errors import KafkaError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from coordinator.kafka.token_source import FILE, TokenSource

TIMEOUT_S = 10.0
RENEWED_AT = 0.8
"""This part of a token's life: Java's `sasl.login.refresh.window.factor`."""

_REFUSED = (400, 401, 403)
_MOST_BYTES = 1_000_000


class TokenEndpointError(KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """The endpoint does not answer, or its answer holds no token: the next connection asks again."""

    retriable = True


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """The tokens of one source in this process. Safe for several threads: one asks, the others wait."""

    def __init__(self, source: TokenSource, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._source, self._now_s, self._lock = source, now_s, threading.Lock()
        self._token, self._renew_at_s, self._ends_at_s = "", 0.0, 0.0

    def token(self) -> str:
        """A token that is still valid. Raises `TokenEndpointError`, or kafka-python's error of a refused login."""
        with self._lock:
            if self._source.url.startswith(FILE):
                return _of_file(self._source.url.removeprefix(FILE))
            if self._now_s() >= self._renew_at_s:
                self._renew()
            return self._token

    def extensions(self) -> dict[str, str]:
        """The extensions of the login."""
        return dict(self._source.extensions)

    def _renew(self) -> None:
        """Ask the endpoint. While it does not answer, the last token serves until its end."""
        asked_s = self._now_s()
        try:
            self._token, life_s = _asked(self._source)
        except TokenEndpointError:
            if asked_s >= self._ends_at_s:
                raise
            return
        self._renew_at_s, self._ends_at_s = asked_s + RENEWED_AT * life_s, asked_s + life_s


@cache
def tokens_of(source: TokenSource) -> Tokens:
    """The one provider of a source in this process."""
    return Tokens(source)


def _of_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise TokenEndpointError(f"the token file {path} cannot be read: {_why(error)}") from None


def _asked(source: TokenSource) -> tuple[str, float]:
    """A new token, and its life in seconds."""
    login = b64encode(f"{quote_plus(source.client_id)}:{quote_plus(source.secret)}".encode()).decode()
    form = {"grant_type": "client_credentials"} | ({"scope": source.scope} if source.scope else {})
    request = Request(source.url, urlencode(form).encode(), {"Authorization": f"Basic {login}"})  # noqa: S310 - checked
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 - an option allows http and https only
            found = json.loads(answer.read(_MOST_BYTES))
        return str(found["access_token"]), float(found.get("expires_in", 0))
    except HTTPError as error:
        why = f"the token endpoint {source.url} answers {error.code} {error.reason}"
        raise (SaslAuthenticationFailedError(why) if error.code in _REFUSED else TokenEndpointError(why)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise TokenEndpointError(f"the token endpoint {source.url} gives no token: {_why(error)}") from None


def _why(error: Exception) -> str:
    """The kind of an error, and the system's words; never an answer of the endpoint."""
    return f"{type(error).__name__} {error}" if isinstance(error, OSError) else type(error).__name__
