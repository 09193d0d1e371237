"""The lines that people paste, read back. Everything else of a text is passed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from re import Match

from npuprof.audit.figure import Printed

_N = r"\s*(\d+(?:\.\d+)?)"
_TAIL = (
    rf"\s*n=\s*(?P<n>\d+)\s+wall\s+median{_N}\s*ms\s*\(\s*min{_N}\s+max{_N}\s*\)"
    rf"(?:,\s*device\s+wait\s+median{_N})?(?:,\s*\[{_N},{_N}\s*\]\s*covers{_N}\s*%)?"
    r"(?:,\s*(\d+)\s+of\s+(\d+)\s+passes,\s*(\d+)\s+void)?"
)
_CONDITION = re.compile(rf"(?:pass\s+M=\s*(?P<rows>\d+)|decode\s+step)(?:\s+start=\s*(?P<start>\d+))?\s*:{_TAIL}")
_ERRORS = re.compile(r"amdxdna\s+error\s+count\s+(\d+)\s*->\s*(\d+)(?:\s*\(benign\s+(\d+)\s*->\s*(\d+)\))?")
_COUNTS = re.compile(
    rf"k=\s*(\d+)\s*:\s*tokens=\s*(\d+)\s+rounds=\s*(\d+)\s+tokens/round={_N}\s+accepted/offered=\s*(\d+)/(\d+)="
    rf"\s*(\d+(?:\.\d+)?|n/a)(?:\s+draft_ms/token={_N})?"
)
_PARTS = re.compile(
    rf"k=\s*(\d+)\s*:\s*pass\s+M=\s*(\d+){_N}\s*ms,\s*decode\s+step{_N}\s*ms,\s*drafts{_N}\s*ms\s+a\s+round"
)
_SHAPE = re.compile(rf"(one_pass|two_pass)\s*:\s*round{_N}\s*ms,\s*bar{_N}(?:,\s*projected{_N}\s*[x×])?")
_PROMPT = re.compile(r"([^\s:=|][^:=|]*?)\s*:\s*(?:(\d+)\s+tok\s*/\s*)?(\d+)\s+rounds?\s*=\s*(\d+(?:\.\d+)?)")
_RULE = re.compile(r"\brule\s+(reference|llama-server)\b")
_SENTENCE = re.compile(
    rf"{_N}\s+tokens/round\s+\(the target's own included\)\s+against\s+bar{_N}.*?x{_N}\s+projected\s+by\s+arithmetic"
    rf"(?:;\s*a\s+pass\s+of\s+(\d+)\s+rows\s+costs{_N}\s+steps)?"
)
_BS_ITEM = re.compile(r"(\w+)=\s*(\d+(?:\.\d+)?)")
_BS_ORDER = [
    "M",
    "start",
    "wall",
    "embed",
    "layers",
    "pack",
    "ql",
    "wait",
    "rb",
    "sum",
    "host",
    "n",
    "epilogue",
    "head",
    "sum",
    "host",
]


@dataclass(frozen=True)
class Condition:
    """`pass M=5: ...` or `decode step: ...`; rows is 1 for the step."""

    at: int
    rows: int
    start: int | None
    n: int
    median: Printed
    low: Printed
    high: Printed
    wait: Printed | None
    interval: tuple[Printed, Printed, Printed] | None
    void: tuple[int, int, int] | None

    @property
    def name(self) -> str:
        base = "decode step" if self.rows == 1 else f"pass M={self.rows}"
        return base if self.start is None else f"{base} start={self.start}"


@dataclass(frozen=True)
class Errors:
    at: int
    counts: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Counts:
    """`k=4: tokens=...`, with the per-prompt figures that stand behind it."""

    at: int
    k: int
    tokens: int
    rounds: int
    per_round: Printed
    accepted: int
    offered: int
    rate: Printed | None
    draft: Printed | None
    rule: str
    prompts: list[Prompt] = field(default_factory=list)


@dataclass(frozen=True)
class Prompt:
    at: int
    name: str
    tokens: int | None
    rounds: int
    per_round: Printed


@dataclass(frozen=True)
class Parts:
    """`k=4: pass M=5 1049.1 ms, decode step 1021.2 ms, drafts 23.04 ms a round`."""

    at: int
    k: int
    rows: int
    pass_ms: Printed
    step_ms: Printed
    drafts_ms: Printed


@dataclass(frozen=True)
class Shape:
    at: int
    kind: str
    round_ms: Printed
    bar: Printed
    projected: Printed | None


@dataclass(frozen=True)
class Sentence:
    at: int
    tokens: Printed
    bar: Printed
    projected: Printed
    rows: int | None
    steps: Printed | None


@dataclass(frozen=True)
class BsLine:
    """The reference form's figures in their order; `sum` and `host` stand in it twice."""

    at: int
    values: tuple[Printed, ...]

    @property
    def rows(self) -> int:
        return int(self.values[0].value)

    @property
    def wall(self) -> Printed:
        return self.values[_BS_ORDER.index("wall")]

    @property
    def wait(self) -> Printed:
        return self.values[_BS_ORDER.index("wait")]


