"""A recording in a few lines."""

from __future__ import annotations

from npuprof.model.acceptance import Recording
from npuprof.render.acceptance import acceptance_trust
from npuprof.render.text import printable

_SHOWN = 60


def recording_lines(recording: Recording, file: str) -> list[str]:
    target = recording.target
    build = f", build {target['build']}" if target.get("build") else ""
    lines = [
        f"recorded {file}",
        f"target  {target.get('model')} at {target.get('url')} ({target.get('server') or 'server not named'}{build})",
        f"        {_sampling(target.get('sampling'))}, end of text {'ignored' if target.get('ignore_eos') else 'respected'}",
    ]
    if recording.ticket is not None:
        lines.append(f"ticket  {recording.ticket.device} through {recording.ticket.through}")
    for p in recording.prompts:
        text = p.text if len(p.text) <= _SHOWN else f"{p.text[:_SHOWN]}…"
        lines.append(f"{p.name}: {len(p.prompt_ids)} prompt tokens, {len(p.ids)} recorded, {p.finish_reason}: {text}")
    if recording.repeat is not None:
        same = "the same text" if recording.repeat.equal else "ANOTHER text"
        lines.append(f"twice   {same} ({recording.repeat.server})")
    else:
        lines.append("twice   not recorded a second time")
    if recording.trust is not None:
        lines += acceptance_trust(recording.trust.trusted, [f"{r.code}: {r.text}" for r in recording.trust.reasons])
    return [printable(line) for line in lines]


def _sampling(sampling: object) -> str:
    if not isinstance(sampling, dict):
        return str(sampling)
    return "sampling as echoed: " + ", ".join(
        f"{k} {v}" for k, v in sampling.items() if k in ("temperature", "repeat_penalty")
    )
