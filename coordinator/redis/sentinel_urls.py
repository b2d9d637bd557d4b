"""Urls of Redis Sentinel: any of these sentinels names the server that is the master now.

    redis+sentinel://[user:password@]host[:port],host[:port]/service[/db][?sentinel_username=u&sentinel_password=p]

User and password in front of the hosts are those of the servers. Knows the text only; no message repeats the url.
"""

import re
from dataclasses import dataclass

SCHEMES = ("redis+sentinel://", "rediss+sentinel://")
_URL = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://(?P<login>[^@/?#]*@)?(?P<places>[^@/?#]*)"
    r"(/(?P<service>[A-Za-z0-9._-]+)(?P<db>/[^?#]*)?)?(\?(?P<query>[^#]*))?"
)
_PORT = 26_379
_OF_SENTINELS = ("sentinel_username", "sentinel_password")


@dataclass(frozen=True, slots=True)
class SentinelUrl:
    """The parts of such a url, each as a plain url that redis-py reads."""

    sentinels: tuple[str, ...]
    service: str  # the name under which the sentinels watch the servers
    server: str  # of the master, with the place of the first sentinel instead of its own


def parsed(url: str) -> SentinelUrl:
    """The parts of a url with one of `SCHEMES`; `ValueError` with the reason if it has another form."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("it is not redis+sentinel://host:port,host:port/service, or a part is not percent-encoded")
    if match["service"] is None:
        raise ValueError("it names no service: redis+sentinel://host:port,host:port/service")
    places = [_with_port(place) for place in match["places"].split(",")]
    given = [argument for argument in (match["query"] or "").split("&") if argument]
    if any(argument.startswith("cluster=") for argument in given):
        raise ValueError("sentinels watch no cluster")
    of_server = [a for a in given if not a.startswith(_OF_SENTINELS)]
    of_sentinel = [a.removeprefix("sentinel_") for a in given if a.startswith((*_OF_SENTINELS, "ssl_"))]
    scheme, login, db = match["scheme"], match["login"] or "", match["db"] or ""
    return SentinelUrl(
        tuple(_url(f"{scheme}://{place}", of_sentinel) for place in places),
        match["service"],
        _url(f"{scheme}://{login}{places[0]}{db}", of_server),
    )


def _with_port(place: str) -> str:
    return place if re.search(r":[0-9]*$", place) else f"{place}:{_PORT}"


def _url(place: str, arguments: list[str]) -> str:
    return f"{place}?{'&'.join(arguments)}" if arguments else place
