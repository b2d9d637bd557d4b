"""A broker with access rights: over its TLS listener, its user may do what a test grants; over the plain one, all."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

import servers
from secure_listener import SecureListener
from topics import Kafka

RIGHTS = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",  # the controller, the broker, and everybody at the plain listener
)


@dataclass(frozen=True, slots=True)
class GuardedBroker:
    """The broker, and its one user."""

    kafka: Kafka
    listener: SecureListener

    def grant(self, kind: ResourceType, name: str, *operations: ACLOperation) -> None:
        """Permit the user these operations."""
        user, pattern = f"User:{self.listener.user}", ResourcePattern(kind, name)
        allowed = [ACL(user, "*", operation, ACLPermissionType.ALLOW, pattern) for operation in operations]
        with closing(KafkaAdminClient(bootstrap_servers=self.kafka.bootstrap)) as admin:
            admin.create_acls(allowed)

    @property
    def settings(self) -> dict[str, object]:
        """The user's Kafka arguments."""
        return {
            "bootstrap_servers": self.listener.bootstrap,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": self.listener.user,
            "sasl_plain_password": self.listener.password,
            "ssl_cafile": str(self.listener.authority),
        }


@contextmanager
def guarded_broker(folder: Path, certificates: Path) -> Iterator[GuardedBroker]:
    """A broker of this kind, which keeps its data in `folder`."""
    secure = servers.Secure(certificates / "server.pem", "alice", "wonder-land=1")
    server = servers.start_broker(folder, secure, more=RIGHTS)
    try:
        listener = SecureListener(
            str(server.secure_address), certificates / "authority.pem", secure.user, secure.password
        )
        yield GuardedBroker(Kafka(server.address), listener)
    finally:
        server.stop()
