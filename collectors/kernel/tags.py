"""Whose line is it? The tag at a kernel message's beginning, or the device that the source names."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

ANY = "npu"
"""The device of a line that is the NPU driver's and names no device."""

_TAG = re.compile(
    r"(?:amdxdna(?:\.amdxdna)?) (?P<device>[\w.-]+(?::[\w.-]+)*|\[\.\.\.\])(?:: |:$| (?=\[drm\]|[\w-]+:))"
)
_ELIDED = re.compile(r"amdxdna \[\.\.\.\] ")
_MODULE = re.compile(r"amdxdna: ")
_DRM = re.compile(r"\[drm\](?: |$)")
_ERROR = re.compile(r"\*ERROR\* ")
_FUNCTION = re.compile(r"(?P<name>(?:aie2|aie4|amdxdna|xdna)_\w+): ?")
_ANY_FUNCTION = re.compile(r"(?P<name>[a-z_][a-z0-9_]*): ?")
_MAILBOX = re.compile(r"xdna_mailbox\.\d+: ")
_BARE = re.compile(
    r"\[drm\] Initialized amdxdna_accel_driver \S+(?: \d{8})? for (?P<device>\S+) on minor|Loading firmware: amdnpu/"
    r"|ctx\.\d+\.\d+ |partition \[\d+, \d+\] max_hwctx|PID \d+ close context \d"
)
_FAULT = re.compile(r"(?P<driver>\S+) (?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): AMD-Vi: ")


@dataclass(frozen=True, slots=True)
class Tagged:
    """A message of the NPU: its device (or ANY), the C function that printed it (or ""), its text, and `*ERROR*` or not."""

    device: str
    function: str
    text: str
    error: bool


def tag(text: str, device: str | None, npus: Set[str]) -> Tagged | None:
    """The NPU's message in `text`, or None if it is somebody else's.

    `device` is the source's own field; `npus` are known BDFs of NPUs, whose faults count whatever driver they name.
    """
    if device is not None and device in npus and not text.startswith("amdxdna"):
        found = _FAULT.match(text)
        return _message(device, text[found.end() - 8 :] if found else text)
    if found := _TAG.match(text):
        name = found["device"]
        return _message(ANY if name == "[...]" else name, text[found.end() :])
    if found := _ELIDED.match(text):
        return _message(ANY, text[found.end() :])
    if found := _MODULE.match(text):
        return _message(ANY, text[found.end() :])
    if found := _BARE.match(text):
        return _message(found["device"] or ANY, text)
    if _MAILBOX.match(text) or _FUNCTION.match(text):
        return _message(ANY, text)
    if (found := _FAULT.match(text)) and found["device"] in npus:
        return _message(found["device"], text[found.end() - 8 :])
    return None


def _message(device: str, text: str) -> Tagged:
    if (found := _DRM.match(text)) and not _BARE.match(text):
        text = text[found.end() :]
    error = bool(_ERROR.match(text))
    if error:
        text = text[8:]
    function = ""
    if found := _ANY_FUNCTION.match(text):
        function, text = found["name"], text[found.end() :]
    return Tagged(device, function, text, error)
