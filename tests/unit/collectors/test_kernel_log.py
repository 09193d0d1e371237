"""The kernel's messages: every labelled public line, every format, and nothing that is not the NPU's."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kernel.classify import Classifier
from collectors.kernel.entry import read_kmsg, read_line
from collectors.kernel.report import report_file
from collectors.kernel.rules import Rule, RuleError, load_rules
from collectors.kernel.sources import Ring, Unreadable, open_source
from collectors.kernel_log import KernelLog
from npuprof.settings import built_in

LOGS = Path(__file__).parents[2] / "data" / "kernel-log"
RULES = load_rules([built_in() / "kernel-messages.yaml"])


def table(name: str) -> list[dict[str, str]]:
    with (LOGS / name).open() as f:
        return list(csv.DictReader(f, delimiter="\t"))


LABELS: dict[str, dict[int, str]] = defaultdict(dict)
for row in table("LABELS.tsv"):
    LABELS[row["file"]][int(row["line_no"])] = row["class"]


@pytest.mark.parametrize("name", sorted(LABELS))
def test_every_labelled_line_has_its_class(name: str) -> None:
    with (LOGS / name).open("rb") as f:
        found = report_file(f, RULES)
    assert {x["line_no"]: x["class"] for x in found["lines"]} == LABELS[name]
    wanted = list(LABELS[name].values())
    assert found["count"] == wanted.count("fatal") + wanted.count("taint")
    assert found["by_class"]["benign"] == wanted.count("benign")


@pytest.mark.parametrize("row", table("INCIDENTS.tsv"), ids=lambda r: r["file"])
def test_incidents(row: dict[str, str]) -> None:
    with (LOGS / row["file"]).open("rb") as f:
        assert len(report_file(f, RULES)["incidents"]) == int(row["incidents"])


@pytest.mark.parametrize(
    ("name", "classes", "incidents"),
    [
        ("S1-dmesg-x.log", ["info", "fatal", "taint", "taint"], 2),
        ("S2-dmesg-ansi-colour.log", ["info", "fatal"], 1),
        ("S3-journalctl-short-iso.log", ["info", "fatal", "taint", "taint"], 2),
        ("S4-journalctl-json.log", ["info", "fatal", "taint", "taint"], 2),
    ],
)
def test_formats(name: str, classes: list[str], incidents: int) -> None:
    with (LOGS / "synthetic" / name).open("rb") as f:
        found = report_file(f, RULES)
    assert [x["class"] for x in found["lines"]] == classes
    assert len(found["incidents"]) == incidents


def test_a_dump_is_one_incident_each_and_every_line_of_it_counts() -> None:
    with (LOGS / "synthetic" / "S6-aie-async-error-and-timeout-dump.log").open("rb") as f:
        found = report_file(f, RULES)
    assert found["by_class"]["fatal"] == 21
    assert [i["kind"] for i in found["incidents"]] == ["aie-error", "aie-error", "timeout"]


def classes(text: str) -> list[str]:
    return [x["class"] for x in report_file(io.BytesIO(text.encode()), RULES)["lines"]]


ERROR = "amdxdna 0000:c5:00.1: [drm] *ERROR* aie2_tdr_detect: TDR timeout detected"


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "<3>",
        "[ 2497.518269] ",
        "[ 2497.518269] [  T135] ",
        "[ 2497.518269 <    0.000001>] ",
        "[Tue Feb 10 10:42:10 2026] ",
        "[10:42:10] ",
        "Aug 05 14:01:09 host kernel: ",
        "Aug  5 14:01:09.123456 host kernel: ",
        "févr. 05 14:01:09 host kernel: ",
        "2025-08-21T10:41:37+0000 host kernel: ",
        "2025-08-21T10:41:37,123456+00:00 ",
        "2024-02-16T09:50:10.661313-08:00 host kernel: [  139.176934] ",
        "Thu 2025-08-21 10:00:31 UTC host kernel: ",
        "1755770431.123456 host kernel: ",
        "[ 2497.518269] host kernel: ",
        "kern  :err   : [ 2497.518269] ",
        "3,1420,2497518269,-;",
        "\x1b[32m[ 2497.518269] \x1b[0m",
        "amdxdna:aie2_tdr_detect:12: ",
        "9999-99-99T99:99:99+0000 host kernel: ",
        "[Nov30 02:32] ",
        "[  +0.000012] ",
        "Nov 10 12:00:00 xdna-box kernel: ",
        "17:",
        "dmesg.txt:17:",
        "> ",
        "[Mo Nov 10 12:00:00 2026] ",
        "11月 10 12:00:00 host kernel: ",
        "Nov 10 2025 12:00:00 host kernel: ",
    ],
)
def test_every_stamp(prefix: str) -> None:
    assert classes(prefix + ERROR) == ["fatal"]


@pytest.mark.parametrize(
    "line",
    [
        f"<11>{ERROR}",
        f"daemon:err   : [ 2497.518269] {ERROR}",
        f"Aug 05 14:01:09 host sshd[42]: {ERROR}",
        f"12,1420,2497518269,-;{ERROR}",
        json.dumps({"MESSAGE": ERROR, "_TRANSPORT": "syslog", "SYSLOG_FACILITY": "3"}),
        json.dumps({"MESSAGE": ERROR, "_TRANSPORT": "kernel", "SYSLOG_FACILITY": "1"}),
    ],
)
def test_only_the_kernel_counts(line: str) -> None:
    assert classes(line) == ["not-npu"]


def test_a_journal_message_of_bytes() -> None:
    assert classes(json.dumps({"MESSAGE": list((ERROR + "\x1b[0m").encode()), "_TRANSPORT": "kernel"})) == ["fatal"]


FAULT = "{} 0000:{}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0001 address=0x0 flags=0x0007]"


def test_suppressed_lines_belong_to_the_storm_that_they_stand_in() -> None:
    npu, disk = FAULT.format("amdxdna", "c6:00.1"), FAULT.format("nvme", "01:00.0")
    suppressed = "amd_iommu_report_page_fault: 1029 callbacks suppressed"
    assert classes(f"[ 1.0] {npu}\n[ 1.1] {suppressed}\n[ 9.0] usb 1-1: hello") == ["taint", "taint", "not-npu"]
    assert classes(f"[ 1.0] {suppressed}\n[ 1.1] {npu}") == ["taint", "taint"]
    assert classes(f"[ 1.0] {suppressed}\n[ 1.1] {disk}") == ["not-npu", "not-npu"]
    assert classes(f"[ 1.0] {npu}\n[ 9.0] {suppressed}\n[ 9.1] {disk}") == ["taint", "not-npu", "not-npu"]
    assert classes(f"[ 1.0] {suppressed}") == ["not-npu"]
    assert classes("[ 1.0] aie2_send_msg: 12 callbacks suppressed") == ["taint"]


def test_faults_under_another_drivers_name_count_for_the_npus_bdf() -> None:
    other = FAULT.format("vfio-pci", "c6:00.1")
    assert classes(f"[ 1.0] {other}") == ["not-npu"]
    assert classes(f"[ 1.0] amdxdna 0000:c6:00.1: enabling device\n[ 9.0] {other}") == ["info", "taint"]
    record = f"3,9,9000000,-;{FAULT.format('pci', 'c6:00.1')}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:c6:00.1"
    parsed = read_kmsg(record)
    assert parsed is not None
    classifier = Classifier(RULES, ["0000:c6:00.1"])
    assert [x.line_class for x in [*classifier.feed(parsed[1]), *classifier.flush()]] == ["taint"]


def test_a_second_initialisation_is_a_reload() -> None:
    line = "[drm] Initialized amdxdna_accel_driver 0.6.0 for 0000:c5:00.1 on minor 0"
    found = report_file(io.BytesIO(f"[ 1.0] {line}\n[ 99.0] {line}\n".encode()), RULES)
    assert [x["class"] for x in found["lines"]] == ["info", "taint"]
    assert found["incidents"] == []
    assert found["count"] == 1


def test_unknown_errors_taint_and_join_an_open_fatal_incident() -> None:
    unknown = "amdxdna 0000:c5:00.1: [drm] *ERROR* aie2_new_thing: never heard of, ret -5"
    found = report_file(io.BytesIO(f"[ 1.0] {unknown}\n".encode()), RULES)
    assert (found["by_class"]["taint"], found["unknown"]) == (1, 1)
    assert classes(f"[ 1.0] {ERROR}\n[ 1.1] {unknown}\n[ 9.0] {unknown}") == ["fatal", "fatal", "taint"]
    killed = "amdxdna 0000:c5:00.1: [drm] *ERROR* aie2_xrs_unload: destroy context failed, ret -19"
    assert classes(f"[ 1.0] {killed}") == ["benign"]
    assert classes(f"[ 1.0] {ERROR}\n[ 1.1] {killed}") == ["fatal", "fatal"]
    own = "amdxdna 0000:c5:00.1: [drm] *ERROR* aie2_get_info: Not supported request parameter 12"
    found = report_file(io.BytesIO(own.encode()), RULES)
    assert (found["by_class"]["benign"], found["own"]) == (1, 1)
    assert classes("<3>amdxdna 0000:c5:00.1: no star, but level err") == ["taint"]


def test_without_stamps_a_root_message_opens_another_incident() -> None:
    def incidents(text: str) -> int:
        return len(report_file(io.BytesIO(text.encode()), RULES)["incidents"])

    assert incidents(f"{ERROR}\n{ERROR}\n") == 2
    assert incidents(f"{ERROR}\nother line\n{ERROR.replace('TDR timeout detected', 'start npu failed, ret -5')}\n") == 2
    assert incidents(f"{FAULT.format('amdxdna', 'c6:00.1')}\n" * 10) == 1
    assert incidents(f"[ 1.0] {ERROR}\n[ 1.5] {ERROR}\n[ 3.0] {ERROR}\n") == 2


OOPS = """[ 1.0] BUG: unable to handle page fault for address: ffffd00e809ccfff
[ 1.0] #PF: supervisor write access in kernel mode
[ 1.0] Modules linked in: amdxdna(OE) {modules}
[ 1.0]  snd_hda_codec kvm
[ 1.0] RIP: 0010:drm_clflush_virt_range+0x33/0x60
[ 1.0] Call Trace:
[ 1.0]  {frame}+0x151/0x220 {where}
[ 1.0] ---[ end trace 0000000000000000 ]---
[ 1.1] usb 1-1: hello
"""


def test_a_crash_is_the_npus_if_its_trace_is_and_not_for_a_list_of_modules() -> None:
    ours = OOPS.format(modules="xocl", frame="amdxdna_drm_sync_bo_ioctl", where="[amdxdna]")
    assert classes(ours) == ["fatal"] * 2 + ["not-npu"] * 2 + ["fatal"] * 4 + ["not-npu"]
    theirs = OOPS.format(modules="xocl", frame="nvme_queue_rq", where="[nvme]")
    assert set(classes(theirs)) == {"not-npu"}
    two = theirs.replace("---[ end trace 0000000000000000 ]---", "") + ours
    assert classes(two).count("fatal") == 6


def test_a_long_trace_is_whole_in_a_large_log_too() -> None:
    start = "[ 1.0] BUG: unable to handle page fault\n" + "[ 1.0]  f+0x1/0x2\n" * 200
    trace = start + "[ 1.0]  amdxdna_f+0x1/0x2 [amdxdna]\n[ 1.0] ---[ end trace 0 ]---\n"
    noise = b"[ 0.5] usb 3-2: new high-speed USB device number 5\n" * 40_000
    assert report_file(io.BytesIO(noise + trace.encode()), RULES)["by_class"]["fatal"] == 203


def test_a_trace_without_an_end_is_bounded() -> None:
    text = "[ 1.0] WARNING: CPU: 1 at drivers/accel/amdxdna/x.c:1\n" + "[ 1.0]  amdxdna_f+0x1/0x2 [amdxdna]\n" * 400
    found = classes(text)
    assert len(found) == 401
    assert found[0] == "taint"
    assert classes(f"[ 1.0] WARNING: CPU: 1 at drivers/accel/amdxdna/x.c:1\n[ 9.0] {ERROR}") == ["taint", "fatal"]


foreign_text = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=80)


@given(st.lists(foreign_text, max_size=30))
def test_random_foreign_lines_never_count(lines: list[str]) -> None:
    text = "\n".join(f"[ {i}.0] usb {line}" for i, line in enumerate(lines))
    found = report_file(io.BytesIO(text.encode()), RULES)
    assert found["count"] == 0
    assert found["incidents"] == []


@given(
    st.sampled_from(["nvme 0000:01:00.0", "amdgpu 0000:c6:00.0", "ccp 0000:c3:00.2", "usb 3-2", "systemd[1]"]),
    st.sampled_from(
        [
            "AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0 address=0xfc flags=0x0]",
            "[drm] *ERROR* ring gfx timeout",
            "Wait for completion timeout",
            "firmware is not alive",
            "probe failed with error -22",
            "Modules linked in: amdxdna(OE) kvm",
            "PM: failed to suspend async: error -19",
            "amdxdna is a word here",
        ],
    ),
    st.integers(1, 5),
)
def test_other_devices_with_the_same_words_never_count(device: str, text: str, times: int) -> None:
    log = f"[ 1.0] {device}: {text}\n" * times
    assert report_file(io.BytesIO(log.encode()), RULES)["count"] == 0


@pytest.mark.parametrize("function", ["mailbox_init", "npu_probe", "solver_run", "aie_gnss_probe"])
def test_functions_of_other_drivers_never_count(function: str) -> None:
    assert classes(f"<3>[ 1.0] {function}: probe failed, ret -5") == ["not-npu"]


def test_a_large_log_finds_its_needles_and_leaves_the_rest_out() -> None:
    noise = b"[ 1234.567890] usb 3-2: new high-speed USB device number 5\n"
    at = f"[ 2000.0] {ERROR}\n".encode()
    head = noise * 60_000
    found = report_file(io.BytesIO(head + at + noise * 60_000 + b"no newline at the end"), RULES)
    assert found["count"] == 1
    assert found["incidents"][0]["first_line"] == 60_001
    assert not found["lines_complete"]
    assert found["lines"] == [{"line_no": 60_001, "class": "fatal"}]
    small = report_file(io.BytesIO(noise * 20_000 + at), RULES)
    assert small["lines_complete"]
    assert len(small["lines"]) == 20_001


@given(st.integers(0, 40), st.integers(0, 40))
def test_line_numbers_do_not_depend_on_how_much_is_read(before: int, after: int) -> None:
    text = "[ 1.0] a: b\n" * before + f"[ 2.0] {ERROR}\n" + "[ 3.0] c: d\n" * after
    padded = text + "[ 4.0] e: f\n" * 100_000
    [small] = report_file(io.BytesIO(text.encode()), RULES)["incidents"]
    [large] = report_file(io.BytesIO(padded.encode()), RULES)["incidents"]
    assert small == large


def fake_kmsg(root: Path, *records: str) -> None:
    (root / "dev").mkdir(exist_ok=True)
    (root / "dev/kmsg").write_text("".join(r + "\n" for r in records))


def test_the_ring_is_followed_by_sequence_number(tmp_path: Path) -> None:
    fake_kmsg(tmp_path, "6,10,1000000,-;hello", f"3,11,2000000,-;{ERROR}")
    log = KernelLog(RULES, ["0000:c5:00.1"], tmp_path)
    before = log.read()
    assert before.status == "live"
    assert before.reading is not None
    assert (before.reading["source"], before.reading["count"], before.reading["lost"]) == ("kmsg", 1, "")
    fake_kmsg(
        tmp_path, f"3,11,2000000,-;{ERROR}", f"3,12,9000000,-;{ERROR}\n SUBSYSTEM=pci", "garbage", "6,13,9000001,-;x"
    )
    after = log.read()
    assert after.reading is not None
    assert after.reading["count"] == 2
    assert [x["kind"] for x in after.reading["window"]["lines"]] == ["timeout"]
    assert after.reading["window"]["incidents"][0]["first_stamp_s"] == 9.0
    fake_kmsg(tmp_path, "6,40,9900000,-;wrapped")
    lost = log.read()
    assert lost.detail == "26 kernel messages were overwritten before they were read"


def test_no_source_says_why_and_what_would_help(tmp_path: Path) -> None:
    reading = KernelLog(RULES, [], tmp_path).read()
    assert reading.status == "not_available"
    assert "kernel.dmesg_restrict=0" in reading.detail
    fake_kmsg(tmp_path, "6,1,1,-;x")
    log = KernelLog(RULES, [], tmp_path)
    log.read()
    (tmp_path / "dev/kmsg").unlink()
    assert log.read().status == "not_available"


@pytest.mark.skipif(not os.access("/dev/kmsg", os.W_OK), reason="/dev/kmsg cannot be written here")
def test_what_a_process_writes_to_the_real_ring_does_not_count() -> None:
    ring = Ring()
    log = KernelLog(RULES, [])
    before = log.read()
    Path("/dev/kmsg").write_text(f"<3>{ERROR}\n")
    written = [e for e in ring.read() if e.text == ERROR]
    assert written
    assert not any(e.kern for e in written)
    after = log.read()
    if before.reading is not None and before.reading["source"] == "kmsg":
        assert after.reading is not None
        assert after.reading["count"] == before.reading["count"]


JOURNAL_REMOTE = Path("/lib/systemd/systemd-journal-remote")


def journal_entries(root: Path, boot: str, first: int, *messages: tuple[str, str, str]) -> None:
    """Writes (message, transport, facility) into a real journal file under root."""
    folder = root / "var/log/journal"
    folder.mkdir(parents=True, exist_ok=True)
    text = ""
    for i, (message, transport, facility) in enumerate(messages, first):
        text += (
            f"__REALTIME_TIMESTAMP={1790000000000000 + i * 1000000}\n__MONOTONIC_TIMESTAMP={i * 1000000}\n_BOOT_ID={boot}\n"
            f"_TRANSPORT={transport}\nSYSLOG_FACILITY={facility}\nPRIORITY=3\n_SOURCE_MONOTONIC_TIMESTAMP={i * 1000000}\n"
            f"{'_KERNEL_DEVICE=+pci:0000:c5:00.1' if 'xdna' in message else 'X=1'}\nMESSAGE={message}\n\n"
        )
    command = [str(JOURNAL_REMOTE), "-o", str(folder / "test.journal"), "-"]
    subprocess.run(command, input=text.encode(), check=True, capture_output=True)


@pytest.mark.skipif(
    not JOURNAL_REMOTE.exists(),
    reason="systemd-journal-remote is not installed: apt-get install systemd-journal-remote",
)
def test_a_real_journal_is_followed_by_cursor(tmp_path: Path) -> None:
    boot = "0123456789abcdef0123456789abcdef"
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text(f"{boot}\n")
    with pytest.raises(Unreadable, match="systemd-journal or adm"):
        open_source(tmp_path)
    first = (ERROR, "kernel", "0"), (ERROR, "syslog", "0"), (ERROR, "kernel", "1")
    journal_entries(tmp_path, boot, 1, *first)
    journal_entries(tmp_path, "f" * 32, 50, (ERROR, "kernel", "0"))
    log = KernelLog(RULES, ["0000:c5:00.1"], tmp_path)
    before = log.read()
    assert before.reading is not None
    assert (before.reading["source"], before.reading["count"]) == ("journal", 1)
    journal_entries(tmp_path, boot, 100, (ERROR, "kernel", "0"), ("usb 1-1: hello", "kernel", "0"))
    after = log.read()
    assert after.reading is not None
    assert after.reading["count"] == 2
    assert len(after.reading["window"]["incidents"]) == 1
    again = log.read()
    assert again.reading is not None
    assert again.reading["window"]["lines"] == []


def rules(tmp_path: Path, text: str) -> list[Rule]:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return load_rules([file, built_in() / "kernel-messages.yaml"])


def test_a_users_rule_comes_first(tmp_path: Path) -> None:
    mine = rules(
        tmp_path, "- {class: benign, kind: mine, pattern: '^TDR timeout', function: 'tdr_detect$', note: known}\n"
    )
    assert report_file(io.BytesIO(ERROR.encode()), mine)["by_class"]["benign"] == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\n", "must be a list of rules"),
        ("- [\n", "not YAML"),
        ("- 1\n", "rule 1: must have class, kind and pattern"),
        ("- {class: bad, kind: x, pattern: y}\n", "rule 1: class: must be one of"),
        ("- {class: fatal, pattern: y}\n", "rule 1: kind: must be a name"),
        ("- {class: fatal, kind: x}\n", "rule 1: pattern: must be a regular expression"),
        ("- {class: fatal, kind: x, pattern: '('}\n", "rule 1: pattern: must be a regular expression"),
        ("- {class: fatal, kind: x, pattern: y, function: 3}\n", "rule 1: function: must be a regular expression"),
        ("- {class: fatal, kind: x, pattern: y, root: 3}\n", "rule 1: root: must be true or false"),
        ("- {class: fatal, kind: x, pattern: y, colour: red}\n", "rule 1: colour: unknown key"),
    ],
)
def test_a_wrong_rule_is_refused_with_file_number_key_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(RuleError) as e:
        rules(tmp_path, text)
    assert str(e.value).startswith(str(tmp_path / "mine.yaml"))
    assert reason in str(e.value)


def test_broken_json_is_text() -> None:
    assert read_line(1, "{not json").text == "{not json"
