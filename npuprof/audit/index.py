"""What a text states, by kind and place, so that each figure finds its neighbours at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from npuprof.audit.lines import BsLine, Condition, Counts, Item, Parts, Sentence, Shape

T = TypeVar("T", bound=Item)


class Index:
    """`items` in the order of their lines."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = list(items)
        self._by: dict[Hashable, list[Item]] = defaultdict(list)
        self._places: dict[Hashable, list[int]] = {}
        for item in self.items:
            for key in _keys(item):
                self._by[key].append(item)

    def conditions(self, rows: int, at: int) -> Condition | None:
        """The nearest summary of passes of so many rows, 1 for the step: the latest before, else the first behind."""
        return self._nearest((Condition, rows), at, Condition, behind=True)

    def head(self, at: int) -> Counts | Parts | None:
        """The line of a k that a line stands under."""
        found = self._nearest("head", at, Counts) or self._nearest("head", at, Parts)
        return found

    def counts(self, k: int | None, at: int) -> Counts | None:
        return self._nearest((Counts, k), at, Counts)

    def sentence(self, at: int) -> Sentence | None:
        return self._nearest(Sentence, at, Sentence, behind=True)

    def parts(self, rows: int, at: int) -> Parts | None:
        return self._nearest((Parts, rows), at, Parts, behind=True)

    def bars(self) -> Sequence[Item]:
        """Every stated shape of one pass."""
        return self._by["one_pass"]

    def bs_lines(self, rows: int) -> list[BsLine]:
        return [i for i in self._by[BsLine, rows] if isinstance(i, BsLine)]

    def bs_count(self, rows: int) -> int:
        return len(self._by[BsLine, rows])

    def _nearest(self, key: Hashable, at: int, kind: type[T], *, behind: bool = False) -> T | None:
        found = self._by.get(key, [])
        if key not in self._places:
            self._places[key] = [i.at for i in found]
        n = bisect_right(self._places[key], at)
        chosen = found[n - 1] if n else found[0] if found and behind else None
        return chosen if isinstance(chosen, kind) else None


def _keys(item: Item) -> list[Hashable]:
    if isinstance(item, Condition):
        return [(Condition, item.rows)]
    if isinstance(item, Counts):
        return ["head", (Counts, item.k)]
    if isinstance(item, Parts):
        return ["head", (Parts, item.rows)]
    if isinstance(item, BsLine):
        return [(BsLine, item.rows)]
    if isinstance(item, Shape):
        return [item.kind]
    return [Sentence] if isinstance(item, Sentence) else []
