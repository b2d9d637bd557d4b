"""The JSON of `coop-kafka audit`, for docs/json.md."""

from pages.json_fields import PARTITION, STABLE, TOPIC, Document, Field, each

_COUNTS = {
    "start": "First offset of the audit.",
    "until": "The audit ends before this offset.",
    "records": "Records that are done, and still in Kafka.",
    "rows": "Rows of the sink in these offsets.",
    "lost": "Records without a row.",
    "repeated": "Records with more than one row.",
    "out_of_order": "Records out of the order of their key.",
    "dead_lettered": "Records in the dead-letter topic, not in the sink.",
    "waiting": "Records that are not done, in gaps above the stable offset.",
    "parked": "Of them, those of parked keys and lanes.",
    "deferred": "Of them, those of deferred keys.",
    "ahead": "Rows of records that are not done.",
    "gone": "Rows whose offset is no record of Kafka.",
}

AUDIT = Document(
    "audit",
    "The verdict, with exit code 0 or 3; see [audit.md](audit.md).",
    (
        Field("good", "boolean", "Whether no partition has a fault."),
        Field("group", "text", "Name of the group."),
        Field("sink", "text", "The sink."),
        Field("notes", "list of text", "What the group does not know."),
        *each(
            "partitions",
            TOPIC,
            PARTITION,
            STABLE,
            *(Field(name, "integer", meaning, name.upper().replace("_", " ")) for name, meaning in _COUNTS.items()),
            Field(
                "begin",
                "integer or null",
                "If the sink lacks exactly the first records of the audit: the offset after them.",
            ),
            Field("unordered", "text", "Why the order is not checked; empty if it is."),
            *each(
                "faults",
                Field("kind", "text", "`lost`, `repeated` or `out of order`.", "FAULT"),
                Field("offsets", "text", "Its offsets, inclusive.", "OFFSETS"),
                Field("batches", "list of text", "Batches of its rows, or of neighbours of its key.", "BATCH"),
                Field("why", "text", "The reason.", "WHY"),
            ),
        ),
    ),
)
