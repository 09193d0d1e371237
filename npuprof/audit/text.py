"""A pasted text's figures, each derived from the others in it. Derivation carries the intervals of the printed digits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from npuprof.audit.figure import Figure, Printed, Status, between, compared, missing
from npuprof.audit.index import Index
from npuprof.audit.lines import BsLine, Condition, Counts, Errors, Item, Parts, Reader, Sentence, Shape
from npuprof.economics.estimate import Estimate
from npuprof.stats.order import median, median_rank

_REST_SHARE = 0.02
_REST_MS = 0.5
"""A rest beyond 2 % of the wall and 0.5 ms is more than loop overhead: a term is missing, or a digit is wrong."""


def audit_text(lines: Iterable[str]) -> list[Figure]:
    """All figures that the text states and this reads, in its order."""
    reader = Reader()
    index = Index(item for at, line in enumerate(lines, 1) for item in reader.feed(at, line))
    return [figure for item in index.items for figure in _derived(item, index)]


def _derived(item: Item, index: Index) -> list[Figure]:
    try:
        return list(_derive(item, index))
    except ZeroDivisionError:
        detail = "a step or a bar of 0, by which others would be divided"
        return [Figure("time", _line(item.at), 0.0, None, "differs", (), detail)]


def _derive(item: Item, index: Index) -> Iterator[Figure]:
    if isinstance(item, Condition):
        return _condition(item, index)
    if isinstance(item, Errors):
        return _errors(item)
    if isinstance(item, Counts):
        return _counts(item)
    if isinstance(item, Shape):
        return _shape(item, index)
    if isinstance(item, Sentence):
        return _sentence(item, index)
    if isinstance(item, BsLine):
        return _bs(item, index)
    return _parts(item, index)


def _line(at: int) -> str:
    return f"line {at}"


def _condition(c: Condition, index: Index) -> Iterator[Figure]:
    where = _line(c.at)
    yield between(f"{c.name} median", where, c.median, c.low, c.high, (f"{c.name} min", f"{c.name} max"))
    if c.wait is not None:
        yield between(f"{c.name} device wait", where, c.wait, None, c.high, (f"{c.name} max",))
    if c.interval is not None:
        low, high, coverage = c.interval
        yield between(f"{c.name} interval low", where, low, c.low, c.median, (f"{c.name} min", f"{c.name} median"))
        yield between(f"{c.name} interval high", where, high, c.median, c.high, (f"{c.name} median", f"{c.name} max"))
        if c.n > 1:
            stated = Estimate.exactly(100 * median_rank(c.n)[1])
            yield compared(f"{c.name} coverage", where, coverage, stated, (f"{c.name} n",))
    if c.void is not None:
        n, total, void = c.void
        yield _same(f"{c.name} passes counted", where, n, total - void, ("passes", "void"))
    if c.n and index.bs_count(c.rows) == c.n:
        yield from _from_lines(c, index.bs_lines(c.rows))


def _from_lines(c: Condition, lines: Sequence[BsLine]) -> Iterator[Figure]:
    """The text has exactly the lines that were counted: the summary is theirs."""
    where, sources = _line(c.at), (f"{c.n} [bs] lines of M={c.rows}",)
    walls = [x.wall.value for x in lines]
    half = lines[0].wall.half_unit
    for name, stated, value in (
        ("median", c.median, median(walls)),
        ("min", c.low, min(walls)),
        ("max", c.high, max(walls)),
    ):
        yield compared(f"{c.name} {name}", where, stated, Estimate.around(value, half), sources)
    if c.wait is not None:
        waits = median([x.wait.value for x in lines])
        yield compared(f"{c.name} device wait", where, c.wait, Estimate.around(waits, half), sources)


def _errors(e: Errors) -> Iterator[Figure]:
    for name, before, after in e.counts:
        falls = f"falls from {before} to {after}, which no count of one boot does" if after < before else ""
        yield Figure(name, _line(e.at), after, f">= {before}", "differs" if falls else "ok", (f"{name} before",), falls)


def _same(name: str, where: str, stated: int, derived: int, sources: tuple[str, ...]) -> Figure:
    return compared(name, where, Printed.count(str(stated)), Estimate.exactly(derived), sources)


def _counts(c: Counts) -> Iterator[Figure]:
    where, k = _line(c.at), f"k={c.k}"
    if c.rounds:
        value = c.tokens / c.rounds if c.rule == "reference" else 1 + c.accepted / c.rounds
        sources = ("tokens", "rounds") if c.rule == "reference" else ("accepted", "rounds")
        yield compared(f"{k} tokens/round", where, c.per_round, Estimate.exactly(value), sources)
    if c.rate is not None and c.offered:
        yield compared(f"{k} rate", where, c.rate, Estimate.exactly(c.accepted / c.offered), ("accepted", "offered"))
    yield between(
        f"{k} accepted", where, Printed.count(str(c.accepted)), None, Printed.count(str(c.offered)), ("offered",)
    )
    yield between(
        f"{k} offered", where, Printed.count(str(c.offered)), None, Printed.count(str(c.rounds * c.k)), ("rounds", "k")
    )
    yield _identity(c)
    yield from _prompts(c)


def _identity(c: Counts) -> Figure:
    """N = R + A - T: as many rounds as there are prompts may end without the target's own token, and no fewer than none."""
    given, n = c.rounds + c.accepted, len(c.prompts) or c.rounds
    low, high = (given - n, given) if c.rule == "reference" else (given + (len(c.prompts) or 1), c.tokens)
    return between(
        f"k={c.k} tokens = rounds + accepted - unfinished",
        _line(c.at),
        Printed.count(str(c.tokens)),
        Printed.count(str(low)),
        Printed.count(str(max(low, high))),
        ("rounds", "accepted"),
    )


