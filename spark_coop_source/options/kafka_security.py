"""TLS and login: translates Java's `kafka.security.*`, `kafka.ssl.*` and `kafka.sasl.*` to plain arguments.

As in Java's client, store types and files are always checked, but become arguments only if `security.protocol` uses
them. No IO: `coordinator.kafka.client` reads the files.
"""

from collections.abc import Mapping

from coordinator.errors import ConflictingOptionsError, InvalidOptionError, MissingOptionError
from coordinator.errors.quoting import quoted, shown
from coordinator.kafka import client as kafka_client
from coordinator.kafka.client import Secret, pem_blocks
from coordinator.values.option_kinds import Text, Word
from coordinator.values.options import invalid
from spark_coop_source.options import jaas, oauth

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_JKS_REMEDY = {
    "truststore": "convert it, keytool -list -rfc -keystore STORE > trust.pem, and set kafka.ssl.truststore.type=PEM "
    "and kafka.ssl.truststore.location=trust.pem",
    "keystore": "convert it, keytool -importkeystore -srckeystore STORE -destkeystore store.p12 -deststoretype PKCS12 "
    "and openssl pkcs12 -in store.p12 -out key.pem, and set kafka.ssl.keystore.type=PEM, "
    "kafka.ssl.keystore.location=key.pem and kafka.ssl.key.password",
}


def security_arguments(texts: Mapping[str, str]) -> dict[str, object]:
    """The arguments for the `kafka.*` texts, by Java's name without `kafka.`; raises `ConfigurationError`s."""
    protocol = texts.get("security.protocol", "PLAINTEXT")
    try:
        protocol = Word(PROTOCOLS).parse(protocol)
    except ValueError as error:
        raise invalid("kafka.security.protocol", protocol, str(error), Word(PROTOCOLS).limit) from None
    tls, login = _tls(texts), _login(texts, required=protocol.startswith("SASL"))
    arguments: dict[str, object] = {"security_protocol": protocol}
    arguments |= tls if protocol.endswith("SSL") else {}
    return arguments | (login if protocol.startswith("SASL") else {})


def _tls(texts: Mapping[str, str]) -> dict[str, object]:
    return {
        kafka_client.CHECK_HOSTNAME: _check_hostname(texts),
        kafka_client.VERSIONS: _versions(texts),
        **_truststore(texts),
        **_keystore(texts),
    }


def _check_hostname(texts: Mapping[str, str]) -> bool:
    name = texts.get("ssl.endpoint.identification.algorithm", "https")
    if name.lower() not in ("", "https"):
        limit = "https, or nothing to accept a certificate of any host"
        raise invalid("kafka.ssl.endpoint.identification.algorithm", name, "unknown algorithm", limit)
    return name != ""


def _versions(texts: Mapping[str, str]) -> tuple[str, ...]:
    text = texts.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3")
    versions = tuple(version.strip() for version in text.split(",") if version.strip())
    if not versions or not set(versions) <= {"TLSv1.2", "TLSv1.3"}:
        raise invalid("kafka.ssl.enabled.protocols", text, "unknown version", "TLSv1.2, TLSv1.3 or TLSv1.2,TLSv1.3")
    return versions


def _truststore(texts: Mapping[str, str]) -> dict[str, object]:
    pem = texts.get("ssl.truststore.certificates")
    location = _location(texts, "truststore", "certificates" if pem is not None else None)
    if pem is not None:
        return {kafka_client.TRUST_PEM: Secret(_pem("ssl.truststore.certificates", pem, "CERTIFICATE"))}
    return {} if location is None else {kafka_client.TRUST_FILE: location}


def _keystore(texts: Mapping[str, str]) -> dict[str, object]:
    key, chain = texts.get("ssl.keystore.key"), texts.get("ssl.keystore.certificate.chain")
    location = _location(texts, "keystore", "key" if key is not None else None)
    if (key is None) is not (chain is None):
        missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
        raise MissingOptionError(
            "kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain belong together", f"set kafka.{missing}"
        )
    password = {kafka_client.KEY_PASSWORD: Secret(texts["ssl.key.password"])} if "ssl.key.password" in texts else {}
    if key is not None and chain is not None:
        pem = _pem("ssl.keystore.key", key, "PRIVATE KEY") + _pem(
            "ssl.keystore.certificate.chain", chain, "CERTIFICATE"
        )
        return {kafka_client.KEY_PEM: Secret(pem), **password}
    return {} if location is None else {kafka_client.KEY_FILE: location, **password}


