"""Recordings as files, with the proposals that replays add to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npuprof.accept.replay import PromptPlayed
from npuprof.errors import UsageProblem
from npuprof.model.acceptance import Recording


def read_recording(file: Path, flag: str) -> tuple[Recording, str]:
    """The recording and the SHA-256 of its file. UsageProblem in one sentence for anything else."""
    try:
        data = file.read_bytes()
    except OSError as e:
        raise UsageProblem(f"{flag} {file}: cannot be read: {e.strerror}") from e
    try:
        recording = Recording.model_validate(json.loads(data))
    except ValidationError as e:
        first = e.errors()[0]
        raise UsageProblem(
            f"{flag} {file}: is no recording: {'.'.join(map(str, first['loc']))}: {first['msg']}; make one with: accept record"
        ) from None
    except (ValueError, RecursionError):
        raise UsageProblem(f"{flag} {file}: is no recording: not whole JSON") from None
    return recording, hashlib.sha256(data).hexdigest()


def with_proposals(
    recording: Recording, name: str, about: Mapping[str, Any], ks: Sequence[int], played: Mapping[str, PromptPlayed]
) -> Recording:
    """The recording with everything this drafter proposed; positions that were not visited are null."""
    prompts = []
    for p in recording.prompts:
        asked = played[p.name].asked.proposals
        ids = [asked[i].ids if i in asked else None for i in range(len(p.ids))]
        timings = [asked[i].timing if i in asked else None for i in range(len(p.ids))]
        update = {
            "proposals": {**p.proposals, name: ids},
            "proposal_timings_ms": {**p.proposal_timings_ms, name: timings},
        }
        prompts.append(p.model_copy(update=update))
    drafters = {**recording.drafters, name: {**about, "k": sorted(ks)}}
    return recording.model_copy(update={"prompts": prompts, "drafters": drafters})


def as_text(recording: Recording) -> str:
    return recording.model_dump_json(indent=1) + "\n"
