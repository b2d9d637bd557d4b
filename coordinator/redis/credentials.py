"""User and password of Redis that change: redisUrl names a class, `?credential_provider=module:Class`.

redis-py asks it whenever a connection opens. The class needs no arguments, and has `get_credentials()`, which returns
user and password (redis-py's `CredentialProvider`).
"""

from urllib.parse import parse_qsl, urlsplit

import redis
from redis.credentials import CredentialProvider

from coordinator.errors import InvalidOptionError
from coordinator.values.user_class import FAILURES, error_text, instance

ARGUMENT = "credential_provider"


class Asked(CredentialProvider):
    """Asks the user's object. An error of it counts as an outage of Redis: the next connection asks again."""

    def __init__(self, name: str, provider: CredentialProvider) -> None:
        self._name, self._provider = name, provider

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Password, or user and password. Raises redis-py's `ConnectionError` for every error of the user's object."""
        try:
            *user, password = map(_text, self._provider.get_credentials())
            return (user[0], password) if user else (password,)
        except FAILURES as error:
            why = f"{ARGUMENT} {self._name} failed: {error_text(error)}"
            raise redis.exceptions.ConnectionError(why) from None


def provider(url: str) -> CredentialProvider | None:
    """The provider that a url names; None without one. Raises `InvalidOptionError`."""
    name = dict(parse_qsl(urlsplit(url).query)).get(ARGUMENT)
    if name is None:
        return None
    found = instance(ARGUMENT, name)
    if not callable(getattr(found, "get_credentials", None)):
        raise InvalidOptionError(
            f"the {ARGUMENT} {name} of redisUrl has no get_credentials()",
            "name a class with get_credentials(), which returns user and password",
        )
    return Asked(name, found)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("get_credentials() returned something else than user and password")
    return value
