"""Who watches a campaign in the foreground: a live table on a terminal, plain lines elsewhere, nobody if not wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from npuprof.model.events import Event
from npuprof.render.live import LiveTable
from npuprof.render.plain import PlainLines


@contextmanager
def watcher(*, live: bool, silent: bool) -> Iterator[Callable[[Event], None]]:
    """The observer to give to the campaign."""
    console = Console(highlight=False)
    if silent:
        yield lambda event: None
    elif live and console.is_terminal:
        with LiveTable(console) as table:
            yield table
    else:
        yield PlainLines(console)
