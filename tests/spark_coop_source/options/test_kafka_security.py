"""TLS and login options: arguments of kafka-python, and refusals as in Java's client."""

import pytest

from coordinator.errors import ConfigurationError, ConflictingOptionsError, InvalidOptionError, MissingOptionError
from coordinator.kafka.client import Secret
from spark_coop_source.options.kafka_security import security_arguments

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nBBBB\n-----END ENCRYPTED PRIVATE KEY-----\n"
USER = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="secret";'
SCRAM = 'kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="secret";'
TLS = {"ssl_check_hostname": True, "ssl_versions": ("TLSv1.2", "TLSv1.3")}
PEM_FILE = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"security_protocol": "PLAINTEXT"}, id="no option"),
        pytest.param(
            {"security.protocol": "plaintext", **PEM_FILE, "sasl.mechanism": "PLAIN"},
            {"security_protocol": "PLAINTEXT"},
            id="TLS and login settings without a protocol that uses them",
        ),
        pytest.param({"security.protocol": "SSL"}, {"security_protocol": "SSL", **TLS}, id="the system's authorities"),
        pytest.param(
            {"security.protocol": "SSL", **PEM_FILE},
            {"security_protocol": "SSL", **TLS, "ssl_cafile": "/ca.pem"},
            id="authorities from a file",
        ),
        pytest.param(
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": f"# mine\n{CERTIFICATE}",
            },
            {"security_protocol": "SSL", **TLS, "ssl_trust_pem": CERTIFICATE},
            id="authorities in the option itself",
        ),
        pytest.param(
            {"security.protocol": "SSL", "ssl.truststore.certificates": CERTIFICATE.replace("\n", " ")},
            {"security_protocol": "SSL", **TLS, "ssl_trust_pem": CERTIFICATE},
            id="lines joined by spaces, as Java allows",
        ),
        pytest.param(
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "pem",
                "ssl.keystore.location": "/key.pem",
                "ssl.key.password": "secret",
            },
            {"security_protocol": "SSL", **TLS, "ssl_certfile": "/key.pem", "ssl_password": "secret"},
            id="a client's key from a file",
        ),
        pytest.param(
            {"security.protocol": "SSL", "ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CERTIFICATE},
            {"security_protocol": "SSL", **TLS, "ssl_key_pem": KEY + CERTIFICATE},
            id="a client's key in the option itself",
        ),
        pytest.param(
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""},
            {"security_protocol": "SSL", **TLS, "ssl_check_hostname": False},
            id="a certificate of any host",
        ),
        pytest.param(
            {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.3"},
            {"security_protocol": "SSL", **TLS, "ssl_versions": ("TLSv1.3",)},
            id="one version of TLS",
        ),
        pytest.param(
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": USER},
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": "u",
                "sasl_plain_password": "secret",
            },
            id="user name and password",
        ),
        pytest.param(
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM, **PEM_FILE},
            {
                "security_protocol": "SASL_SSL",
                **TLS,
                "ssl_cafile": "/ca.pem",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_plain_username": "u",
                "sasl_plain_password": "secret",
            },
            id="SCRAM over TLS, the module under a shaded name",
        ),
        pytest.param(
            {"security.protocol": "SASL_PLAINTEXT"},
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"},
            id="Kerberos by default, as in Java",
        ),
        pytest.param(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.jaas.config": "x.Krb5LoginModule required useTicketCache=true serviceName=kafka;",
            },
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "GSSAPI",
                "sasl_kerberos_service_name": "kafka",
            },
            id="Kerberos with a ticket cache and a service name",
        ),
        pytest.param(
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"},
            {"security_protocol": "SASL_SSL", **TLS, "sasl_mechanism": "AWS_MSK_IAM"},
            id="Amazon's login",
        ),
    ],
)
def test_security_options_become_arguments(given: dict[str, str], expected: dict[str, object]) -> None:
    arguments = security_arguments(given)
    assert arguments == expected
    assert "secret" not in repr(arguments)
    assert "BBBB" not in repr(arguments)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"type": "JKS", "location": "/store.jks"}, "keytool", id="a JKS store"),
        pytest.param({"type": "PKCS12", "location": "/store.p12"}, "keytool", id="a PKCS12 store"),
        pytest.param({"type": "jks"}, "keytool", id="a JKS store without a file"),
        pytest.param({"location": "/store.jks"}, "is a JKS store, as in Java", id="no type, which means JKS"),
        pytest.param({"type": "PEM", "location": "/a.pem", "password": "secret"}, "has no password", id="a password"),
    ],
)
def test_a_store_is_refused_by_name_with_the_remedy(store: str, given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError) as refused:
        security_arguments({f"ssl.{store}.{name}": text for name, text in given.items()})
    assert f"kafka.ssl.{store}." in refused.value.what
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        pytest.param({"security.protocol": "TLS"}, InvalidOptionError, "SASL_SSL", id="an unknown protocol"),
        pytest.param(
            {"sasl.login.callback.handler.class": "org.example.Handler"},
            InvalidOptionError,
            "loads no Java class",
            id="a login by a Java class",
        ),
        pytest.param({"sasl.mechanism": "DIGEST-MD5"}, InvalidOptionError, "DIGEST-MD5", id="an unknown mechanism"),
        pytest.param(
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            MissingOptionError,
            "kafka.sasl.jaas.config",
            id="no user name",
        ),
        pytest.param(
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": USER[:-1]},
            InvalidOptionError,
            "semicolon",
            id="no semicolon",
        ),
        pytest.param(
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'x.PlainLoginModule required password="secret";'},
            InvalidOptionError,
            "username or password is missing",
            id="no user name in the login module",
        ),
        pytest.param(
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": USER.replace("Plain", "Krb5")},
            InvalidOptionError,
            "user name and password only",
            id="a login module for something else",
        ),
        pytest.param(
            {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": SCRAM.replace(";", ' tokenauth="true";')},
            InvalidOptionError,
            "user name and password only",
            id="a delegation token",
        ),
        pytest.param(
            {"sasl.jaas.config": 'x.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p";'},
            InvalidOptionError,
            "kinit",
            id="a keytab",
        ),
        pytest.param(
            {"ssl.endpoint.identification.algorithm": "ldaps"}, InvalidOptionError, "https", id="another algorithm"
        ),
        pytest.param({"ssl.enabled.protocols": "TLSv1.1"}, InvalidOptionError, "TLSv1.2", id="an old version of TLS"),
        pytest.param({"ssl.enabled.protocols": " "}, InvalidOptionError, "TLSv1.2", id="no version of TLS"),
        pytest.param({"ssl.keystore.key": KEY}, MissingOptionError, "certificate.chain", id="a key alone"),
        pytest.param(
            {"ssl.keystore.certificate.chain": CERTIFICATE}, MissingOptionError, "ssl.keystore.key", id="a chain alone"
        ),
        pytest.param(
            {**PEM_FILE, "ssl.truststore.certificates": CERTIFICATE},
            ConflictingOptionsError,
            "are both set",
            id="authorities twice",
        ),
        pytest.param(
            {"ssl.truststore.certificates": "secret"}, InvalidOptionError, "no CERTIFICATE", id="text that is no PEM"
        ),
        pytest.param(
            {"ssl.keystore.key": "secret", "ssl.keystore.certificate.chain": CERTIFICATE},
            InvalidOptionError,
            "no PRIVATE KEY",
            id="a key that is no PEM",
        ),
    ],
)
def test_security_options_are_refused(given: dict[str, str], error: type[ConfigurationError], words: str) -> None:
    with pytest.raises(error) as refused:
        security_arguments(given)
    assert words in str(refused.value)
    assert refused.value.remedy
    assert "secret" not in str(refused.value)


def test_a_secret_is_a_text_that_does_not_show_itself() -> None:
    secret = Secret("secret")
    assert secret == "secret"
    assert secret.encode() == b"secret"
    assert "secret" not in repr({"password": secret})
