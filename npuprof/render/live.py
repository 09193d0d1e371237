"""The live table, on a terminal."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from npuprof.model.events import Event, Finished, PassDone, Waiting
from npuprof.render.progress import Progress
from npuprof.render.table import condition_table
from npuprof.render.text import printable

_AT_MOST_EVERY_S = 0.1


def frame(progress: Progress, width: int) -> RenderableType:
    """One picture of the campaign so far."""
    if progress.started is None:
        return Text(printable(progress.note))
    target = progress.started.target
    label = f"{target.device}  [simulated]" if target.simulated else target.device
    head = Text(printable(f"{progress.started.run_id}  {label}"), style="bold", no_wrap=True, overflow="ellipsis")
    parts: list[RenderableType] = [head, condition_table(progress.rows(), width), Text(progress.where(), style="dim")]
    if progress.note:
        parts.append(Text(printable(progress.note), style="yellow"))
    return Group(*parts)


class LiveTable:
    """Redrawn after a pass, at most ten times a second; gone when the campaign ends, so that the report stands alone."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress()
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn = 0.0

    def __enter__(self) -> LiveTable:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, value, trace)

    def __call__(self, event: Event) -> None:
        self._progress.feed(event)
        if isinstance(event, Waiting):
            self._progress.note = waiting_text(event)
        now = time.monotonic()
        if isinstance(event, Finished) or (isinstance(event, PassDone) and now - self._drawn < _AT_MOST_EVERY_S):
            return
        self._drawn = now
        self._live.update(frame(self._progress, self._console.width), refresh=True)


def waiting_text(event: Waiting) -> str:
    """Who has the device, and how many are ahead."""
    reason = f", {event.reason}" if event.reason else ""
    return f"waiting for {event.device}: held by pid {event.pid} ({event.user}{reason}) since {event.since}, {event.ahead} ahead"
