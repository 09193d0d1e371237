"""Prompts of an exact number of tokens, of which an exact number is not in the server's cache."""

from __future__ import annotations

from collections.abc import Callable
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

    def __init__(self, client: Client, seed: int = 1) -> None:
        self._client = client
        self._random = Random(seed)
        self._top = min(_HIGH, int(client.meta.get("n_vocab") or _HIGH))
        self.how = ""
        self._first: int | str | None = None
        self._as_ids = self._takes_ids()

    def _takes_ids(self) -> bool:
        try:
            self._client.complete(self._ids(2), 1)
        except Rejected as e:
            if e.status not in (400, 415, 422):
                raise
            self.how = "words, counted by /tokenize" if self._client.tokenize("red blue") else "words, counted by trial"
            return False
        self.how = "token ids"
        return True

    def _ids(self, n: int) -> list[int]:
        return self._new(lambda: self._random.randrange(_LOW, self._top), n)

    def _new(self, draw: Callable[[], T], n: int) -> list[T]:
        """n drawn ones, the first another than the last time: the server's cache holds that one."""
        found = [draw() for _ in range(n)]
        while found and found[0] == self._first:
            found[0] = draw()
        self._first = found[0] if found else self._first
        return found

    def _prefix(self, start: int) -> list[int]:
        fixed = Random(0)
        return [fixed.randrange(_LOW, self._top) for _ in range(start)]

    def make(self, start: int, rows: int, count: Callable[[Prompt], int]) -> Prompt:
        """`count` tells, by trial, how many tokens a prompt has; used where neither ids nor /tokenize are to be had."""
        if self._as_ids:
            return [*self._prefix(start), *self._ids(rows)]
        fixed = Random(0)
        words = [fixed.choice(_WORDS) for _ in range(start)] + self._new(lambda: self._random.choice(_WORDS), rows)
        return self._fitted(words, start + rows, count)

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
