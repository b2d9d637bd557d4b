"""Where the tokens of OAUTHBEARER come from: a value that input partitions carry. Imports no Kafka client."""

from dataclasses import dataclass, field

FILE = "file://"


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A place of tokens. Its `repr` shows no secret."""

    url: str  # http:// or https:// of an endpoint, or file:// of a token
    client_id: str = ""
    secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()  # sent to the broker with the token (KIP-342)
