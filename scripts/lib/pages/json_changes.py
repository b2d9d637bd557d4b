"""The JSON of the verbs that change a group or copy it, for docs/json.md."""

from pages.json_fields import EXECUTED, KEYS, PARTITION, STRIKES, TOPIC, Document, Field, each

CHANGES = (
    Document("release", "The strikes and failing keys that were released.", (*STRIKES, *KEYS)),
    Document(
        "drain",
        "The members that hand their ranges over.",
        (
            Field("members", "list of text", "Their ids."),
            Field("seconds", "number", "The wait."),
            Field("done", "boolean", "Whether other members own all ranges now."),
        ),
    ),
    Document("policy", "The policies.", (Field("policy", "object", "Name to boolean."),)),
    Document(
        "reset-offsets",
        "The moved partitions.",
        (
            EXECUTED,
            Field("reset", "integer or null", "The new reset epoch; null after a dry run."),
            *each(
                "partitions",
                TOPIC,
                PARTITION,
                Field("before", "integer", "Stable offset before.", "STABLE, WAS"),
                Field("after", "integer", "All its positions after.", "RESET TO, IS NOW"),
                Field("by", "integer", "The difference.", "BY"),
                Field("clipped", "boolean", "Whether it is only the nearest offset that the log has.", "the star"),
            ),
        ),
    ),
    Document(
        "redrive",
        "The dead letters.",
        (
            EXECUTED,
            Field("from", "text", "The dead-letter topic."),
            Field("to", "text", "The topic that the records came from."),
            Field("parked", "integer", "Keys of the topic that wait for `release`. They are no dead letters."),
            Field("records", "integer", "Records to redrive."),
            Field("keys", "integer", "Their keys."),
            Field("others", "integer", "Dead letters of other groups or topics, which are left out."),
            Field("strange", "integer", "Records of the dead-letter topic that are no dead letters."),
            Field("out_of_order", "integer", "Records that come after later records of their keys."),
            Field("late_keys", "list of object or null", "The keys of these records; null with `--execute`."),
            *each(
                "late_keys",
                TOPIC,
                PARTITION,
                Field("key_hash", "text", "Hash of the key, 16 hex digits.", "KEY HASH"),
                Field("first_offset", "integer", "Where its first dead letter was in the topic.", "FIRST OFFSET"),
                Field("records", "integer", "Its records to redrive.", "RECORDS"),
                Field("out_of_order", "integer", "Those that a later record precedes.", "OUT OF ORDER"),
                Field("later_records", "integer", "Records of the key after the first one.", "LATER RECORDS"),
            ),
        ),
    ),
    Document(
        "import",
        "Where the group begins, or would begin.",
        (
            EXECUTED,
            *each(
                "partitions",
                TOPIC,
                PARTITION,
                Field("position", "integer", "The first offset that may have to be read.", "BEGINS AT"),
                Field("above", "list of text", "Later offsets that are done; the table counts them.", "DONE LATER"),
                Field("clipped", "boolean", "Whether it is only the nearest offset that the log has.", "the star"),
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
            *each(
                "partitions",
                TOPIC,
                PARTITION,
                Field("offset", "integer", "The stable offset.", "OFFSET"),
                Field("reach", "integer", "The end of the done records.", "READ AGAIN UP TO"),
            ),
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
