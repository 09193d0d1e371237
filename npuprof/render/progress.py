"""What a campaign looks like so far, from its events: the state behind the live table and the plain lines."""

from __future__ import annotations

from npuprof.model.events import Event, Note, PassDone, RoundsPlanned, Started
from npuprof.model.passes import Pass
from npuprof.model.record import Summary
from npuprof.render.view import Row, rows_of
from npuprof.stats.summarise import summarise


class Progress:
    """Fed every event in order."""

    def __init__(self) -> None:
        self.started: Started | None = None
        self.conditions: tuple[str, ...] = ()
        self.rounds = 0
        self.note = ""
        self.last: Pass | None = None
        self._passes: list[Pass] = []

    def feed(self, event: Event) -> None:
        if isinstance(event, Started):
            self.started, self.conditions, self.rounds = event, event.conditions, event.rounds
        elif isinstance(event, RoundsPlanned):
            self.rounds, self.conditions = event.rounds, event.conditions
        elif isinstance(event, Note):
            self.note = event.text
        elif isinstance(event, PassDone):
            self.last = event.measured
            self._passes.append(event.measured)

    def rows(self) -> list[Row]:
        """The table so far; drift and class are judged only at the end."""
        if self.started is None:
            return []
        summary: Summary = summarise(self._passes, self.started.request.start, None)
        return rows_of(summary, self.conditions)

    def where(self) -> str:
        """One line: which phase, which round."""
        if self.last is None:
            return "checking parity"
        if self.last.phase == "measure" or self.last.round is not None:
            return f"round {self.last.round} of {self.rounds}, {len(self._passes)} passes"
        return f"{self.last.phase}, {len(self._passes)} passes"
