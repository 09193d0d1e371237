"""The hold's chain of locks, within one process and with wrappers; the random kills are in tests/integration."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from npuprof.campaign.hold import VARIABLE, Claim, Hold, default_device, devices, is_enforced
from npuprof.errors import Busy, DeviceProblem, UsageProblem


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    return Hold(tmp_path / "hold", "accel0")


def test_first_come_first_served(hold: Hold) -> None:
    first = hold.take("first", None)
    order: list[str] = []
    waiting = threading.Event()
    seen: list[tuple[Claim, int]] = []

    def wait(name: str) -> None:
        def tell(holder: Claim, ahead: int) -> None:
            seen.append((holder, ahead))
            waiting.set()

        held = hold.take(name, None, tell)
        order.append(name)
        held.release()

    threads = []
    for name in ("second", "third", "fourth"):
        waiting.clear()
        threads.append(threading.Thread(target=wait, args=(name,)))
        threads[-1].start()
        assert waiting.wait(10)
    holder, waiters = hold.status()
    assert holder is not None
    assert (holder.reason, holder.pid) == ("first", os.getpid())
    assert [w.reason for w in waiters] == ["second", "third", "fourth"]
    first.release()
    for t in threads:
        t.join(10)
    assert order == ["second", "third", "fourth"]
    assert [(h.reason, n) for h, n in seen[:3]] == [("first", 1), ("first", 2), ("first", 3)]
    assert hold.status() == (None, [])


def test_a_timeout_says_who_holds_and_leaves_no_place(hold: Hold) -> None:
    first = hold.take("first", None)
    for timeout in (0.0, 0.05):
        with pytest.raises(Busy, match=f"accel0 is held by pid {os.getpid()} .*hold status"):
            hold.take("second", timeout)
    assert hold.status()[1] == []
    first.release()
    hold.take("third", 0.0).release()


def test_dead_tickets_are_swept_and_numbers_rise(hold: Hold) -> None:
    numbers = []
    for _ in range(3):
        held = hold.take("x", 0)
        numbers.append(held.number)
        held.release()
    live = hold.take("live", 0)
    assert len(list(hold.directory.glob("*.ticket"))) == 1
    assert live.number == numbers[-1] + 1
    live.release()


def test_a_draft_left_by_a_killed_process_is_no_obstacle(hold: Hold) -> None:
    hold.take("x", 0).release()
    draft = hold.directory / ".accel0.new"
    draft.write_text("half")
    hold.take("y", 0).release()
    assert not draft.exists()


def test_devices_do_not_block_each_other(tmp_path: Path) -> None:
    a = Hold(tmp_path / "hold", "accel0").take("a", 0)
    b = Hold(tmp_path / "hold", "accel1").take("b", 0)
    assert devices(tmp_path / "hold") == ["accel0", "accel1"]
    a.release()
    b.release()


def test_modes_of_the_first_user_and_of_a_shared_directory(tmp_path: Path) -> None:
    own = Hold(tmp_path / "own", "accel0")
    held = own.take("x", 0)
    assert stat.S_IMODE(own.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in own.directory.iterdir()} == {0o600}
    held.release()
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    held = Hold(shared, "accel0").take("x", 0)
    assert {stat.S_IMODE(p.stat().st_mode) for p in shared.iterdir()} == {0o660}
    held.release()


def test_an_unusable_directory_says_what_mends_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for directory in (file, file / "below", tmp_path / "no" / "parent"):
        with pytest.raises(DeviceProblem, match=r"sudo install -d -m 2770 -g npuprof"):
            Hold(directory, "accel0").take("x", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_second_user_of_a_private_directory_gets_the_command_that_mends_it() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders let no other user in
        Path(folder).chmod(0o755)
        _a_second_user_is_told(Path(folder) / "hold")


def _a_second_user_is_told(directory: Path) -> None:
    Hold(directory, "accel0").take("x", 0).release()
    code = (
        "import os, sys, pathlib; from npuprof.campaign.hold import Hold; from npuprof.errors import DeviceProblem\n"
        "os.setuid(65534)\n"
        "for act in (lambda h: h.take('x', 0), lambda h: h.status()):\n"
        "    try: act(Hold(pathlib.Path(sys.argv[1]), 'accel0'))\n"
        "    except DeviceProblem as e: print(e)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=True)
    assert "is not usable by you; type: sudo install" in run.stdout
    assert "cannot be read: Permission denied" in run.stdout


def test_a_device_name_is_never_a_path(tmp_path: Path) -> None:
    for name in ("../x", "", "a/b", "-x", "a.b", "x" * 65):
        with pytest.raises(UsageProblem, match="a device is named like"):
            Hold(tmp_path, name)


def test_what_a_ticket_says_is_only_a_claim(hold: Hold) -> None:
    held = hold.take("x", 0)
    assert held.fd is not None
    for text in (b"not json", b"[]", json.dumps({"pid": "x"}).encode()):
        os.ftruncate(held.fd, 0)
        os.pwrite(held.fd, text, 0)
        holder, _ = hold.status()
        assert holder == Claim(0, "unknown", "1970-01-01T00:00:00.000Z", "unreadable ticket")
    held.release()


def test_a_holder_whose_recorded_process_is_gone_is_looked_for(hold: Hold) -> None:
    held = hold.take("x", 0)
    assert held.fd is not None
    child = subprocess.Popen(["sleep", "60"], pass_fds=(held.fd,))
    claim = {"pid": 2**22 + 1, "reason": "x", "asked": 1.0, "granted": 2.0}
    os.pwrite(held.fd, json.dumps(claim).encode().ljust(4096), 0)
    held.release()
    holder, _ = hold.status()
    assert holder is not None
    assert holder.pid == child.pid
    child.kill()
    child.wait()
    assert hold.status() == (None, [])


def test_a_campaign_inside_the_hold_does_not_wait_for_its_own_parent(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = hold.take("outer", 0)
    monkeypatch.setenv(VARIABLE, f"accel0/{outer.number}")
    inner = hold.take("inner", 0)
    assert inner.inherited
    assert inner.fd is not None
    outer.release()
    assert hold.status()[0] is not None, "the inherited descriptor keeps the hold"
    inner.release()
    assert hold.status() == (None, [])


def test_a_stale_or_foreign_hold_variable_is_not_believed(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("accel0/999", "accel1/1", "nonsense", "accel0/x"):
        monkeypatch.setenv(VARIABLE, value)
        held = hold.take("x", 0)
        assert not held.inherited
        held.release()


def test_an_ancestor_that_kept_its_descriptor_to_itself_still_covers_us(hold: Hold) -> None:
    held = hold.take("outer", 0)
    code = (
        "import sys, pathlib; from npuprof.campaign.hold import Hold\n"
        "h = Hold(pathlib.Path(sys.argv[1]), 'accel0').take('inner', 0)\n"
        "print(h.inherited, h.fd)"
    )
    env = {**os.environ, **held.environment()}
    run = subprocess.run(
        [sys.executable, "-c", code, str(hold.directory)], env=env, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["True", "None"]
    held.release()


def test_default_device(tmp_path: Path) -> None:
    assert default_device(tmp_path) == "reference"
    for name in ("accel10", "accel2", "accelerator"):
        (tmp_path / name).touch()
    assert default_device(tmp_path) == "accel2"


def test_enforced_means_only_the_groups_members_can_open_the_node(tmp_path: Path) -> None:
    held, accel = tmp_path / "hold", tmp_path / "accel"
    held.mkdir()
    accel.mkdir()
    node = accel / "accel0"
    node.touch(mode=0o660)
    assert not is_enforced(held, "accel1", accel)
    if os.geteuid() == 0:
        os.chown(held, 0, 4242)
        os.chown(node, 0, 4242)
        assert is_enforced(held, "accel0", accel)
        node.chmod(0o666)
        assert not is_enforced(held, "accel0", accel)
