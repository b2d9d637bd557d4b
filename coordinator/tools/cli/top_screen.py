"""`coop-kafka top` on a terminal: the plane of a partition, lanes or partitions, and events. A textual application.

    Group orders-to-lake: Stable, 3 members, lag 320 records, 5,800 offsets  about
    orders-0   stable 3,200   end 9,000                         the plane of the partition of the row under the cursor
    ████████////▒▒······
    PARTITION  HASHES  MEMBER  LAG ...                          lanes, or partitions after Tab
    12:00:01 assigned m-1: ...                                  events

Looks run in a thread, so that the keys work while a server does not answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from coordinator.errors import CoopKafkaError
from coordinator.redis.group_state import GroupEvent
from coordinator.redis.lane_lines import behind_s
from coordinator.tools.cli.printing import counted, moment, printable
from coordinator.tools.cli.table_rows import line_of
from coordinator.tools.cli.tables import cost_text, lag_text
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.plane import Plane, plane
from coordinator.tools.operations.plane_text import LEGEND, rows
from coordinator.tools.operations.top_view import LaneAtWork, TopView
from coordinator.tools.operations.views import PartitionView, worst_first
from coordinator.values.subscription import TopicPartition

COLOURS = ("blue", "green", "magenta", "yellow", "cyan", "red")
"""The colours of owners, in the order of their names in a partition."""

PLANE_ROWS = range(2, 12)
"""The least and the most rows of the plane; between them, it takes a third of the screen."""

TopRow = tuple[TopicPartition, tuple[str, ...]]
"""A partition, and the cells of a row."""


@dataclass(frozen=True, slots=True)
class TopLook:
    """The group, and what is shown of it."""

    look: GroupLook
    top: TopView
    events: tuple[GroupEvent, ...]


def _lane(lane: LaneAtWork) -> TopRow:
    tp = TopicPartition(lane.topic, lane.partition)
    age, drain = behind_s(lane.lag_s, lane.lag_at_least), "-" if lane.drain_s is None else f"{lane.drain_s:,}"
    cells = str(tp), lane.hashes, lane.member, f"{lane.lag:,}", age, f"{lane.rate:.1f}", drain, cost_text(lane)
    return tp, (*cells, str(lane.quota), lane.why)


def _partition(p: PartitionView) -> TopRow:
    numbers = p.lag, p.stable, p.end, p.gaps, len(p.lanes), len(p.owners)
    return p.tp, (str(p.tp), *("-" if n is None else f"{n:,}" for n in numbers))


LANES = ("PARTITION", "HASHES", "MEMBER", "LAG", "LAG S", "RATE", "DRAIN S", "MS/RECORD", "QUOTA", "WHY")
PARTITIONS = ("PARTITION", "LAG", "STABLE", "END", "GAPS", "LANES", "OWNERS")


def table_of(seen: TopLook, *, lanes: bool, words: str, column: int | None) -> list[TopRow]:
    """The rows with these words in a cell, the largest value of a column first; without one, the worst first. Pure."""
    if lanes:
        found = [_lane(lane) for lane in seen.top.lanes]
    else:
        found = [_partition(p) for p in worst_first(seen.look.view.partitions)]
    found = [row for row in found if words.lower() in " ".join(row[1]).lower()]
    return found if column is None else sorted(found, key=lambda row: (-_number(row[1][column]), row[1][column]))


def _number(cell: str) -> float:
    try:
        return float(cell.replace(",", "").lstrip(">~"))
    except ValueError:
        return -1.0


def drawn(seen: Plane, columns: int, height: int) -> Text:
    """The plane in characters, under a line about the partition and its owners. Pure."""
    text = line_of(f"{seen.tp}  stable {seen.stable:,}  end {seen.end:,}  lag {seen.lag:,}  ")
    for number, member in enumerate(seen.members):
        text.append(f" {printable(member)} ", f"reverse {COLOURS[number % len(COLOURS)]}")
    for row in rows(seen, columns, height):
        text.append("\n")
        for characters, owner in row:
            text.append(characters, "" if owner is None else COLOURS[owner % len(COLOURS)])
    return text.append(f"\n{LEGEND}", "dim")


class TopScreen(App[None]):
    """The application. `look` may raise errors of Redis and Kafka: the screen shows them, and looks again."""

    CSS = """
    Screen { overflow: hidden; } Input { display: none; }
    #about { height: auto; } #plane { height: auto; margin: 0 0 1 0; } #rows { height: 1fr; min-height: 3; }
    #events { height: 20%; border-top: solid gray; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "turn", "Lanes or partitions", priority=True),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "all", "All", priority=True),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "coop-kafka top"

    def __init__(self, look: Callable[[], TopLook], every_s: float) -> None:
        super().__init__()
        self._look, self._every_s, self._seen = look, every_s, look()
        self._lanes, self._words = bool(self._seen.top.lanes), ""
        self._column: int | None = None
        self._shown: list[TopRow] = []

    def compose(self) -> ComposeResult:
        """The widgets, from top to bottom."""
        yield Static(id="about", markup=False)
        yield Static(id="plane", markup=False)
        yield DataTable(id="rows", cursor_type="row")
        yield Input(placeholder="words in any column; Enter to continue", id="words")
        yield Static(id="events", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Show the first look, and look again and again."""
        self._show("")
        self.query_one(DataTable).focus()
        self.set_interval(self._every_s, self.look_again)

    @work(thread=True, exclusive=True)
    def look_again(self) -> None:
        """Look in a thread."""
        try:
            seen, trouble = self._look(), ""
        except CoopKafkaError as error:
            seen, trouble = self._seen, str(error)
        self.call_from_thread(self._came, seen, trouble)

    def _came(self, seen: TopLook, trouble: str) -> None:
        self._seen = seen
        self._show(trouble)

    def _show(self, trouble: str) -> None:
        top = self._seen.top
        keys = f"{counted(top.deferred_keys, 'key')} tried again, {top.parked_keys} parked"
        age = "" if top.end_age_s is None else f" (seen {top.end_age_s:.0f} s ago)"
        members = counted(len(top.members), "member")
        about = line_of(f"Group {top.group!r}: {top.state}, {members}, lag {lag_text(top)}{age}, {keys}")
        about.append(f"\n{printable(trouble)}" if trouble else "", "bold red")
        self.query_one("#about", Static).update(about)
        self._show_rows()
        self._show_plane()
        lines = [
            f"{moment(e.at_ms, 'seconds')} {e.kind} {e.member or '-'}: {e.why}" for e in reversed(self._seen.events)
        ]
        self.query_one("#events", Static).update("\n".join(map(printable, lines)))

    def _show_rows(self) -> None:
        table, titles = self.query_one(DataTable), LANES if self._lanes else PARTITIONS
        at = table.cursor_row
        self._shown = table_of(self._seen, lanes=self._lanes, words=self._words, column=self._column)
        table.clear(columns=True)
        table.add_columns(*(f"{t} ▼" if n == self._column else t for n, t in enumerate(titles)))
        for _, cells in self._shown:
            table.add_row(*map(line_of, cells))
        table.move_cursor(row=min(at, max(0, len(self._shown) - 1)))

    def _show_plane(self) -> None:
        at = self.query_one(DataTable).cursor_row
        tp = self._shown[at][0] if at < len(self._shown) else None
        look = self._seen.look
        there = tp is not None and look.state.segments.get(tp)
        height = max(PLANE_ROWS.start, min(PLANE_ROWS.stop, self.size.height // 3 - 2))
        seen = plane(look.state, tp, look.failing) if tp and there else None
        self.query_one("#plane", Static).update(drawn(seen, self.size.width - 2, height) if seen else "")

    def on_resize(self) -> None:
        """Another size of the terminal: the plane gets its share."""
        self._show_plane()

    def on_data_table_row_highlighted(self) -> None:
        """The cursor has moved: the plane is of the partition of its row."""
        self._show_plane()

    def on_data_table_row_selected(self) -> None:
        """Enter on a partition: its lanes. On a lane: all lanes of its partition."""
        tp, _ = self._shown[self.query_one(DataTable).cursor_row]
        self._lanes, self._words, self._column = True, f"{tp} ", None
        self._show("")

    def action_turn(self) -> None:
        """Lanes instead of partitions, or the other way round."""
        self._lanes, self._words, self._column = not self._lanes, "", None
        self._show("")

    def action_sort(self) -> None:
        """By the next column with numbers; after the last one, the worst first."""
        numbers: Sequence[int] = range(3, 9) if self._lanes else range(1, 7)
        following = [n for n in numbers if self._column is None or n > self._column]
        self._column = following[0] if following else None
        self._show_rows()

    def action_filter(self) -> None:
        """Ask for words."""
        asked = self.query_one(Input)
        asked.display = True
        asked.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The words."""
        self._words = event.value
        self._close()

    def action_all(self) -> None:
        """Show all rows again."""
        self._words = self.query_one(Input).value = ""
        self._close()

    def _close(self) -> None:
        self.query_one(Input).display = False
        self.query_one(DataTable).focus()
        self._show("")
