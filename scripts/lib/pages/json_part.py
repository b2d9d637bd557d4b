"""The JSON of `coop-kafka COMMAND --json`, for docs/command.md. A field of several documents is told once."""

from collections import Counter

from coordinator.tools.fields import Field
from pages.json_changes import CHANGES
from pages.json_fields import Document
from pages.json_looks import LOOKS
from pages.markdown import table

_HEAD = """## JSON

With `--json`, each command prints one JSON object on stdout; `events` prints one object on each line. `exporter`,
`picture` and `ui` have no JSON, and `backup` always prints it.

- Names in snake case are the words of the table's columns. `_ms` means milliseconds, `_s` seconds.
- Times are milliseconds since 1970, by the clock of Redis. Names and keys are as they are, in escapes of JSON.
- `partitions[]` is a list of objects, which may be empty, and `partitions[].topic` a field of each.
- A field keeps its name, its type and its unit. Newer versions may add fields.
- An error is one line on stderr, as without `--json`, and stdout is empty. Only `check` and `audit` print their object
  with other [exit codes](operations.md#the-command) than 0 too.

Several commands have these fields, and list only their names:

"""
_COLUMNS = ("field", "type", "column", "meaning")

DOCUMENTS = (*LOOKS, *CHANGES)

Told = tuple[str, str, str, str]
Lists = dict[str, tuple[Field, ...]]


def _told(field: Field) -> Told:
    """A field as a row, without the list that has it."""
    return f"`{field.name.rpartition('.')[2]}`", field.kind, field.column, field.meaning


def _lists(document: Document) -> Lists:
    """The fields list by list; those of the document itself have no name."""
    names = dict.fromkeys(field.name.rpartition(".")[0] for field in document.fields)
    return {name: tuple(f for f in document.fields if f.name.rpartition(".")[0] == name) for name in names}


_HOME = {tuple(map(_told, fields)): (d.verb, name) for d in LOOKS for name, fields in _lists(d).items() if name}


def _alike(document: Document) -> dict[str, tuple[str, str]]:
    """The lists of a document that are those of another one: its command, and their name there."""
    homes = ((name, _HOME.get(tuple(map(_told, fields)))) for name, fields in _lists(document).items())
    return {name: home for name, home in homes if home and home != (document.verb, name)}


def _rest(document: Document) -> Lists:
    return {name: fields for name, fields in _lists(document).items() if name not in _alike(document)}


_TIMES = Counter(_told(f) for document in DOCUMENTS for fields in _rest(document).values() for f in fields)
_SHARED = {told[0]: told for told, times in reversed(_TIMES.most_common()) if times > 1}  # the most common of a name


def _is_shared(field: Field) -> bool:
    return _told(field) in _SHARED.values()


def head() -> str:
    """What holds for all documents, and the fields that several of them have."""
    return _HEAD + table(_COLUMNS, sorted(_SHARED.values()))


def of_command(name: str) -> str:
    """The JSON of a command; empty if it has none."""
    return "".join(f"\n{_part(document)}" for document in DOCUMENTS if document.verb == name)


def _part(document: Document) -> str:
    rest = _rest(document)
    own = [(f"`{f.name}`", *_told(f)[1:]) for fields in rest.values() for f in fields if not _is_shared(f)]
    names = {
        where: ", ".join(f"`{f.name.rpartition('.')[2]}`" for f in fields if _is_shared(f))
        for where, fields in rest.items()
    }
    lists = [f"`{where}`: {each}" if where else each for where, each in names.items() if each]
    lists += (f"`{name}`: as `{there}` of [{verb}](#{verb})" for name, (verb, there) in _alike(document).items())
    listed = f" Fields: {'; '.join(lists)}." if lists else ""
    return f"**JSON.** {document.about}{listed}\n" + (f"\n{table(_COLUMNS, own)}" if own else "")
