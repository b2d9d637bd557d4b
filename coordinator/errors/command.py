"""Errors of the command `coop-kafka` itself."""

from coordinator.errors.base import CoopKafkaError


class OutputError(CoopKafkaError):
    """The command did its work, and then could not write its output."""

    name = "OUTPUT_FAILED"
    usual_remedy = "write the output to another place; look at the group before you run a command again that changes it"


class WrongUsageError(CoopKafkaError):
    """An argument or a flag of the command is missing, unknown or has a value that cannot be used."""

    name = "WRONG_USAGE"
    usual_remedy = "look at the arguments of the command with --help"


class SinkError(CoopKafkaError):
    """The sink of an audit cannot be read, or lacks a column that the audit needs."""

    name = "SINK_UNREADABLE"
    usual_remedy = "pass a sink with the columns partition and offset, and check that this user may read it"
