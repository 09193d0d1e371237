"""A campaign as plain lines, where there is no terminal: one a pass."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from npuprof.model.events import Event, Note, PassDone, Started, Waiting
from npuprof.model.passes import Pass
from npuprof.render.live import waiting_text
from npuprof.render.text import ms, printable


class PlainLines:
    """Prints each event as it comes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, event: Event) -> None:
        text = _text(event)
        if text:
            self._console.print(Text(printable(text)), soft_wrap=True)


def _text(event: Event) -> str:
    if isinstance(event, Waiting):
        return waiting_text(event)
    if isinstance(event, Started):
        return f"run {event.run_id} on {event.target.device}: {', '.join(event.conditions)}, {event.rounds} rounds"
    if isinstance(event, Note):
        return event.text
    if isinstance(event, PassDone):
        return pass_text(event.measured)
    return ""


def pass_text(p: Pass) -> str:
    """`#12 measure round 2 rows=5 19.55 ms`, and why it is void."""
    where = f" round {p.round}" if p.round is not None else ""
    void = f" VOID: {p.void_reason}" if p.void_reason else ""
    return f"#{p.seq} {p.phase}{where} {p.condition} {ms(p.wall_ms)} ms{void}"
