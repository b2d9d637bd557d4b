"""Translates `kafka.*` options, under Java's names, to the arguments of a kafka-python consumer.

The result is plain and picklable; `coordinator.kafka.client.client_arguments` makes a client's arguments of it.
Group membership is not part of it: `kafka.group.id` is the option `group`.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv6Address

from coordinator.errors import ConflictingOptionsError, InvalidOptionError, MissingOptionError
from coordinator.errors.quoting import quoted
from coordinator.values.options import check_length, invalid, named
from spark_coop_source.options.kafka_security import security_arguments
from spark_coop_source.options.kafka_table import PASSED, remedy

PREFIX = "kafka."
_SERVER = re.compile(r"(?:[0-9A-Za-z\-%._]*://)?\[?([0-9A-Za-z\-%._:]+?)\]?:([0-9]{1,5})")  # as Java's client
_SERVERS_LIMIT = "host:port, several separated by commas, for example broker1:9092,broker2:9092"
_PORT_MAX = 65_535
_TIME_DEFAULTS = {"fetch_max_wait_ms": 500, "request_timeout_ms": 30_000, "connections_max_idle_ms": 540_000}


def kafka_arguments(options: Mapping[str, str]) -> dict[str, object]:
    """The Kafka arguments of options named in lower case; raises `ConfigurationError`s.

    Every `kafka.*` name among them is known (`names.check_name`).
    """
    texts = {n.removeprefix(PREFIX): text.strip() for n, text in options.items() if n.startswith(PREFIX)}
    for name, text in texts.items():
        if (what_to_do := remedy(name)) is not None:
            raise InvalidOptionError(f"option {named(f'kafka.{name}')} is not supported", what_to_do)
        check_length(f"kafka.{name}", text, "a shorter value")
    arguments: dict[str, object] = {"bootstrap_servers": _bootstrap_servers(texts)}
    arguments |= security_arguments(texts)
    arguments |= {_argument(name): _value(name, text) for name, text in texts.items() if _has_effect(name, text)}
    _check_times(arguments)
    return arguments


def _argument(name: str) -> str:
    return name.replace(".", "_")


def _has_effect(name: str, text: str) -> bool:
    """Java's -1 for a buffer, and its empty client id, are kafka-python's defaults."""
    return name in PASSED and text != "" and not (name.endswith(".buffer.bytes") and text == "-1")


def _value(name: str, text: str) -> object:
    try:
        return PASSED[name].parse(text)
    except ValueError as error:
        raise invalid(f"kafka.{name}", text, str(error), PASSED[name].limit) from None


def _bootstrap_servers(texts: Mapping[str, str]) -> list[str]:
    text = texts.get("bootstrap.servers")
    if text is None:
        remedy = f"set kafka.bootstrap.servers to {_SERVERS_LIMIT}"
        raise MissingOptionError("option kafka.bootstrap.servers is missing", remedy)
    if "@" in text:
        limit = f"{_SERVERS_LIMIT}, and user and password by kafka.sasl.jaas.config"
        raise invalid("kafka.bootstrap.servers", text, "it holds user:password@", limit, secret=True)
    servers = [_server(server.strip(), text) for server in text.split(",") if server.strip()]
    if not servers:
        raise invalid("kafka.bootstrap.servers", text, "it names no broker", _SERVERS_LIMIT)
    return servers


def _server(server: str, text: str) -> str:
    match = _SERVER.fullmatch(server)
    if match is None or not 1 <= int(match[2]) <= _PORT_MAX:
        raise invalid("kafka.bootstrap.servers", text, f"{quoted(server)} is not host:port", _SERVERS_LIMIT)
    if ":" not in match[1]:
        return f"{match[1]}:{match[2]}"
    if not _is_ipv6(match[1]):  # user:secret:port, perhaps
        why = "an address with several colons is not an IPv6 address"
        raise invalid("kafka.bootstrap.servers", text, why, _SERVERS_LIMIT, secret=True)
    return f"[{match[1]}]:{match[2]}"


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _check_times(arguments: Mapping[str, object]) -> None:
    """kafka-python's own rule, checked before an executor would break it."""
    wait, request, idle = (arguments.get(name, default) for name, default in _TIME_DEFAULTS.items())
    if not int(str(wait)) < int(str(request)) < int(str(idle)):
        raise ConflictingOptionsError(
            f"kafka.fetch.max.wait.ms ({wait}), kafka.request.timeout.ms ({request}) and "
            f"kafka.connections.max.idle.ms ({idle}) are not in ascending order",
            "make the first less than the second, and the second less than the third",
        )
