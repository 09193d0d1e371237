"""The report at the end of a campaign, and of any record."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from npuprof.model.condition import conditions
from npuprof.model.record import Parity, Record, Summary, Trust
from npuprof.render.finding import finding
from npuprof.render.lines import condition_lines
from npuprof.render.table import condition_table
from npuprof.render.text import digits3, ms, printable
from npuprof.render.view import rows_of
from npuprof.render.window import window_lines
from npuprof.stats.order import median
from npuprof.stats.serve import offsets


class Report:
    """Prints a record to a console, in blocks: what ran, the table, the lines to paste, the checks, the finding."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def render(self, record: Record) -> None:
        say = self._say
        say(f"npuprof {record.provenance.get('npuprof')}  run {record.id}  {record.created}")
        simulated = "  [simulated]" if record.target.simulated else ""
        for line in _import(record):
            say(line)
        say(f"target  {record.target.device}{simulated}")
        say(f"        {record.target.backend}")
        say(_host(record))
        say(_ticket(record))
        say("")
        names = [c.name for c in conditions(record.request.rows, record.request.start)]
        names += sorted({p.condition for p in record.passes if p.is_timed} - set(names))
        self._console.print(condition_table(rows_of(record.summary, names), self._console.width))
        say("")
        for line in condition_lines(record):
            say(line)
        say("")
        for line in _checks(record):
            say(line)
        say("")
        say(f"finding: {finding(record)}")

    def _say(self, text: str) -> None:
        # Lines stay whole where programs read them; a terminal gets them wrapped at words.
        self._console.print(Text(printable(text)), soft_wrap=not self._console.is_terminal)


def _import(record: Record) -> list[str]:
    """What the server said of its pack stands first: numbers of a half-imported pack are of nothing."""
    if record.target.kind != "serve" or record.target.pack is None:
        return []
    return [record.target.pack.get("import_line") or "import not seen"]


def _host(record: Record) -> str:
    host = record.provenance.get("host", {})
    governor = host.get("governor") or "not available"
    load = " ".join(map(str, host.get("load", [])))
    return (
        f"host    {host.get('cpu')}, {host.get('cpus')} CPUs, kernel {host.get('kernel')}, "
        f"governor {governor}, load {load}"
    )


def _ticket(record: Record) -> str:
    t = record.ticket
    kind = "enforced" if t.enforced else "advisory"
    reason = f", reason: {t.reason}" if t.reason else ""
    return f"ticket  {t.device} through {t.through}, {kind}, waited {t.waited_s:.1f} s, {t.granted} to {t.released}{reason}"


def _checks(record: Record) -> list[str]:
    s = record.summary
    cliff = (
        "none found"
        if s.cliff is None
        else f"{s.cliff.last_cheap_rows}|{s.cliff.first_costly_rows} rows, factor {digits3(s.cliff.factor)}"
    )
    lines = [
        f"cliff   {cliff}",
        f"parity  {parity_text(record.parity, record.target.parity_means)}",
        f"series  {series_text(s)}",
    ]
    between = offsets(record.passes)
    if between:
        spread = f"{ms(min(between))} to {ms(max(between))}"
        lines.append(f"twice   client's wall minus the server's: median {ms(median(between))} ms ({spread})")
    if "prefill" in {p.kind for p in record.passes if p.rows > 1}:
        lines.append(
            "passes  are prefills: the LM head may run for the last row only, so they may understate a verify pass"
        )
    if record.target.kind == "serve" and record.target.pack is None:
        lines.append("source  no pass lines: only wall times are known, no term is")
    if record.target.floor_ms is not None:
        cost = f", waiting on one that is over {ms(record.target.wait_cost_ms)} ms"
        lines.insert(0, f"floor   a no-op launch takes {ms(record.target.floor_ms)} ms{cost} ({record.target.waiting})")
    return [*lines, *window_lines(record), *trust_lines(record.trust)]


def parity_text(parity: Parity, means: str | None = None) -> str:
    """Which rows agreed, or the first that did not."""
    if not parity.checked:
        return f"not checked: {parity.detail or 'the campaign ended first'}"
    rows = ", ".join(dict.fromkeys(str(r.rows) for r in parity.rows))
    if parity.agreed:
        ties = f", {parity.ties} ties" if parity.ties else ""
        return f"agreed for rows {rows}{ties}: {means or 'passes give the tokens and leave the state that single steps do'}"
    return f"FAILED at {parity.detail}"


def series_text(s: Summary) -> str:
    """The class of the series, its drift and its outliers."""
    d = s.drift
    drift = f"drift {d.percent:+.1f} %" if d.percent is not None else "drift not testable"
    canary = f", canary {d.canary_percent:+.1f} %" if d.canary_percent is not None else ""
    detail = f" ({d.detail})" if d.detail else ""
    outliers = f", outliers (kept): passes {', '.join(map(str, s.outliers))}" if s.outliers else ", no outliers"
    return f"{s.series}{detail}, {drift}{canary}{outliers}"


def trust_lines(trust: Trust) -> list[str]:
    """Both judgements, then a line a reason."""
    word = {"trusted": "trusted", "not_trusted": "NOT trusted"}
    head = f"trust   milliseconds {word[trust.absolute]}, ratios {word[trust.ratios]}"
    return [head, *(f"        {r.code}: {r.text}" for r in trust.reasons)]
