"""Makes the arguments of a kafka-python client from plain values, on the driver and in executors.

Input partitions contain a pickled mapping of Kafka arguments. An `ssl.SSLContext` cannot be pickled. So the mapping has
file names and PEM text, and this module makes the context in the client's process. Knows only the option names in its
messages.
"""

import importlib.util
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from coordinator.errors import EnvironmentMismatchError, InvalidOptionError
from coordinator.errors.quoting import quoted
from coordinator.kafka.token_source import TokenSource


class Secret(str):
    """A text that `repr` does not show: passwords, keys. Else a plain `str`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'(not shown)'"


CHECK_HOSTNAME = "ssl_check_hostname"
TRUST_FILE = "ssl_cafile"
TRUST_PEM = "ssl_trust_pem"
KEY_FILE = "ssl_certfile"
KEY_PEM = "ssl_key_pem"
KEY_PASSWORD = "ssl_password"  # noqa: S105  the name of an argument
VERSIONS = "ssl_versions"
TOKENS = "oauth_tokens"
"""The argument that names the source of tokens, for a client's own provider of them."""

_PACKAGES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}


def client_arguments(kafka: Mapping[str, object]) -> dict[str, Any]:
    """The keyword arguments of a `KafkaConsumer` for the Kafka arguments of a query.

    Reads certificate files on the current host. Raises `InvalidOptionError` for unusable files, and
    `EnvironmentMismatchError` for a login whose package is missing here. A request for a topic does not create it,
    unless the arguments allow that.
    """
    arguments: dict[str, Any] = {"client_id": "coop-kafka", "allow_auto_create_topics": False}
    arguments |= {name: value for name, value in kafka.items() if not name.startswith("ssl_")}
    if arguments.get("security_protocol") in ("SSL", "SASL_SSL"):
        arguments["ssl_context"] = tls_context(kafka)
    source = arguments.pop(TOKENS, None)
    if isinstance(source, TokenSource):
        from coordinator.kafka.tokens import tokens_of  # noqa: PLC0415 - options are checked without a Kafka client

        arguments["sasl_oauth_token_provider"] = tokens_of(source)
    _check_login(str(arguments.get("sasl_mechanism")))
    return arguments


def arguments_of(kind: Any, kafka: Mapping[str, object]) -> dict[str, Any]:
    """The same for another class of client, without the consumer's settings that it does not have."""
    return {name: value for name, value in client_arguments(kafka).items() if name in kind.DEFAULT_CONFIG}


def _check_login(mechanism: str) -> None:
    package = _PACKAGES.get(mechanism)
    if package is not None and importlib.util.find_spec(package) is None:
        raise EnvironmentMismatchError(
            f"kafka.sasl.mechanism = {mechanism} needs the package {package}, which is not installed on this host",
            f"pip install {package} wherever Spark runs Python, driver and executors",
        )


def tls_context(kafka: Mapping[str, object]) -> ssl.SSLContext:
    """The TLS settings of the Kafka arguments; raises `InvalidOptionError` for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = kafka.get(CHECK_HOSTNAME) is not False
    _limit_versions(context, kafka.get(VERSIONS))
    _load_trust(context, kafka)
    if KEY_FILE in kafka:
        path = str(kafka[KEY_FILE])
        _reading("kafka.ssl.keystore.location", quoted(path), lambda: _load_key(context, path, kafka))
    elif KEY_PEM in kafka:
        pem = str(kafka[KEY_PEM])
        _reading("kafka.ssl.keystore.key", "the PEM text", lambda: _load_key_text(context, pem, kafka))
    return context


def _limit_versions(context: ssl.SSLContext, versions: object) -> None:
    known = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    wanted = [known[version] for version in versions] if isinstance(versions, tuple) else list(known.values())
    context.minimum_version, context.maximum_version = min(wanted), max(wanted)


def _load_trust(context: ssl.SSLContext, kafka: Mapping[str, object]) -> None:
    if TRUST_FILE in kafka:
        path = str(kafka[TRUST_FILE])
        _reading("kafka.ssl.truststore.location", quoted(path), lambda: context.load_verify_locations(cafile=path))
    elif TRUST_PEM in kafka:
        pem = str(kafka[TRUST_PEM])
        _reading(
            "kafka.ssl.truststore.certificates",
            "the PEM text",
            lambda: context.load_verify_locations(cadata=pem),
        )
    else:
        context.load_default_certs()


def _load_key(context: ssl.SSLContext, path: str, kafka: Mapping[str, object]) -> None:
    # Without a password argument OpenSSL would ask for the password of an encrypted key on the terminal.
    context.load_cert_chain(path, password=str(kafka.get(KEY_PASSWORD, "")))


def _load_key_text(context: ssl.SSLContext, pem: str, kafka: Mapping[str, object]) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem") as file:  # with mode 0600
        file.write(pem)
        file.flush()
        _load_key(context, file.name, kafka)


def _reading(option: str, what: str, load: Callable[[], object]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InvalidOptionError(
            f"{what} of option {option} cannot be used on this host ({_reason(error)})",
            "set PEM with the certificates or the key that the option needs, and kafka.ssl.key.password if the key is "
            "encrypted; a file must be readable on the driver and on every executor",
        ) from None


def _reason(error: Exception) -> str:
    """The reason that OpenSSL or the system reports; never file contents."""
    if isinstance(error, ssl.SSLError):
        return re.sub(r"\s*\(_ssl\.c:\d+\)", "", error.reason or str(error.args[-1]))
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else type(error).__name__


_PEM_MARK = re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]+)-----")


def pem_blocks(text: str, kind: str) -> str:
    """The PEM blocks of `text` whose name ends with `kind`, on lines of their own as OpenSSL wants them.

    Java also reads PEM text whose lines were joined with spaces; so does this function. Empty without such blocks.
    """
    blocks = [(name, body) for name, body in _blocks(text) if name.endswith(kind)]
    return "".join(f"-----BEGIN {name}-----\n{_lines(body)}\n-----END {name}-----\n" for name, body in blocks)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Name and body of each block whose BEGIN and END have the same name, in one pass over the text."""
    for begin, end in pairwise(_PEM_MARK.finditer(text)):
        if (begin[1], end[1]) == ("BEGIN", "END") and begin[2] == end[2]:
            yield begin[2], text[begin.end() : end.start()]


def _lines(body: str) -> str:
    if ":" in body:  # the headers of an old encrypted key: lines matter
        return body.strip("\n")
    base64 = "".join(body.split())
    return "\n".join(base64[at : at + 64] for at in range(0, len(base64), 64))
