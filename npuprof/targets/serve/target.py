"""An inference server as a target: what it logs is what is timed; without lines, what the client can see."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from npuprof.errors import DeviceProblem
from npuprof.lines import format_line
from npuprof.model.passes import NO_TERMS, Kind, PassLine
from npuprof.model.record import TargetInfo
from npuprof.servers.client import Answer, Client, Prompt
from npuprof.servers.processes import Server, listening_pids, uses_npu
from npuprof.targets.base import Timing
from npuprof.targets.serve.prompts import Prompts

_LINE_WITHIN_S = 5.0
_AFTER_S = 0.05
_LAG_S = 2.0


class SeenLine(Protocol):
    """A pass line, or one that could not be read, and when it came."""

    @property
    def at_ns(self) -> int: ...
    @property
    def line(self) -> Any: ...


class LineSource(Protocol):
    """The server's log as the campaign hands it over."""

    source: str

    @property
    def import_line(self) -> str | None: ...
    def take(self, seconds: float) -> SeenLine | None: ...
    def close(self) -> None: ...


class ServeTarget:
    """`lines` is None where the server logs none: then only wall times are known, and every term is null."""

    def __init__(self, url: str, server: Server | None, lines: LineSource | None, say: Callable[[str], None]) -> None:
        self._server = server
        self._lines = lines
        self._client = Client(url, say, server.state if server else lambda: None)
        self._client.wait_ready()
        self._accounted = 0
        self._logs_each = True
        self._prompts = Prompts(self._client)
        self.own_pids = sorted({*listening_pids(url), *([server.pid] if server else [])})
        self._every = self._gives_all_logits()
        self._rows, self._start = 1, 0
        self._prompt: Prompt = []
        self._drain()

    def describe(self) -> TargetInfo:
        meta = self._client.meta
        model = self._client.model or "a model that the server does not name"
        device = str(meta.get("device") or "the server does not say on what it runs")
        source = self._lines.source if self._lines else "none: wall times of the client only"
        imported = self._lines.import_line if self._lines else None
        return TargetInfo(
            kind="serve",
            device=f"{model} at {self._client.url}: {device}",
            backend=f"{'verify' if self._every else 'prefill'} passes by {self._prompts.how}; pass lines: {source}",
            simulated=bool(meta.get("simulated")),
            on_npu=uses_npu(self.own_pids),
            pack={"import_line": imported} if self._lines else None,
        )

    def _gives_all_logits(self) -> bool:
        """Does the server give log probabilities for every row of a prompt? Then its passes compute the head for all."""
        try:
            return self._client.complete(self._prompts.make(0, 4, self._count), 1, every=True).prompt_logprobs() >= 4
        except DeviceProblem:
            return False

    def _drain(self) -> None:
        """Lines of the requests before, which a log that lags behind may bring late: one a request, then until it is quiet.

        A server that logs no line for some request is waited for once.
        """
        if self._lines is None:
            return
        wanted = self._client.completions - self._accounted if self._logs_each else 0
        end = time.monotonic() + _LAG_S
        while wanted > 0 and time.monotonic() < end:
            wanted -= self._lines.take(_AFTER_S) is not None
        self._logs_each = self._logs_each and wanted <= 0
        while self._lines.take(_AFTER_S) is not None:
            pass
        self._accounted = self._client.completions

    def prepare(self, rows: int, start: int) -> None:
        """The server's cache holds the first `start` tokens; the prompt's others are new to it."""
        self._rows, self._start = rows, start
        if start:
            self._client.complete(self._prompts.make(start, 1, self._count), 1)
        self._prompt = self._prompts.make(start, rows, self._count)
        self._drain()

    def _count(self, prompt: Prompt) -> int:
        """How many tokens a prompt has, by trial: the server's usage, else the M and start of the line that it logs."""
        self._drain()
        answer = self._client.complete(prompt, 1)
        if answer.prompt_tokens is not None:
            return answer.prompt_tokens
        seen = self._lines.take(_LINE_WITHIN_S) if self._lines is not None else None
        self._accounted = self._client.completions
        if seen is None or not isinstance(seen.line, PassLine):
            raise DeviceProblem(
                "the server counts no tokens: it takes no ids, has no /tokenize, gives no usage, logs no line"
            )
        return int(seen.line.start + seen.line.rows)

    def run_step(self) -> Timing:
        return self._by_line() if self._lines is not None else self._step_by_stream()

    def run_pass(self) -> Timing:
        return self._by_line() if self._lines is not None else self._pass_by_client()

    def _by_line(self) -> Timing:
        answer = self._client.complete(self._prompt, 1, every=self._every and self._rows > 1)
        seen, others = self._lines_of(answer)
        self._accounted = self._client.completions
        client = {"client_ms": answer.wall_ms}
        if seen is None:
            return Timing(answer.begin_ns, answer.end_ns, void_reason=self._why_not(others), extra=client)
        line: PassLine = seen.line
        wall_ns = round(line.wall_ms * 1e6)
        kind: Kind = "verify" if self._every else "prefill"
        void = self._disturbed(others)
        return Timing(
            at_ns=seen.at_ns - wall_ns,
            end_ns=seen.at_ns,
            terms=line.terms,
            head_device_ms=line.head_device_ms,
            launches=line.launches,
            kind=kind,
            head_rows=line.rows if self._every or self._rows == 1 else None,
            line=_as_text(line),
            void_reason=void,
            extra={**client, "consistent": line.consistent, **line.extra},
        )

    def _lines_of(self, answer: Answer) -> tuple[SeenLine | None, list[Any]]:
        """The line of this request, by order and M, and every other one that came since it was sent."""
        assert self._lines is not None
        mine: SeenLine | None = None
        others: list[Any] = []
        end = time.monotonic() + _LINE_WITHIN_S
        while time.monotonic() < end:
            seen = self._lines.take(_AFTER_S)
            if seen is None:
                if mine is not None or self._complete(others):
                    break
                continue
            line = seen.line
            if (
                mine is None
                and isinstance(line, PassLine)
                and line.rows == self._rows
                and seen.at_ns >= answer.begin_ns
            ):
                mine = seen
            else:
                others.append(line)
        if mine is None and not others:
            raise DeviceProblem(
                f"the server answered and logged no pass line in {self._lines.source} within {_LINE_WITHIN_S:g} s; "
                "is that its log? see: npuprof parse"
            )
        return mine, others

    def _complete(self, others: list[Any]) -> bool:
        """Are all rows asked for accounted for, though not in one pass?"""
        return sum(x.rows for x in others if isinstance(x, PassLine)) >= self._rows

    def _why_not(self, others: list[Any]) -> str:
        passes = [x for x in others if isinstance(x, PassLine)]
        if len(passes) < len(others):
            return f"a pass line could not be read: {next(x for x in others if not isinstance(x, PassLine)).reason}"
        rows = [x.rows for x in passes]
        shown = " and ".join(map(str, rows[:4]))
        if len(rows) > 1 and sum(rows) == self._rows:
            return f"the server split the {self._rows} rows into passes of {shown}: above its limit"
        if len(rows) == 1 and rows[0] < self._rows:
            return f"the server ran {rows[0]} rows of {self._rows}: a cached prefix hid the others"
        return f"no line of {self._rows} rows came, but of {shown}"

    def _disturbed(self, others: list[Any]) -> str | None:
        """A foreign pass between the request and its answer; decode steps that follow a pass are the server's own."""
        foreign = [x for x in others if not isinstance(x, PassLine) or x.rows != 1]
        if not foreign:
            return None
        first = foreign[0]
        what = f"a pass of M={first.rows}" if isinstance(first, PassLine) else "an unreadable pass line"
        return f"{what} of somebody else ran in between: the server batches several users"

    def _pass_by_client(self) -> Timing:
        """The server's own prompt time where it gives one (llama.cpp), else the time to the first token, HTTP included."""
        answer = self._client.complete(self._prompt, 1, stream=True)
        timings, rows = answer.timings, answer.rows
        hidden = None
        if rows is not None and rows != self._rows:
            hidden = (
                f"the server ran {rows} rows of {self._rows}: its cache held more or less than {self._start} tokens"
            )
        first = answer.token_ns[0] if answer.token_ns else answer.end_ns
        extra: dict[str, Any] = {
            "client_ms": (first - answer.begin_ns) / 1e6,
            "from": "time to first token, HTTP included",
        }
        wall_ns = first - answer.begin_ns
        if hidden is None and isinstance(timings.get("prompt_ms"), int | float):
            wall_ns = round(timings["prompt_ms"] * 1e6)
            extra["from"] = "the server's timings.prompt_ms"
        return Timing(
            answer.begin_ns, answer.begin_ns + wall_ns, NO_TERMS, kind="prefill", void_reason=hidden, extra=extra
        )

    def _step_by_stream(self) -> Timing:
        """The time between the first and the second token of a stream: one decode step, behind the prompt's tokens."""
        answer = self._client.complete(self._prompt, 3, stream=True)
        extra = {"from": "time between two streamed tokens"}
        if len(answer.token_ns) < 2:
            return Timing(
                answer.begin_ns, answer.end_ns, void_reason="the stream gave fewer than two tokens", extra=extra
            )
        return Timing(answer.token_ns[-2], answer.token_ns[-1], NO_TERMS, extra=extra)

    def close(self) -> None:
        self._client.close()
        if self._lines is not None:
            self._lines.close()
        if self._server is not None:
            self._server.stop()


def _as_text(line: PassLine) -> str | None:
    """The line in the published form, where it gave all that stands in one."""
    if None in line.terms.values() or line.head_device_ms is None or line.launches is None:
        return None
    return format_line(line.rows, line.start, line.wall_ms, line.terms, line.head_device_ms, line.launches)
