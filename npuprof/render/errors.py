"""The driver's error count for people."""

from __future__ import annotations

from typing import Any

from npuprof.render.text import printable


def error_lines(found: dict[str, Any], most: int) -> list[str]:
    """Count and classes, where they come from, then at most `most` incidents."""
    source = next(iter(found["sources"].items()))
    where = source[1].get("path") or source[1].get("source") or source[0]
    if found["count"] is None:
        return [printable(f"amdxdna error count not available: {source[1]['detail']}")]
    by = found["by_class"]
    lines = [
        f"amdxdna error count {found['count']} (benign {by['benign']})  from {where}",
        f"  fatal {by['fatal']}, taint {by['taint']}, benign {by['benign']} (own queries {found['own']}), "
        f"info {by['info']}, unknown errors {found['unknown']}",
    ]
    if not found["complete"]:
        lines.append(f"  incomplete: {source[1].get('detail')}")
    lines.append(f"{len(found['incidents'])} incidents")
    for i in found["incidents"][:most]:
        where = f"line {i['first_line']}, {len(i['lines'])} lines"
        lines.append(f"  {i['class']} {i['kind']} {i['device']} ({where}): {i['text']}")
    if len(found["incidents"]) > most:
        lines.append(f"  and {len(found['incidents']) - most} more")
    return [printable(line) for line in lines]
