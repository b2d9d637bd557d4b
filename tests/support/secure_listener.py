"""The listener of the test broker that wants TLS and a password."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SecureListener:
    """The options for the broker over SASL_SSL with SCRAM-SHA-512."""

    bootstrap: str
    authority: Path  # PEM file of the certificate authority to trust
    user: str
    password: str = field(repr=False)
