"""The key for servers that want one: out of the environment or a file, never off the command line."""

from __future__ import annotations

import os
import stat

from npuprof.errors import UsageProblem
from npuprof.settings import Settings

VARIABLE = "NPUPROF_API_KEY"


def provide_key(settings: Settings) -> None:
    """Puts the key of `serve.api_key_file` where clients look for it, unless the variable is set; it is never kept.

    UsageProblem if the file cannot be read, holds no single line, or may be read by everybody.
    """
    file = settings.serve.api_key_file
    if file is None or os.environ.get(VARIABLE):
        return
    try:
        everybody = file.stat().st_mode & stat.S_IROTH
        words = file.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageProblem(
            f"serve.api_key_file {file}: cannot be read: {getattr(e, 'strerror', 'not ASCII')}"
        ) from None
    if everybody:
        raise UsageProblem(f"serve.api_key_file {file}: everybody may read it; type: chmod o-r {file}")
    if len(words) != 1:
        raise UsageProblem(f"serve.api_key_file {file}: must hold the key alone, on one line")
    os.environ[VARIABLE] = words[0]
