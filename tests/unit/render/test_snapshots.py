"""The live table and the report at 80 and 140 columns, against stored SVG pictures.

NPUPROF_SNAPSHOTS=write pytest tests/unit/render renews them; look at the difference before you commit it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from records import ID, make_passes, make_record, usual_record, usual_walls, voided
from rich.console import Console

from npuprof.model.condition import Condition
from npuprof.model.events import Note, PassDone, Started
from npuprof.model.record import Record
from npuprof.render.live import frame
from npuprof.render.progress import Progress
from npuprof.render.report import Report

PICTURES = Path(__file__).parents[2] / "data" / "snapshots"
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>{styles}</style>
<defs>{lines}</defs>
<rect fill="#0c0c0c" width="100%" height="100%"/>
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""


def picture(width: int, draw: Callable[[Console], None]) -> str:
    console = Console(
        record=True,
        width=width,
        height=50,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    draw(console)
    return console.export_svg(title="", code_format=SVG, unique_id="npuprof")


def same(name: str, got: str) -> None:
    file = PICTURES / f"{name}.svg"
    if os.environ.get("NPUPROF_SNAPSHOTS") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(got)
    assert got == file.read_text(), f"{file} differs; see the top of this file"


def half_way() -> Progress:
    record = usual_record()
    progress = Progress()
    conditions = ("step", "rows=5", "rows=16", "rows=17", "rows=128")
    progress.feed(Started(ID, record.request, record.target, conditions, 6))
    for p in voided(make_passes(usual_walls(3)), {6}):
        progress.feed(PassDone(p))
    progress.feed(Note("cliff between 16 and 17 rows: [bold]not markup[/bold] \x1b[2J"))
    return progress


def distrusted() -> Record:
    walls = {c: [[w * (1.3 if b >= 3 else 1) for w in ws] for b, ws in enumerate(r)] for c, r in usual_walls().items()}
    walls[Condition(5)][2][0] = 30.0
    passes = [replace(p, line="[bs] M= 5") for p in make_passes(walls)]
    return make_record(passes, id="20261111T150211Z-def456")


@pytest.mark.parametrize("width", [80, 140])
def test_live_table(width: int) -> None:
    same(f"live-{width}", picture(width, lambda console: console.print(frame(half_way(), width))))


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", ["trusted", "distrusted"])
def test_report(width: int, name: str) -> None:
    record = usual_record() if name == "trusted" else distrusted()
    same(f"report-{name}-{width}", picture(width, lambda console: Report(console).render(record)))