def _location(texts: Mapping[str, str], store: str, inline: str | None) -> str | None:
    """The file of a store whose type is PEM."""
    location, kind = _plain(texts, f"ssl.{store}.location"), texts.get(f"ssl.{store}.type")
    if location is not None and inline is not None:
        raise ConflictingOptionsError(
            f"kafka.ssl.{store}.location and kafka.ssl.{store}.{inline} are both set", "remove one of them"
        )
    if kind is not None and kind.upper() != "PEM":
        what = f"option kafka.ssl.{store}.type = {shown(kind)}: only PEM can be read"
        raise InvalidOptionError(what, _JKS_REMEDY[store])
    if kind is None and location is not None:
        raise InvalidOptionError(
            f"option kafka.ssl.{store}.location = {quoted(location)}: without kafka.ssl.{store}.type the file is a JKS "
            "store, as in Java, and only PEM can be read",
            f"if it is PEM, set kafka.ssl.{store}.type=PEM; else {_JKS_REMEDY[store]}",
        )
    if f"ssl.{store}.password" in texts:
        raise InvalidOptionError(
            f"option kafka.ssl.{store}.password: a PEM store has no password", "remove it; that of an encrypted key is "
            "kafka.ssl.key.password"
        )  # fmt: skip
    return location


def _plain(texts: Mapping[str, str], name: str) -> str | None:
    """A text that messages repeat, and OpenSSL or Kerberos use unchanged."""
    text = texts.get(name)
    try:
        return None if text is None else Text().parse(text)
    except ValueError as error:
        raise invalid(f"kafka.{name}", text or "", str(error), Text().limit) from None


def _pem(name: str, text: str, kind: str) -> str:
    blocks = pem_blocks(text, kind)
    if not blocks:
        limit = f"PEM text from -----BEGIN {kind}----- to -----END {kind}-----"
        raise invalid(f"kafka.{name}", text, f"it holds no {kind}", limit, secret=True)
    return blocks


def _login(texts: Mapping[str, str], *, required: bool) -> dict[str, object]:
    mechanism = texts.get("sasl.mechanism", "GSSAPI").upper()
    module = _module(texts)
    oauth.check_handler(texts.get(oauth.HANDLER))
    if mechanism in PASSWORD_MECHANISMS:
        return {"sasl_mechanism": mechanism, **_password(mechanism, module, required=required)}
    if mechanism == "GSSAPI":
        return {"sasl_mechanism": mechanism, **_kerberos(texts, module)}
    if mechanism == "AWS_MSK_IAM":
        return {"sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, **oauth.tokens(texts, module, required=required)}
    raise InvalidOptionError(
        f"option kafka.sasl.mechanism = {shown(mechanism)}: Python cannot use it by options",
        "use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI with a ticket cache, or AWS_MSK_IAM",
    )


def _module(texts: Mapping[str, str]) -> jaas.LoginModule | None:
    text = texts.get("sasl.jaas.config")
    try:
        return None if text is None else jaas.parse(text)
    except ValueError as error:
        raise invalid("kafka.sasl.jaas.config", "", str(error), jaas.LIMIT, secret=True) from None


def _password(mechanism: str, module: jaas.LoginModule | None, *, required: bool) -> dict[str, object]:
    if module is None:
        if not required:
            return {}
        raise MissingOptionError(
            f"kafka.sasl.mechanism = {mechanism} needs kafka.sasl.jaas.config",
            f"set kafka.sasl.jaas.config to {jaas.LIMIT}",
        )
    if not module.name.endswith(("PlainLoginModule", "ScramLoginModule")) or "tokenauth" in module.options:
        raise invalid(
            "kafka.sasl.jaas.config",
            "",
            f"{mechanism} logs in with user name and password only",
            jaas.LIMIT,
            secret=True,
        )
    if not {"username", "password"} <= module.options.keys():
        raise invalid("kafka.sasl.jaas.config", "", "username or password is missing", jaas.LIMIT, secret=True)
    return {
        "sasl_plain_username": module.options["username"],
        "sasl_plain_password": Secret(module.options["password"]),
    }


def _kerberos(texts: Mapping[str, str], module: jaas.LoginModule | None) -> dict[str, object]:
    options = {} if module is None else {name.lower(): value for name, value in module.options.items()}
    if {"keytab", "principal"} & options.keys() or options.get("usekeytab", "false").lower() == "true":
        raise InvalidOptionError(
            "option kafka.sasl.jaas.config: a keytab cannot be used from Python",
            "run kinit on the driver and on every executor; the ticket cache of the process is used",
        )
    service = _plain(texts, "sasl.kerberos.service.name") or options.get("servicename")
    return {} if service is None else {"sasl_kerberos_service_name": service}
