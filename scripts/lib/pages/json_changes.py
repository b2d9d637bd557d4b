"""The JSON of the verbs that change a group or copy it, for docs/command.md."""

from coordinator.tools.fields import Field, fields_of
from coordinator.tools.moving.exporting import Exported
from coordinator.tools.operations.redrive_view import RedriveView
from coordinator.tools.operations.reset_plan import PartitionReset
from pages.json_fields import EXECUTED, KEYS, STRIKES, Document, each

CHANGES = (
    Document("release", "The suspects, lanes and keys that were released.", (*STRIKES, *KEYS)),
    Document(
        "drain",
        "The members whose ranges move, or would move.",
        (
            EXECUTED,
            Field("members", "list of text", "Their ids."),
            Field("seconds", "number", "The wait."),
            Field("done", "boolean", "Whether other members own all ranges now."),
        ),
    ),
    Document(
        "policy",
        "The policies; after a dry run, as they would be.",
        (EXECUTED, Field("policy", "object", "Name to boolean.")),
    ),
    Document(
        "reset-offsets",
        "The moved partitions.",
        (
            EXECUTED,
            Field("reset", "integer or null", "The new reset epoch; null after a dry run."),
            *each("partitions", PartitionReset, Field("by", "integer", "The difference.", "BY")),
        ),
    ),
    Document(
        "redrive",
        "The dead letters.",
        (
            EXECUTED,
            Field("from", "text", "The dead-letter topic."),
            Field("to", "text", "The topic that the records came from."),
            Field("parked", "integer", "Quarantined keys of the topic: they are not dead letters."),
            *fields_of(RedriveView),
        ),
    ),
    Document(
        "import",
        "Where the group begins, or would begin.",
        (
            EXECUTED,
            Field("partitions[].topic", "text", "Topic.", "TOPIC"),
            Field("partitions[].partition", "integer", "Number of the partition.", "PARTITION"),
            Field("partitions[].position", "integer", "The first offset that may have to be read.", "BEGINS AT"),
            Field(
                "partitions[].above",
                "list of text",
                "Later offsets that are processed; the table counts them.",
                "DONE LATER",
            ),
            Field(
                "partitions[].clipped", "boolean", "Whether it is only the nearest offset that the log has.", "the star"
            ),
            Field(
                "without", "list of text", "Partitions without an offset, `topic-partition`. They begin at earliest."
            ),
        ),
    ),
    Document(
        "export",
        "The offsets for plain consumers.",
        (
            EXECUTED,
            *each("partitions", Exported),
        ),
    ),
    Document(
        "delete",
        "What was deleted, or would be.",
        (
            EXECUTED,
            Field("keys", "integer", "Keys in Redis."),
            Field("mirrored", "list of text", "Partitions with offsets in Kafka's group, `topic-partition`."),
        ),
    ),
    Document(
        "restore",
        "The copy that was loaded, or would be.",
        (
            EXECUTED,
            Field("keys", "integer", "Keys of the copy."),
            Field("taken_ms", "integer", "Time of the copy."),
        ),
    ),
    Document(
        "backup",
        "The copy, for `restore`, with or without `--json`.",
        (
            Field("coop-kafka", "integer", "Version of the form."),
            Field("group", "text", "Name of the group."),
            Field("taken_ms", "integer", "Time of the copy."),
            Field("keys", "object", "Keys of the group in Redis, each with its fields."),
        ),
    ),
)
