"""The users of conf/redis.acl, put into a server that a test has for itself."""

from dataclasses import dataclass, field

import redis

from broker_jars import ROOT


@dataclass(frozen=True, slots=True)
class AclUser:
    """One line of conf/redis.acl."""

    name: str
    password: str = field(repr=False)
    rules: tuple[str, ...]

    def url(self, of_server: str) -> str:
        """The server's url with this user in it."""
        return of_server.replace("://", f"://{self.name}:{self.password}@")

    @property
    def granted(self) -> set[str]:
        """The commands that the user may send, as COMMAND names them: `script|load` for a subcommand."""
        return {rule[1:] for rule in self.rules if rule.startswith("+")}

    def added(self, administrator: redis.Redis) -> None:
        """Create the user, or restore it to the rights of its line."""
        administrator.execute_command("ACL", "SETUSER", self.name, "reset", *self.rules)  # type: ignore[no-untyped-call]


def _user(line: str) -> AclUser:
    _, name, *rules = line.split()
    return AclUser(name, next(rule[1:] for rule in rules if rule.startswith(">")), tuple(rules))


QUERY, OPERATOR = map(_user, (ROOT / "conf" / "redis.acl").read_text().splitlines())
"""QUERY: the rights of a query and of the command line. OPERATOR: also SCAN, for backup, restore and delete."""
