"""Prompts of an exact number of tokens, of which an exact number is not in the server's cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from npuprof.errors import DeviceProblem
from npuprof.servers.client import Client, Prompt, Rejected

_WORDS = (
    "red",
    "blue",
    "old",
    "new",
    "big",
    "cold",
    "fast",
    "long",
    "dark",
    "warm",
    "wet",
    "dry",
    "soft",
    "hard",
    "deep",
    "high",
)
T = TypeVar("T", int, str)

_LOW, _HIGH = 300, 4000
_TRIALS = 12


class Prompts:
    """`make(start, rows)` gives a prompt whose first `start` tokens are always the same and whose others never were.

    As token ids where the server takes them, else as words whose number of tokens is learnt.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # Not seeded: a server that outlives campaigns still holds the prompts of the last one.
        self._random = Random()
        top = min(_HIGH, int(client.meta.get("n_vocab") or _HIGH))
        self._all_ids = range(min(_LOW, top // 2), top)
        self.how = ""
        self._used: dict[int, set[int | str]] = {}
        self._as_ids = self._takes_ids()

    def _takes_ids(self) -> bool:
        try:
            self._client.complete(self._make(self._all_ids, 0, 2), 1)
        except Rejected as e:
            if e.status not in (400, 415, 422):
                raise
            self._used.clear()
            self.how = "words, counted by /tokenize" if self._client.tokenize("red blue") else "words, counted by trial"
            return False
        self.how = "token ids"
        return True

    def _make(self, among: Sequence[T], start: int, rows: int) -> list[T]:
        """`start` fixed ones, and `rows` drawn ones of which the first never stood there: servers keep more than one prompt.

        Where a longer start goes on counts as used, too. When all have been used, all but the last may come again.
        """
        fixed = Random(0)
        prefix = [fixed.choice(among) for _ in range(start)]
        drawn = [self._random.choice(among) for _ in range(rows)]
        used = self._used.setdefault(start, {fixed.choice(among)})
        while drawn[0] in used and len(used) < len(among):
            drawn[0] = self._random.choice(among)
        used.add(drawn[0])
        if len(used) == len(among):
            self._used[start] = {drawn[0]}
        return prefix + drawn

    def make(self, start: int, rows: int, count: Callable[[Prompt], int]) -> Prompt:
        """`count` tells, by trial, how many tokens a prompt has; used where neither ids nor /tokenize are to be had."""
        if self._as_ids:
            return self._make(self._all_ids, start, rows)
        return self._fitted(self._make(_WORDS, start, rows), start + rows, count)

    def _fitted(self, words: list[str], wanted: int, count: Callable[[Prompt], int]) -> str:
        """Words added or dropped at the end until the count is right."""
        for _ in range(_TRIALS):
            text = " ".join(words)
            tokens = self._client.tokenize(text)
            have = len(tokens) if tokens else count(text)
            if have == wanted:
                return text
            if have > wanted and len(words) > 1:
                words = words[: max(1, len(words) - (have - wanted))]
            else:
                words += [self._random.choice(_WORDS) for _ in range(wanted - have)]
        raise DeviceProblem(
            f"no prompt of exactly {wanted} tokens was found; the server takes neither ids nor has /tokenize"
        )
