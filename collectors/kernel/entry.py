"""One kernel message, whatever log it stood in."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """`stamp` is in seconds and comparable within one log only; `level` and `device` where the source gives them.

    `marked` says that the line began with a stamp or a log prefix: a bare line after such a one continues it.
    `kern` is false where the source says that something other than the kernel wrote it.
    """

    line_no: int
    text: str
    stamp: float | None = None
    level: int | None = None
    device: str | None = None
    marked: bool = False
    kern: bool = True


_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PRIORITY = re.compile(r"<(\d{1,3})>")
_DECODED = re.compile(r"([a-z0-9]+) *:([a-z]+) *: ")
_LEVELS = {"emerg": 0, "alert": 1, "crit": 2, "err": 3, "warn": 4, "notice": 5, "info": 6, "debug": 7}
_SYSLOG = re.compile(
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)"
    r"|[^\W\d_]{3,5}\.? +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d(?:\.\d+)?)"
    r"|[^\W\d_]{3} (?P<full>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) [A-Z]{2,5}"
    r"|(?P<unix>\d{9,11}\.\d+)) +"
)
_HOST = re.compile(r"(?P<host>[\w.-]+) (?P<who>[\w.()/-]+)(?:\[\d+\])?: ")
_BRACKET = re.compile(
    r"\[(?: *(?P<mono>\d+\.\d+)(?: <[ \d.+]+>)?|(?P<clock>\d\d:\d\d:\d\d)|\w{3} (?P<date>\w{3} +\d+ \d\d:\d\d:\d\d \d{4})"
    # dmesg -H: the minute, then only what went by since.
    r"| *[TC]\d*|\w{3} ?\d+ \d\d:\d\d| *\+\d+\.\d+)\] ?"
)
_BURIED = re.compile(r"(?<![\w.=\"'])amdxdna [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: ")
"""The driver's tag behind a prefix of some other form (grep -n, quotes, other languages' dates)."""
_DYNDBG = re.compile(r"amdxdna:\w+:\d+: ")


def read_text(line_no: int, line: str) -> Entry:
    """A line of `dmesg` or `journalctl`, in any of their time formats, with or without colours."""
    text = _ESCAPE.sub("", line) if "\x1b" in line else line
    level: int | None = None
    stamp: float | None = None
    kern, marked = True, False
    text = text.strip()
    if found := _PRIORITY.match(text):
        number = int(found[1])
        level, kern, marked, text = number & 7, number >> 3 == 0, True, text[found.end() :]
    elif (found := _DECODED.match(text)) and found[2] in _LEVELS:
        level, kern, marked, text = _LEVELS[found[2]], found[1] == "kern", True, text[found.end() :]
    syslog = _SYSLOG.match(text)
    if found := syslog:
        stamp, marked, text = _syslog_stamp(found), True, text[found.end() :]
    if found := _BRACKET.match(text):
        stamp, marked, text = _bracket_stamp(found, stamp), True, text[found.end() :]
    if marked and (found := _HOST.match(text)) and (syslog or found["who"] == "kernel") and not _is_tag(found):
        kern, text = kern and found["who"] == "kernel", text[found.end() :]
    while found := _BRACKET.match(text):  # rsyslog keeps the kernel's own stamp; printk may add the caller
        stamp, marked, text = _bracket_stamp(found, stamp), True, text[found.end() :]
    if not marked and (found := _BURIED.search(text)):
        text = text[found.start() :]
    if found := _DYNDBG.match(text):
        level, text = 7, text[found.end() :]
    return Entry(line_no, text, stamp, level, None, marked, kern)


def _is_tag(found: re.Match[str]) -> bool:
    """`host kernel: ` stands after a stamp; `amdxdna 0000:c5:00.1: ` may too, and is a device's tag."""
    return found["host"].startswith("amdxdna")


def _syslog_stamp(found: re.Match[str]) -> float:
    if found["unix"]:
        return float(found["unix"])
    if found["day"]:
        h, m, s = found["time"].split(":")
        return int(found["day"]) * 86400 + int(h) * 3600 + int(m) * 60 + float(s)
    iso = (found["iso"] or found["full"]).replace(",", ".").replace(" UTC", "+00:00").replace("Z", "+00:00")
    iso = re.sub(r" ?([+-]\d\d)(\d\d)$", r"\1:\2", iso)
    iso = re.sub(r"\.(\d{1,6})\d*", lambda d: "." + d[1].ljust(6, "0"), iso)
    try:
        return datetime.fromisoformat(iso).timestamp()
    except ValueError:  # shaped like a date and none, such as month 13
        return 0.0


def _bracket_stamp(found: re.Match[str], before: float | None) -> float | None:
    if found["mono"]:
        return float(found["mono"])
    if found["clock"]:
        h, m, s = map(int, found["clock"].split(":"))
        return float(h * 3600 + m * 60 + s)
    if found["date"]:
        _, day, clock, _ = found["date"].split()
        h, m, s = map(int, clock.split(":"))
        return float(int(day) * 86400 + h * 3600 + m * 60 + s)
    return before


def read_kmsg(record: str) -> tuple[int, Entry] | None:
    """A record of /dev/kmsg, `prefix;text` with its ` KEY=value` lines: sequence number and entry. None if it is none."""
    head, semicolon, rest = record.partition(";")
    fields = head.split(",")
    if not semicolon or len(fields) < 3 or not all(f.isdigit() for f in fields[:3]):
        return None
    number, seq, usec = (int(f) for f in fields[:3])
    text, *pairs = rest.split("\n")
    device = next((p[8:] for p in pairs if p.startswith(" DEVICE=")), None)
    entry = Entry(seq, text.strip(), usec / 1e6, number & 7, _device_name(device), True, number >> 3 == 0)
    return seq, entry


def read_json(line_no: int, data: dict[str, Any]) -> Entry:
    """An entry of `journalctl -o json`."""
    message = data.get("MESSAGE")
    if isinstance(message, list):
        message = bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode("utf-8", "replace")
    micros = data.get("_SOURCE_MONOTONIC_TIMESTAMP") or data.get("__REALTIME_TIMESTAMP")
    priority = str(data.get("PRIORITY", ""))
    kern = data.get("_TRANSPORT", "kernel") == "kernel" and str(data.get("SYSLOG_FACILITY", "0")) == "0"
    return Entry(
        line_no,
        _ESCAPE.sub("", message).strip() if isinstance(message, str) else "",
        int(str(micros)) / 1e6 if str(micros).isdigit() else None,
        int(priority) if priority.isdigit() else None,
        _device_name(data.get("_KERNEL_DEVICE")),
        True,
        kern,
    )


def _device_name(field: Any) -> str | None:
    """`+pci:0000:c5:00.1` as `0000:c5:00.1`."""
    return field.partition(":")[2] if isinstance(field, str) and field.startswith("+") else None


def read_line(line_no: int, line: str) -> Entry:
    """A line of a log file of any kind: JSON, kmsg, or text."""
    if line.startswith("{"):
        try:
            data = json.loads(line)
        except ValueError:
            data = None
        if isinstance(data, dict):
            return read_json(line_no, data)
    kmsg = read_kmsg(line)
    if kmsg is not None:
        entry = kmsg[1]
        return Entry(line_no, entry.text, entry.stamp, entry.level, entry.device, True, entry.kern)
    return read_text(line_no, line)