def _prompts(c: Counts) -> Iterator[Figure]:
    if not c.prompts:
        return
    for p in c.prompts:
        name = f"k={c.k} {p.name} tokens/round"
        if c.rule != "reference":
            continue
        if p.tokens is None:
            yield missing(name, _line(p.at), p.per_round, "number of tokens of that prompt")
        elif p.rounds:
            yield compared(name, _line(p.at), p.per_round, Estimate.exactly(p.tokens / p.rounds), ("tok", "rounds"))
    names = tuple(p.name for p in c.prompts)
    yield _same(f"k={c.k} rounds", _line(c.at), c.rounds, sum(p.rounds for p in c.prompts), names)
    tokens = [p.tokens for p in c.prompts]
    if None not in tokens:
        yield _same(f"k={c.k} tokens", _line(c.at), c.tokens, sum(t or 0 for t in tokens), names)


class _Costs:
    """What a round is made of, as far as the text says it: by a line of parts, else by the condition lines."""

    def __init__(self, at: int, index: Index) -> None:
        head = index.head(at)
        self.k = head.k if head is not None else None
        self.tokens = None if head is None else index.counts(head.k, at)
        self.missing = "" if head is not None else "line of that k before it"
        self.pass_ms: Estimate | None = None
        self.step_ms: Estimate | None = None
        self.drafts: Estimate | None = None
        if isinstance(head, Parts):
            self.pass_ms, self.step_ms = head.pass_ms.estimate, head.step_ms.estimate
            self.drafts = head.drafts_ms.estimate
        elif isinstance(head, Counts):
            self._from_conditions(at, index, head)

    def _from_conditions(self, at: int, index: Index, counts: Counts) -> None:
        passed, step = index.conditions(counts.k + 1, at), index.conditions(1, at)
        self.pass_ms = None if passed is None else passed.median.estimate
        self.step_ms = None if step is None else step.median.estimate
        self.drafts = None if counts.draft is None else counts.draft.estimate.times(counts.k)
        gaps = [
            (self.pass_ms, f"pass M={counts.k + 1}"),
            (self.step_ms, "decode step"),
            (self.drafts, "draft_ms/token"),
        ]
        self.missing = " and no ".join(what for have, what in gaps if have is None)

    def round(self, kind: str) -> Estimate | None:
        if self.pass_ms is None or self.step_ms is None or self.drafts is None:
            return None
        one = self.pass_ms + self.drafts
        return one if kind == "one_pass" else one + self.step_ms

    def bar(self, kind: str) -> Estimate | None:
        """The step is in both: (P + d) / S, and one more for the second pass."""
        if self.pass_ms is None or self.step_ms is None or self.drafts is None:
            return None
        one = (self.pass_ms + self.drafts) / self.step_ms
        return one if kind == "one_pass" else one + Estimate.exactly(1.0)

    def tokens_per_round(self) -> Estimate | None:
        c = self.tokens
        if c is None or not c.rounds:
            return None
        return Estimate.exactly(c.tokens / c.rounds if c.rule == "reference" else 1 + c.accepted / c.rounds)


