"""Errors of what the user wrote: options, schema, checkpoint, environment. Nothing was read and nothing committed."""

from coordinator.errors.base import CoopKafkaError


class ConfigurationError(CoopKafkaError):
    """The query or the command is set up in a way that cannot work. Nothing was read and nothing was committed."""

    name = "INVALID_CONFIGURATION"


class UnknownOptionError(ConfigurationError):
    """An option, a property or a policy has a name that coop-kafka does not know."""

    name = "UNKNOWN_OPTION"
    usual_remedy = "use the name that the message suggests, or one of docs/options.md"


class InvalidOptionError(ConfigurationError):
    """A known option has a value that cannot be used."""

    name = "INVALID_OPTION"
    usual_remedy = "set the option to a value within the limit that the message names"


class ConflictingOptionsError(ConfigurationError):
    """Two options exclude one another."""

    name = "CONFLICTING_OPTIONS"
    usual_remedy = "remove one of the two options, or change it as the message describes"


class MissingOptionError(ConfigurationError):
    """A required option is absent."""

    name = "MISSING_OPTION"
    usual_remedy = "add the option that the message names"


class SchemaMismatchError(ConfigurationError):
    """The query names a schema that this source does not have."""

    name = "SCHEMA_MISMATCH"
    usual_remedy = "remove .schema(...), and select or cast columns after load()"


class EnvironmentMismatchError(ConfigurationError):
    """The Python of a Spark process, or of the command, lacks a package or memory, or has another version of one."""

    name = "ENVIRONMENT_MISMATCH"
    usual_remedy = "install coop-kafka with its dependencies on driver and executors; set PYSPARK_PYTHON to that Python"


class CheckpointMismatchError(ConfigurationError):
    """The checkpoint belongs to another group, to other topics or to a newer version, or its offset is damaged."""

    name = "CHECKPOINT_MISMATCH"
    usual_remedy = "start the query with a new checkpointLocation and a new output; the group's positions stay in Redis"


class FilterChangedError(ConfigurationError):
    """An unfinished batch of the checkpoint was planned with other filter options: its replay would differ."""

    name = "FILTER_CHANGED"
    usual_remedy = (
        "stop the other members of the group; run the query once more with the earlier filter options and "
        "trigger(availableNow=True), which ends without an unfinished batch; then change them in all members; or start "
        "with a new checkpointLocation and a new output"
    )


class SinkSkippedBatchError(ConfigurationError):
    """The sink completed a batch without reading it. The records stay unread and uncommitted; nothing is lost."""

    name = "SINK_SKIPPED_BATCH"
    usual_remedy = (
        "set a new output for the query: the old output has this batch id already. If the query drops records "
        "unread on purpose, set allowUnreadBatches=true"
    )


class FunctionNotAllowedError(ConfigurationError):
    """COOP_FUNCTIONS in the driver's environment does not allow this function."""

    name = "FUNCTION_NOT_ALLOWED"
    usual_remedy = "name an allowed function as module:function, or ask the administrator of the driver's host"
