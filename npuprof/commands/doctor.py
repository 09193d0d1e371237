"""`npuprof doctor`: what this machine has for timing an NPU, and what to type next for each thing missing."""

from __future__ import annotations

from pathlib import Path

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json


@click.command()
@json_option
@config_option
@debug_option
def doctor(as_json: bool, config_file: Path | None) -> int:
    """Check driver, firmware, permissions, XRT and pyxrt, the log, power, the hold, the daemon; useful without an NPU too.

    Example: npuprof doctor
    """
    from collectors.doctor import examine
    from npuprof.campaign.hold import Hold, default_device, is_enforced
    from npuprof.daemon.installation import examine_installation
    from npuprof.errors import DeviceProblem
    from npuprof.render.text import printable
    from npuprof.targets.xrt.find import examine as xrt_checks

    checks = [*examine(), *xrt_checks()]
    directory = configuration(config_file).settings.hold.directory
    device = default_device()
    try:
        holder, waiters = Hold(directory, device).status()
    except DeviceProblem as e:
        checks.append(
            {
                "name": "hold",
                "status": "missing",
                "detail": str(e),
                "next": f"sudo install -d -m 2770 -g npuprof {directory}",
            }
        )
    else:
        who = (
            "free"
            if holder is None
            else f"held by pid {holder.pid} ({holder.user}) since {holder.since}, {len(waiters)} wait"
        )
        enforced = is_enforced(directory, device)
        kind = "enforced" if enforced else "advisory: the node can be opened without it"
        checks.append({"name": "hold", "status": "ok", "detail": f"{device}: {who}; {kind}", "next": ""})
    checks += examine_installation()
    if as_json:
        print_json({"checks": checks})
        return 0
    for c in checks:
        click.echo(printable(f"{c['status']:<14} {c['name']}: {c['detail']}"))
        if c["next"]:
            click.echo(printable(f"               type: {c['next']}"))
    return 0
