"""The command line: finds the verb's module only when it is needed, and turns every error into an exit code."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

import click

from npuprof import __version__
from npuprof.errors import INTERNAL, INTERRUPTED, OK, USAGE, NpuprofError

# name: (module, attribute, one line for --help). Modules are imported when their verb is used: --help stays quick.
_VERBS = {
    "run": ("run", "run", "Run one campaign here: ticket, live table, report."),
    "submit": ("submit", "submit", "Queue a campaign with the daemon; prints its id."),
    "watch": ("watch", "watch", "A queued campaign's live table, to its end."),
    "queue": ("queue", "queue", "What is running and what waits."),
    "cancel": ("cancel", "cancel", "Take a campaign out of the queue, or end it."),
    "hold": ("hold", "hold", "Run a command under the device hold, or see who has it."),
    "parse": ("parse", "parse", "Read pass lines out of a log."),
    "summarize": ("summarize", "summarize", "Statistics of samples from anywhere."),
    "list": ("list_runs", "list_runs", "List the records."),
    "show": ("show", "show", "Print a record's report."),
    "hist": ("hist", "hist", "Histograms of a record's wall times."),
    "check": ("check", "check", "Re-derive a record and say what it is worth."),
    "args": ("args", "args", "--pass-ms and --step-ms of a record, for a shell."),
    "accept": ("accept", "accept", "Acceptance: record, replay, and whether speculation pays."),
    "audit": ("audit", "audit", "Derive every figure again that a file or a pasted text states."),
    "trace": ("trace", "trace", "Driver phases out of a saved trace."),
    "export": ("export", "export", "A record for other tools: perfetto."),
    "plan": ("plan", "plan", "Pass plans of the XRT target: check one, print a template."),
    "errors": ("errors", "errors", "The driver's error count, now or of a saved log."),
    "doctor": ("doctor", "doctor", "What this machine has, and what to type for what is missing."),
    "config": ("config", "config", "The configuration in force."),
    "serve-reference": (
        "serve_reference",
        "serve_reference",
        "A small real server on the CPU that speaks what --target serve expects.",
    ),
    "selftest": ("selftest", "selftest", "The published cases, on this installation."),
}


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module, attribute, _ = _VERBS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"npuprof.commands.{module}"), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            # click would make exit code 1 of it, which here means a bug. What is buffered must not raise at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return OK

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="npuprof")
def cli() -> None:
    """Times LLM decode steps and M-row passes on AMD XDNA NPUs, under a device hold, and says what each millisecond was.

    Example: npuprof run --target reference --rows 2,5,16,17
    """


def main(argv: list[str] | None = None) -> None:
    """Entry point: runs a verb and exits with its code."""
    args = sys.argv[1:] if argv is None else argv
    own = args[: args.index("--")] if "--" in args else args
    try:
        code: Any = cli.main(args, prog_name="npuprof", standalone_mode=False)
    except NpuprofError as e:
        code = _complain(str(e), e.exit_code, own)
    except click.exceptions.NoArgsIsHelpError as e:
        print(e.format_message())
        code = USAGE
    except click.UsageError as e:
        hint = f"; see: {e.ctx.command_path} --help" if e.ctx is not None else ""
        code = _complain(e.format_message().rstrip(".") + hint, USAGE, own)
    except click.ClickException as e:
        code = _complain(e.format_message(), USAGE, own)
    except (KeyboardInterrupt, click.Abort):
        code = _complain("interrupted", INTERRUPTED, [a for a in own if a == "--json"])
    except Exception as e:  # noqa: BLE001 - the one place where a bug becomes exit code 1
        code = _complain(f"internal error: {type(e).__name__}: {e}; --debug shows where", INTERNAL, own)
    sys.exit(code if isinstance(code, int) else OK)


def _complain(text: str, code: int, args: list[str]) -> int:
    """One sentence on standard error; with --json the same as an object on standard output, which then has nothing else."""
    if "--debug" in args:
        traceback.print_exc()
    if "--json" in args:
        print(json.dumps({"error": text, "exit_code": code}))
    from npuprof.render.text import printable

    print(f"npuprof: {printable(text)}", file=sys.stderr)
    return code
