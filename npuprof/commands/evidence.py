"""A device's collectors, with the kernel-message rules in force."""

from __future__ import annotations

from collections.abc import Callable

from collectors.evidence import Evidence
from collectors.kernel.rules import Rule, RuleError, load_rules
from npuprof.errors import UsageProblem
from npuprof.settings import Configuration, built_in


def kernel_rules(config: Configuration) -> list[Rule]:
    """The user's rules, later configuration first, then the shipped ones. UsageProblem names what is wrong."""
    files = [
        f for folder in reversed(config.folders[1:]) for f in sorted((folder / "kernel-messages.d").glob("*.yaml"))
    ]
    try:
        return load_rules([*files, built_in() / "kernel-messages.yaml"])
    except RuleError as e:
        raise UsageProblem(str(e)) from e
    except OSError as e:
        raise UsageProblem(f"{e.filename}: cannot be read: {e.strerror}") from e


def evidence_for(config: Configuration) -> Callable[[str], Evidence]:
    """Makes the collectors of a device by its name."""
    rules = kernel_rules(config)
    return lambda device: Evidence(device, rules)
