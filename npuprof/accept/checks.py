"""What makes a replay worthless before it begins: refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.accept.server import TokenServer
from npuprof.errors import UsageProblem
from npuprof.model.acceptance import RecordedPrompt, Recording

_SHOWN = 4


def check_drafter(server: TokenServer, recording: Recording, ks: Sequence[int]) -> None:
    """UsageProblem for a vocabulary, prompt, context or sampling that would make the counts meaningless."""
    server.must_be_greedy(server.sampling())
    _check_vocabulary(server, recording)
    bos = server.bos()
    for prompt in recording.prompts:
        check_bos(prompt.name, prompt.prompt_ids, bos)
        _check_prefix(server, prompt)
        check_context(server, prompt.name, len(prompt.prompt_ids) + len(prompt.ids) + max(ks))


def check_bos(name: str, ids: Sequence[int], bos: int | None) -> None:
    if bos is not None and list(ids[:2]) == [bos, bos]:
        raise UsageProblem(
            f"prompt {name!r} begins with the begin-of-text token {bos} twice: the text holds one and the server adds one; "
            "take it out of the prompt"
        )


def check_context(server: TokenServer, name: str, tokens: int) -> None:
    if isinstance(server.context, int) and tokens >= server.context:
        raise UsageProblem(
            f"prompt {name!r} needs {tokens} tokens with its continuation and drafts, and a slot of {server.url} has "
            f"{server.context}: start it with a larger context"
        )


def _check_prefix(server: TokenServer, prompt: RecordedPrompt) -> None:
    """The drafter must see the recorded ids where its own tokenizer reads prompt + continuation."""
    special = bool(prompt.prompt_ids) and prompt.prompt_ids[0] == server.bos()
    whole = server.tokenize(prompt.prompt + prompt.text, special=special)
    if whole is None:
        return
    n = len(prompt.prompt_ids)
    if whole[:n] != prompt.prompt_ids:
        at = next((i for i in range(n) if whole[i : i + 1] != prompt.prompt_ids[i : i + 1]), n)
        raise UsageProblem(
            f"prompt {prompt.name!r} does not tokenise to a prefix of prompt + continuation on {server.url}: at token {at} "
            f"it reads {whole[at : at + _SHOWN]}, recorded is {prompt.prompt_ids[at : at + _SHOWN]}"
        )


def _check_vocabulary(server: TokenServer, recording: Recording) -> None:
    """By the recorded fingerprint where there is one, and by what the recorded ids mean here."""
    known = recording.target.get("vocabulary")
    top = max(max([*p.ids, *p.prompt_ids]) for p in recording.prompts)
    if server.n_vocab is not None and top >= server.n_vocab:
        raise UsageProblem(
            f"the vocabularies differ: the recording has token id {top}, {server.url} has {server.n_vocab} ids"
        )
    if isinstance(known, dict) and isinstance(known.get("below"), int):
        below = known["below"]
        own = None if server.n_vocab is not None and server.n_vocab < below else server.fingerprint(below)
        if server.n_vocab is not None and server.n_vocab < below:
            raise UsageProblem(
                f"the vocabularies differ: {server.url} has {server.n_vocab} ids, the recording's target {below} or more"
            )
        if own is not None and own.sha256 != known.get("sha256"):
            raise UsageProblem(
                f"the vocabularies differ: sampled token ids mean other text on {server.url} than on the recording's target"
            )
    for prompt in recording.prompts:
        text = server.detokenize(prompt.ids)
        if text is not None and not _same_text(text, prompt.text):
            raise UsageProblem(
                f"the vocabularies differ: the recorded ids of prompt {prompt.name!r} read {text[:40]!r} on {server.url}, "
                f"recorded is {prompt.text[:40]!r}"
            )


def _same_text(here: str, recorded: str) -> bool:
    """An end-of-text token is in the ids and not in the text; half a character at the end has no text of its own."""
    return here.startswith(recorded.rstrip("�")) or recorded.startswith(here.rstrip("�"))
