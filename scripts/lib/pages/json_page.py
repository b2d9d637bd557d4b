"""docs/json.md: the JSON of `coop-kafka VERB --json`, made from the tables of its fields."""

from pages.json_changes import CHANGES
from pages.json_fields import Document
from pages.json_looks import LOOKS
from pages.markdown import table

_HEAD = """# JSON of the command

<!-- Made by scripts/reference-pages from the tables in scripts/lib/pages. Do not edit. -->

With `--json`, each verb of `coop-kafka` prints one JSON object on stdout. `events` prints one object on each line.

- Names are in snake case. They are the words of the table's columns, and `column` names that column. A name with a unit
  ends with it: `_ms` are milliseconds, `_s` seconds.
- Times are milliseconds since 1970, by the clock of Redis. Names and keys are as they are, in escapes of JSON.
- `partitions[].topic` is the field `topic` of each object in the list `partitions`. A list may be empty.
- A field keeps its name, its type and its unit. Newer versions may add fields.
- An error is one line on stderr, as without `--json`, and stdout is empty. The
  [exit codes](operations.md#operating-a-group) are the same. Only `check` and `audit`
  print their object with other exit codes too.
"""


DOCUMENTS = (*LOOKS, *CHANGES)


def markdown() -> str:
    """The whole page."""
    return "".join([_HEAD, *map(_section, DOCUMENTS)])


def _section(document: Document) -> str:
    rows = ((f"`{f.name}`", f.kind, f.column, f.meaning) for f in document.fields)
    return f"\n## {document.verb}\n\n{document.about}\n\n" + table(("field", "type", "column", "meaning"), rows)
