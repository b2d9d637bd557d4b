"""A client's arguments: real handshakes with the TLS settings made from plain, picklable values."""

import os
import pickle
import socket
import ssl
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from coordinator.errors import EnvironmentMismatchError, InvalidOptionError
from coordinator.kafka.client import client_arguments, tls_context
from spark_coop_source.options.kafka_security import security_arguments

AUTHORITY, STRANGER = trustme.CA(), trustme.CA()
CA_PEM = AUTHORITY.cert_pem.bytes().decode()
CLIENT = AUTHORITY.issue_cert("client.example")
CHAIN = "".join(blob.bytes().decode() for blob in CLIENT.cert_chain_pems)
_KEY = load_pem_private_key(CLIENT.private_key_pem.bytes(), None)
KEY = CLIENT.private_key_pem.bytes().decode()
LOCKED_KEY = _KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")).decode()


def tls(**given: str) -> dict[str, object]:
    """The Kafka arguments, as they arrive in another process."""
    kafka = security_arguments({"security.protocol": "SSL", **given})
    arrived: dict[str, object] = pickle.loads(pickle.dumps(kafka))
    return arrived


def handshake(kafka: Mapping[str, object], host: str = "broker.example") -> tuple[str | None, bool]:
    """The TLS version agreed on with a broker that asks for a client certificate, and whether it got one."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("broker.example").configure_cert(server)
    AUTHORITY.configure_trust(server)
    server.verify_mode = ssl.CERT_OPTIONAL
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    theirs.settimeout(10)
    with ours, theirs, ThreadPoolExecutor(1) as thread:
        accepted = thread.submit(_accept, server, theirs)
        context = client_arguments(kafka)["ssl_context"]
        with context.wrap_socket(ours, server_hostname=host) as connection:
            connection.recv(1)
            return connection.version(), accepted.result()


def _accept(server: ssl.SSLContext, theirs: socket.socket) -> bool:
    try:
        with server.wrap_socket(theirs, server_side=True) as connection:
            connection.send(b"!")
            return connection.getpeercert() is not None
    except ssl.SSLError:
        return False


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    path.write_text(f"some words before\n{CA_PEM}")
    return str(path)


def test_authorities_from_a_file_are_trusted(ca_file: str) -> None:
    assert handshake(tls(**{"ssl.truststore.type": "PEM", "ssl.truststore.location": ca_file})) == ("TLSv1.3", False)


@pytest.mark.parametrize("text", [CA_PEM, CA_PEM.replace("\n", " ")], ids=["on lines", "joined by spaces"])
def test_authorities_in_the_option_itself_are_trusted(text: str) -> None:
    assert handshake(tls(**{"ssl.truststore.certificates": text})) == ("TLSv1.3", False)


def test_a_version_of_tls_can_be_chosen() -> None:
    options = {"ssl.truststore.certificates": CA_PEM, "ssl.enabled.protocols": "TLSv1.2"}
    assert handshake(tls(**options)) == ("TLSv1.2", False)


@pytest.mark.parametrize(
    ("key", "password"),
    [
        pytest.param(KEY, {}, id="an open key"),
        pytest.param(LOCKED_KEY, {"ssl.key.password": "secret"}, id="an encrypted key"),
    ],
)
@pytest.mark.parametrize("inline", [True, False], ids=["in the option itself", "from a file"])
def test_a_client_shows_its_certificate(key: str, password: dict[str, str], inline: bool, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text(key + CHAIN)
    store = (
        {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": CHAIN}
        if inline
        else {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    )
    options = tls(**{"ssl.truststore.certificates": CA_PEM}, **store, **password)
    assert handshake(options) == ("TLSv1.3", True)


def test_a_key_from_an_option_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tls_context(tls(**{"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CHAIN}))
    assert os.listdir(tmp_path) == []  # noqa: PTH208  nothing to join


@pytest.mark.parametrize(
    ("options", "host"),
    [
        pytest.param({"ssl.truststore.certificates": CA_PEM}, "other.example", id="a certificate of another host"),
        pytest.param(
            {"ssl.truststore.certificates": STRANGER.cert_pem.bytes().decode()}, "broker.example", id="a stranger"
        ),
        pytest.param({}, "broker.example", id="an authority that the system does not know"),
    ],
)
def test_a_broker_is_not_trusted(options: dict[str, str], host: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tls(**options), host)


def test_any_host_is_accepted_on_request_but_no_stranger() -> None:
    any_host = {"ssl.endpoint.identification.algorithm": ""}
    assert handshake(tls(**{"ssl.truststore.certificates": CA_PEM}, **any_host), "other.example")[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tls(**any_host))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/nowhere/ca.pem"},
            ["/nowhere/ca.pem", "kafka.ssl.truststore.location", "No such file", "every executor"],
            id="a file that is not there",
        ),
        pytest.param(
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": os.devnull},
            [os.devnull, "cannot be used"],
            id="a file without certificates",
        ),
        pytest.param(
            {"ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----"},
            ["kafka.ssl.truststore.certificates"],
            id="a certificate that is none",
        ),
        pytest.param(
            {"ssl.keystore.key": LOCKED_KEY, "ssl.keystore.certificate.chain": CHAIN},
            ["kafka.ssl.keystore.key", "kafka.ssl.key.password"],
            id="an encrypted key without a password; there is no prompt",
        ),
        pytest.param(
            {"ssl.keystore.key": LOCKED_KEY, "ssl.keystore.certificate.chain": CHAIN, "ssl.key.password": "a secret"},
            ["kafka.ssl.keystore.key", "kafka.ssl.key.password"],
            id="a wrong password",
        ),
        pytest.param(
            {"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CA_PEM},
            ["kafka.ssl.keystore.key"],
            id="a key that does not belong to the certificate",
        ),
    ],
)
def test_pem_that_cannot_be_used_is_named_but_not_shown(options: dict[str, str], words: list[str]) -> None:
    with pytest.raises(InvalidOptionError) as refused:
        client_arguments(tls(**options))
    assert [word for word in words if word not in str(refused.value)] == []
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_login_without_its_package_fails_before_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)  # as if it were not installed
    kafka = security_arguments({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"})
    with pytest.raises(EnvironmentMismatchError, match="pip install gssapi"):
        client_arguments(kafka)


def test_a_plain_client_gets_the_settings_of_the_query_and_creates_no_topics() -> None:
    assert client_arguments({"bootstrap_servers": ["h:1"], "security_protocol": "PLAINTEXT"}) == {
        "bootstrap_servers": ["h:1"],
        "security_protocol": "PLAINTEXT",
        "client_id": "coop-kafka",
        "allow_auto_create_topics": False,
    }
    assert client_arguments({"client_id": "job", "allow_auto_create_topics": True})["client_id"] == "job"