def _shape(s: Shape, index: Index) -> Iterator[Figure]:
    costs, where = _Costs(s.at, index), _line(s.at)
    name = s.kind if costs.k is None else f"k={costs.k} {s.kind}"
    round_ms, bar, tokens = costs.round(s.kind), costs.bar(s.kind), costs.tokens_per_round()
    if round_ms is None or bar is None:
        for what, stated in (("round", s.round_ms), ("bar", s.bar), ("projected", s.projected)):
            if stated is not None:
                yield missing(f"{name} {what}", where, stated, costs.missing)
        return
    parts = ("pass", "drafts") if s.kind == "one_pass" else ("pass", "drafts", "step")
    yield compared(f"{name} round", where, s.round_ms, round_ms, parts)
    yield compared(f"{name} bar", where, s.bar, bar, (*parts, "step"))
    if s.projected is None:
        return
    if tokens is None:
        said = index.sentence(s.at)
        tokens = None if said is None else said.tokens.estimate
    if tokens is None:
        yield missing(f"{name} projected", where, s.projected, "tokens/round")
    else:
        yield compared(f"{name} projected", where, s.projected, tokens / bar, ("tokens/round", "bar"))


def _parts(p: Item, index: Index) -> Iterator[Figure]:
    """The pass is of k+1 rows, and the times are those of the condition lines, where the text has them."""
    assert isinstance(p, Parts)
    where = _line(p.at)
    yield _same(f"k={p.k} rows of the pass", where, p.rows, p.k + 1, ("k",))
    for name, stated, rows in (("pass", p.pass_ms, p.rows), ("step", p.step_ms, 1)):
        seen = index.conditions(rows, p.at)
        if seen is not None:
            yield compared(f"k={p.k} {name}", where, stated, seen.median.estimate, (f"{seen.name} median",))


def _sentence(s: Sentence, index: Index) -> Iterator[Figure]:
    where = _line(s.at)
    costs = _Costs(s.at, index)
    projected = s.tokens.estimate / s.bar.estimate
    yield compared("verdict projected", where, s.projected, projected, ("tokens/round", "bar"))
    bars = [i.bar for i in index.bars() if isinstance(i, Shape)]
    if bars and not any(b.value == s.bar.value for b in bars):
        yield compared("verdict bar", where, s.bar, bars[-1].estimate, ("one_pass bar",))
    if s.steps is not None and s.rows is not None:
        parts = index.parts(s.rows, s.at)
        if parts is not None:
            over = parts.pass_ms.estimate / parts.step_ms.estimate
            yield compared("verdict pass over step", where, s.steps, over, ("pass", "step"))
        elif costs.pass_ms is not None and costs.step_ms is not None and costs.k is not None and costs.k + 1 == s.rows:
            over = costs.pass_ms / costs.step_ms
            yield compared("verdict pass over step", where, s.steps, over, ("pass", "step"))
        else:
            yield missing("verdict pass over step", where, s.steps, f"pass of {s.rows} rows and no step")


def _bs(line: BsLine, index: Index) -> Iterator[Figure]:
    where = _line(line.at)
    _, _, wall, embed, layers, pack, ql, wait, rb, gemm, host, _, epilogue, head, head_sum, head_host = line.values

    def total(*parts: Printed) -> Estimate:
        found = Estimate.exactly(0.0)
        for p in parts:
            found = found + p.estimate
        return found

    yield compared("[bs] sum", where, gemm, total(pack, ql, wait, rb), ("pack", "ql", "wait", "rb"))
    yield compared("[bs] layers", where, layers, total(gemm, host), ("sum", "host"))
    yield compared("[bs] head", where, head, total(head_sum, head_host), ("head sum", "head host"))
    yield between("[bs] epilogue", where, epilogue, head, None, ("head",))
    spent = total(embed, layers, epilogue)
    sources = ("embed", "layers", "epilogue")
    # What no term accounts for is the rest, which is never negative.
    rest = wall.value - spent.value
    if rest > max(_REST_SHARE * wall.value, _REST_MS) or wall.value + wall.half_unit < spent.low:
        yield compared("[bs] wall", where, wall, spent, sources)
    else:
        status: Status = "ok" if rest >= -1e-9 else "within_rounding"
        yield Figure("[bs] wall", where, wall.value, f">= {spent.value:.2f}", status, sources)
    summary = index.conditions(line.rows, line.at)
    if summary is not None and index.bs_count(line.rows) == 1:
        # A line pasted beside the summary as its example; in a whole log there are warm-ups too.
        yield between(f"[bs] wall of M={line.rows}", where, wall, summary.low, summary.high, (summary.name,))
