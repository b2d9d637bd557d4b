"""The `redisUrl`s that can be used: the parts and arguments that redis-py reads and that a user may set.

Time-outs and retries are not among the arguments: leases depend on them, so `connection` sets its own.
Knows the text only; connects to nothing. No message repeats the url, which may hold a password.
"""

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from coordinator.redis import sentinel_urls

LIMIT = (
    "redis://[user:password@]host[:port][/db], rediss://... for TLS (?ssl_ca_certs=/path/to/ca.pem), "
    "unix:///path/to.sock, ?cluster=true for a cluster, redis+sentinel://host[:port],host[:port]/service[/db], "
    "?credential_provider=module:Class for passwords that change, "
    "with / ? # @ : in user and password percent-encoded (%2F %3F %23 %40 %3A)"
)
"""The form of a url, as the end of the sentence "set redisUrl to ..."."""

_ARGUMENTS = {"db", "username", "password", "client_name", "protocol", "cluster", "credential_provider"}
_TLS_ARGUMENTS = {"ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname"}
_VALUES = {
    "db": ("[0-9]{1,9}", "db is not a number"),
    "protocol": ("[23]", "protocol is none of 2, 3"),
    "client_name": ("[!-~]*", "client_name holds more than visible ASCII characters"),
    "cluster": ("true|false", "cluster is none of true, false"),
    "credential_provider": (r"[\w.]+:[\w.]+", "credential_provider is not module:Class"),
    "ssl_cert_reqs": ("required|optional|none", "ssl_cert_reqs is none of required, optional, none"),
}


def check_url(text: str) -> None:
    """Raise a `ValueError` with the reason if this is no url of a Redis."""
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError("it holds a space or a control character")
    if text.startswith(sentinel_urls.SCHEMES):
        of_sentinels = sentinel_urls.parsed(text)
        for url in (*of_sentinels.sentinels, of_sentinels.server):
            check_url(url)
        return
    if not text.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("it does not begin with redis://, rediss://, unix:// or redis+sentinel://")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("host and port cannot be separated") from None
    if "@" in parts.path or parts.fragment:
        raise ValueError("user or password holds a character that must be percent-encoded")
    if "@" in parts.netloc and "credential_provider=" in parts.query:
        raise ValueError("it has a user or a password, and also a credential_provider")
    _check_place(parts.scheme, parts.hostname, port, parts.path)
    _check_arguments(parts.scheme, parts.query)


def _check_place(scheme: str, host: str | None, port: int | None, path: str) -> None:
    if scheme == "unix":
        if host or len(path) < len("/x"):
            raise ValueError("it names no socket file" if not host else "a third slash is missing")
        return
    if not host or port == 0:
        raise ValueError("it names no host" if not host else "0 is not a port")
    _check_host(host)
    if not re.fullmatch(r"/?|/[0-9]{1,9}", unquote(path)):
        raise ValueError("the part after host and port is not the number of a database")


def _check_host(host: str) -> None:
    """Refuse names with an empty or long part: the resolver encodes names as DNS does, and raises a bare error."""
    try:
        unquote(host).encode("idna")
    except UnicodeError:
        raise ValueError("its host is not a host name: a part between two dots is empty or too long") from None


def _check_arguments(scheme: str, query: str) -> None:
    allowed = _ARGUMENTS | (_TLS_ARGUMENTS if scheme == "rediss" else set())
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in allowed:
            raise ValueError(f"an argument behind ? is none of {', '.join(sorted(allowed))}")
        pattern, why = _VALUES.get(name, (".*", ""))
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise ValueError(why)
        if name == "cluster" and scheme == "unix":
            raise ValueError("a cluster has no socket file")