Item = Condition | Errors | Counts | Parts | Shape | Sentence | BsLine


class Reader:
    """Feeds on lines, numbered from 1; gives what is stated in them. Remembers the rule and the counts it is in."""

    def __init__(self) -> None:
        self._rule = "reference"
        self._counts: Counts | None = None

    def feed(self, at: int, line: str) -> Iterator[Item]:
        for marker, read in _READERS:
            if marker in line:
                yield from read(self, at, line)

    def conditions(self, at: int, line: str) -> Iterator[Item]:
        for found in _CONDITION.finditer(line):
            yield _condition(at, found)

    def errors(self, at: int, line: str) -> Iterator[Item]:
        for found in _ERRORS.finditer(line):
            a, b, c, d = found.groups()
            benign = () if c is None else (("benign count", int(c), int(d)),)
            yield Errors(at, (("error count", int(a), int(b)), *benign))

    def rule(self, at: int, line: str) -> Iterator[Item]:
        del at
        found = _RULE.search(line)
        self._rule = found.group(1) if found else self._rule
        yield from ()

    def counts(self, at: int, line: str) -> Iterator[Item]:
        for found in _COUNTS.finditer(line):
            k, tokens, rounds, per_round, accepted, offered, rate, draft = found.groups()
            self._counts = Counts(
                at,
                int(k),
                int(tokens),
                int(rounds),
                Printed.ratio(per_round),
                int(accepted),
                int(offered),
                None if rate == "n/a" else Printed.ratio(rate),
                None if draft is None else Printed.ms(draft),
                self._rule,
            )
            yield self._counts

    def prompts(self, at: int, line: str) -> Iterator[Item]:
        """They belong to the counts before them."""
        if self._counts is not None:
            for name, tokens, rounds, per_round in _PROMPT.findall(line):
                known = int(tokens) if tokens else next((p.tokens for p in self._counts.prompts), None)
                self._counts.prompts.append(Prompt(at, name.strip(), known, int(rounds), Printed.ratio(per_round)))
        yield from ()

    def parts(self, at: int, line: str) -> Iterator[Item]:
        for found in _PARTS.finditer(line):
            k, rows, a, b, c = found.groups()
            yield Parts(at, int(k), int(rows), Printed.ms(a), Printed.ms(b), Printed.ms(c))

    def shapes(self, at: int, line: str) -> Iterator[Item]:
        for kind, round_ms, bar, projected in _SHAPE.findall(line):
            yield Shape(
                at,
                kind,
                Printed.ms(round_ms),
                Printed.ratio(bar),
                Printed.ratio(projected) if projected else None,
            )

    def sentence(self, at: int, line: str) -> Iterator[Item]:
        for found in _SENTENCE.finditer(line):
            tokens, bar, projected, rows, steps = found.groups()
            yield Sentence(
                at,
                Printed.ratio(tokens),
                Printed.ratio(bar),
                Printed.ratio(projected),
                int(rows) if rows else None,
                Printed.ratio(steps) if steps else None,
            )

    def bs(self, at: int, line: str) -> Iterator[Item]:
        items = _BS_ITEM.findall(line.partition("[bs]")[2])
        if [key for key, _ in items[: len(_BS_ORDER)]] == _BS_ORDER:
            yield BsLine(at, tuple(Printed.ms(text) for _, text in items[: len(_BS_ORDER)]))


def _condition(at: int, found: Match[str]) -> Condition:
    median, low, high, wait, a, b, coverage, n, total, void = found.groups()[3:]
    return Condition(
        at,
        int(found["rows"] or 1),
        int(found["start"]) if found["start"] else None,
        int(found["n"]),
        Printed.ms(median),
        Printed.ms(low),
        Printed.ms(high),
        Printed.ms(wait) if wait else None,
        (Printed.ms(a), Printed.ms(b), Printed.ms(coverage)) if a else None,
        (int(n), int(total), int(void)) if n else None,
    )


_READERS: list[tuple[str, Callable[[Reader, int, str], Iterator[Item]]]] = [
    ("median", Reader.conditions),
    ("error count", Reader.errors),
    ("rule ", Reader.rule),
    ("tokens/round=", Reader.counts),
    ("tok /", Reader.prompts),
    ("a round", Reader.parts),
    ("_pass", Reader.shapes),
    ("projected by", Reader.sentence),
    ("[bs]", Reader.bs),
]
