"""Every verb through the entry point: output, exit codes, and what a wrong flag says."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from records import ID, make_passes, make_record, usual_record, usual_walls
from verbs import Verb

from npuprof import __version__
from npuprof.cli import _VERBS, cli
from npuprof.model.record import Ending
from npuprof.store.runs import user_runs, write_record


@pytest.fixture
def saved() -> Path:
    user_runs().mkdir(parents=True)
    return write_record(usual_record(), user_runs())


def save_distrusted() -> None:
    ending = Ending(how="interrupted", rounds_planned=6, rounds_done=3)
    record = make_record(make_passes(usual_walls(3)), id="20261201T000000Z-ffffff", ending=ending)
    user_runs().mkdir(parents=True, exist_ok=True)
    write_record(record, user_runs())


def test_help_and_version(verb: Verb) -> None:
    code, out, _ = verb("--help")
    assert code == 0
    assert all(name in out for name in _VERBS)
    assert verb("--version") == (0, f"npuprof, version {__version__}\n", "")


def leaves(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        found: list[tuple[str, ...]] = [path] if path else []
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            found += leaves(child, (*path, name))
        return found
    return [path]


@pytest.mark.parametrize("path", leaves(cli, ()), ids=" ".join)
def test_the_help_of_every_verb_carries_an_example(verb: Verb, path: tuple[str, ...]) -> None:
    code, out, _ = verb(*path, "--help")
    assert code == 0
    assert "Example: " in out


def test_wrong_words(verb: Verb) -> None:
    for args, text in (
        (("fly",), "No such command 'fly'"),
        (("run", "--colour"), "No such option"),
        (("run", "--rows", "2,x"), "must be whole numbers with commas"),
        (("run", "--rows", "1"), "--rows: Input should be greater than or equal to 2"),
        (("run", "--rows", "2,2"), "--rows: names the same value twice"),
        (("run", "--target", "xyz"), "--target: must be reference, xrt, serve or MODULE:FACTORY"),
        (("run", "--repeats", "0"), "--repeats: "),
        (("run", "--out", "/no/such/folder/x"), "--out /no/such/folder/x: there is no folder"),
        (("run", "missing.yaml"), "missing.yaml: cannot be read: No such file"),
        (("args", "latest"), "exactly one of --rows and --k"),
        (("show", "latest"), "there is no record yet"),
        (("parse", "/no/such/file"), "cannot be read"),
        (("parse", "--profile", "zz", "x"), "no such line profile; there are bs, v12"),
        (("config", "show", "--config", "/no/such"), "cannot be read"),
    ):
        code, out, err = verb(*args)
        assert code == 2, args
        assert out == ""
        assert text in err
        assert err.startswith("npuprof: ")
        assert err.count("\n") == 1


def test_json_of_an_error_is_one_object(verb: Verb) -> None:
    code, out, err = verb("show", "latest", "--json")
    assert code == 2
    assert json.loads(out)["error"] in err


def test_request_files_name_file_line_and_key(verb: Verb, tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    for text, said in (
        ("target: reference\nrows: [1]\n", "r.yaml:2: rows.0: "),
        ("target: reference\nspeed: 3\n", "r.yaml:2: speed: unknown key"),
        ("rows: [2\n", "r.yaml:2: is not YAML"),
        ("- 1\n", "r.yaml:1: must be keys and values"),
        ("seed: 1\nseed: 2\n", "r.yaml:2: seed stands twice"),
    ):
        file.write_text(text)
        code, _, err = verb("run", str(file))
        assert code == 2
        assert said in err
    file.write_bytes(b"\xff")
    assert "is not UTF-8" in verb("run", str(file))[2]


def test_show_list_hist_check(verb: Verb, saved: Path) -> None:
    code, out, _ = verb("show", "latest")
    assert code == 0
    assert "pass M=5:  n=12 wall median" in out
    assert "finding: fake device" in out
    assert json.loads(verb("show", str(saved), "--json")[1])["id"] == ID
    code, out, _ = verb("list")
    assert code == 0
    assert out == f"{ID}  fake device  rows 5,16,17  trusted\n"
    assert json.loads(verb("list", "--json")[1])["runs"][0]["absolute"] == "trusted"
    code, out, _ = verb("hist", ID[:10])
    assert code == 0
    assert "rows=17  n=12  ms" in out
    assert len(json.loads(verb("hist", "latest", "--json")[1])["wall_ms"]["step"]) == 12
    assert verb("check", "latest") == (0, "trust   milliseconds trusted, ratios trusted\n", "")
    assert json.loads(verb("check", "latest", "--json")[1])["differs"] == []


def test_a_distrusted_record_is_printed_and_exits_with_4_where_it_is_judged(verb: Verb) -> None:
    save_distrusted()
    assert verb("check", "latest")[0] == 4
    code, out, err = verb("args", "latest", "--rows", "5")
    assert code == 4
    assert out.startswith("--pass-ms 10.3")
    assert "not trusted: the campaign was interrupted" in err
    assert verb("show", "latest")[0] == 0
    assert "ratios not_trusted" in verb("list")[1]


def test_an_altered_record_is_found_out(verb: Verb, saved: Path) -> None:
    data = json.loads(saved.read_text())
    data["summary"]["passes"]["5"]["median_ms"] = 9.9
    saved.write_text(json.dumps(data))
    code, out, _ = verb("check", "latest")
    assert code == 4
    assert "differs from its passes: summary.passes.5.median_ms (9.9 stated" in out


def test_list_goes_on_past_a_broken_record(verb: Verb, saved: Path) -> None:
    (saved.parent / "20270101T000000Z-aaaaaa.json").write_text("{\x1b")
    code, out, _ = verb("list")
    assert code == 0
    assert "is no record" in out
    assert "problem" in json.loads(verb("list", "--json")[1])["runs"][1]


def test_empty_stores(verb: Verb) -> None:
    assert verb("list") == (0, "no record yet; make one with: npuprof run\n", "")
    record = make_record([], id="20261201T000000Z-eeeeee")
    user_runs().mkdir(parents=True)
    write_record(record, user_runs())
    assert verb("hist", "latest") == (0, "no pass was measured\n", "")


def test_args(verb: Verb, saved: Path) -> None:
    assert saved.exists()
    assert verb("args", "latest", "--k", "4") == (0, "--pass-ms 10.30 --step-ms 10.01\n", "")
    code, out, err = verb("args", "latest", "--rows", "8")
    assert (code, out) == (0, "--pass-ms 10.50 --step-ms 10.01\n")
    assert "rows=8 was not measured: the pass of 16 rows stands for it, an upper bound" in err
    found = json.loads(verb("args", "latest", "--rows", "8", "--json")[1])
    assert (found["upper_bound_of"], found["rows"]) == (8, 16)
    code, out, err = verb("args", "latest", "--rows", "40")
    assert (code, out) == (2, "")
    assert "nothing larger was; measured rows: 5, 16, 17" in err


def test_args_of_a_prefill_say_that_it_understates_a_verify_pass(verb: Verb) -> None:
    from dataclasses import replace

    passes = [replace(p, kind="prefill", head_rows=1) if p.rows > 1 else p for p in make_passes(usual_walls())]
    user_runs().mkdir(parents=True)
    write_record(make_record(passes), user_runs())
    code, _, err = verb("args", "latest", "--k", "4")
    assert code == 0
    assert "it may understate one" in err


def test_parse(verb: Verb, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = verb("parse", str(data / "bs-constructed.txt"))
    assert code == 0
    assert out.endswith("4 passes, 0 unreadable; times in ms\n")
    assert "391.44" in out
    lines = verb("parse", str(data / "bs-published.txt"), "--json")[1].splitlines()
    assert json.loads(lines[0])["terms"]["quantise_launch_ms"] == 48.55
    assert json.loads(lines[1]) == {"passes": 1, "unreadable": [], "unreadable_total": 0}
    bad = tmp_path / "bad.log"
    bad.write_text("[1] batch=2 tok=2 9ms attn=1ms lm=2ms\n" + "[bs] M= x\n" * 1002)
    code, out, _ = verb("parse", str(bad))
    assert code == 4
    assert "line 2, column 9: M= is no whole number: 'x'" in out
    assert "and 2 more unreadable lines" in out
    assert "profile=v12" in out
    last = json.loads(verb("parse", str(bad), "--json")[1].splitlines()[-1])
    assert (last["passes"], len(last["unreadable"]), last["unreadable_total"]) == (1, 1000, 1002)
    assert verb("parse", "--profile", "bs", str(bad))[1].endswith("0 passes, 1002 unreadable; times in ms\n")
    assert verb("parse", "--profile", "v12", str(bad))[0] == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((data / "bs-published.txt").read_bytes())))
    assert verb("parse", "-")[0] == 0


def test_profiles_beside_the_configuration(verb: Verb, tmp_path: Path) -> None:
    folder = tmp_path / "xdg-config" / "npuprof" / "line-profiles.d"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: mine\npattern: 'rows (?P<rows>\\d+) took (?P<wall>\\d+)'\nunit: us\n")
    log = tmp_path / "log"
    log.write_text("rows 8 took 1500\n")
    assert json.loads(verb("parse", "--json", str(log))[1].splitlines()[0])["wall_ms"] == 1.5
    assert "mine" in verb("config", "check")[1]
    (folder / "mine.yaml").write_text("name: mine\n")
    code, _, err = verb("config", "check")
    assert code == 2
    assert "mine.yaml: pattern: is missing" in err
    (folder / "mine.yaml").unlink()
    (folder / "mine.yaml").mkdir()
    assert "cannot be read" in verb("parse", str(log))[2]


def samples(tmp_path: Path, rounds: int = 6) -> Path:
    file = tmp_path / "samples.jsonl"
    rows = []
    for p in make_passes({c: r for c, r in usual_walls(rounds).items() if c.rows in (1, 5, 17)}):
        rows.append(json.dumps({"condition": p.condition, "round": p.round, "seq": p.seq, "wall_ms": p.wall_ms}))
    file.write_text("\n".join(rows) + "\n\n")
    return file


def test_summarize(verb: Verb, tmp_path: Path) -> None:
    file = samples(tmp_path)
    code, out, _ = verb("summarize", str(file))
    assert code == 0
    assert "rows=17 / step 4.098" in out
    assert "6 blocks  changed (> 1 %)" in out
    data = json.loads(verb("summarize", str(file), "--json", "--to", "rows=5")[1])
    assert set(data) == {"conditions", "class", "drift", "ratios", "trust"}
    assert [r["to"] for r in data["ratios"]] == ["rows=5", "rows=5"]
    assert data["ratios"][1]["verdict"] == "changed"
    assert data["conditions"]["rows=5"]["interval"]["coverage"] == pytest.approx(0.961, abs=0.001)


def test_summarize_with_little(verb: Verb, tmp_path: Path) -> None:
    code, out, _ = verb("summarize", str(samples(tmp_path, 2)))
    assert code == 0
    assert "no interval under 3 blocks (2)  undecided" in out
    assert "min–max" in out
    file = tmp_path / "one.jsonl"
    file.write_text(
        '{"condition": "a\\u001b", "round": 1, "seq": 0, "wall_ms": 5}\n{"condition": "b", "round": 2, "seq": 1, "wall_ms": 5}'
    )
    code, out, _ = verb("summarize", str(file))
    assert code == 0
    assert "a\\x1b 5.000 ms  n=1" in out
    assert "no block of both  undecided" in out
    assert json.loads(verb("summarize", str(file), "--json")[1])["conditions"]["b"]["interval"] is None


def test_summarize_distrusts_a_step(verb: Verb, tmp_path: Path) -> None:
    file = tmp_path / "step.jsonl"
    rows = [
        {"condition": "a", "round": i, "seq": i, "wall_ms": (10 if i < 15 else 14) + i % 3 * 0.01} for i in range(30)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    code, out, _ = verb("summarize", str(file))
    assert code == 4
    assert "milliseconds NOT trusted, ratios trusted" in out


def test_summarize_takes_no_blocks_from_conditions_that_ran_one_after_the_other(verb: Verb, tmp_path: Path) -> None:
    file = tmp_path / "blob.jsonl"
    rows = [
        {"condition": c, "round": r, "seq": 8 * i + r, "wall_ms": 100 * 1.004 ** (8 * i + r)}
        for i, c in enumerate(("a", "b"))
        for r in range(8)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    code, out, _ = verb("summarize", str(file))
    assert code == 4
    assert "not_interleaved: rounds of b and a overlap by their seq" in out
    found = json.loads(verb("summarize", str(file), "--json")[1])
    assert (found["ratios"][0]["verdict"], found["ratios"][0]["blocks"]) == ("undecided", 0)


def test_odd_requests_and_configurations(verb: Verb, tmp_path: Path) -> None:
    for args, said in (
        (("--reason", "x\udcff"), "--reason: is not UTF-8 text"),
        (("--budget", "inf"), "--budget: "),
        (("--hold-timeout", "inf"), "--hold-timeout: "),
    ):
        code, _, err = verb("run", *args)
        assert code == 2
        assert said in err
    file = tmp_path / "c.yaml"
    for text, said in (
        ("campaign: {repeats: -3}\n", "c.yaml:1: campaign.repeats: "),
        ("hold: {directory: rel/path}\n", "c.yaml:1: hold.directory: must be an absolute path"),
        ("a: &x [1]\nb: *x\n", "has a YAML alias"),
    ):
        file.write_text(text)
        code, _, err = verb("config", "check", "--config", str(file))
        assert code == 2
        assert said in err
    code, out, err = verb()
    assert code == 2
    assert out.startswith("Usage: npuprof")
    assert err == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x", "samples.jsonl:2: is no JSON object"),
        ("[1]", "samples.jsonl:2: is no JSON object"),
        ('{"condition": 1}', "samples.jsonl:2: condition: is missing or of the wrong kind"),
        ('{"condition": "a", "round": true}', "samples.jsonl:2: round: "),
        ('{"condition": "a", "round": 1, "seq": 1, "wall_ms": NaN}', "wall_ms: must be above 0, not nan"),
        ('{"condition": "a", "round": 1, "seq": 1, "wall_ms": 0}', "wall_ms: must be above 0, not 0"),
    ],
)
def test_summarize_names_the_line_that_is_wrong(verb: Verb, tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text('{"condition": "a", "round": 1, "seq": 1, "wall_ms": 1}\n' + line)
    code, out, err = verb("summarize", str(file))
    assert (code, out) == (2, "")
    assert said in err


def test_summarize_other_refusals(verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"\n")
    assert "holds no sample" in verb("summarize", str(empty))[2]
    empty.write_bytes(b"\xff")
    assert "is not UTF-8" in verb("summarize", str(empty))[2]
    assert "cannot be read" in verb("summarize", str(tmp_path / "no"))[2]
    assert "--to x: no such condition" in verb("summarize", str(samples(tmp_path)), "--to", "x")[2]
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"condition": "a", "round": 1, "seq": 1, "wall_ms": 1}'))
    assert verb("summarize", "-")[0] == 0


def test_config(verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("campaign:\n  repeats: 9\n")
    code, out, _ = verb("config", "show", "--config", str(mine))
    assert code == 0
    assert f"campaign.repeats = 9  ({mine}:2)" in out
    assert f"hold.directory = {tmp_path / 'hold'}  (NPUPROF_HOLD_DIR)" in out
    shown = json.loads(verb("config", "show", "--json", "--config", str(mine))[1])
    assert shown["settings"]["campaign"]["repeats"] == 9
    assert verb("config", "check", "--config", str(mine))[0] == 0
    assert json.loads(verb("config", "check", "--json")[1])["line_profiles"] == ["v12"]
    paths = json.loads(verb("config", "path", "--json", "--config", str(mine))[1])["files"]
    assert [p["exists"] for p in paths] == [True, False, False, True]
    assert "(not there)" in verb("config", "path")[1]
    monkeypatch.setenv("NPUPROF_CONFIG", str(mine))
    assert "campaign.repeats = 9" in verb("config", "show")[1]
    for text, said in (
        ("campaign:\n  repeats: many\n", "mine.yaml:2: campaign.repeats: "),
        ("hold:\n  colour: red\n", "mine.yaml:2: hold.colour: unknown key"),
        ("hold: 3\n", "mine.yaml:1: hold: "),
    ):
        mine.write_text(text)
        assert said in verb("config", "check")[2]
    monkeypatch.setenv("NPUPROF_CONFIG", "")
    monkeypatch.setenv("NPUPROF_HOLD_DIR", "relative")
    assert "must be an absolute path" in verb("config", "show")[2]


def test_selftest(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = verb("selftest")
    assert code == 0
    assert out.count("ok ") == len(out.splitlines()) == 6
    from npuprof.stats import cliff

    monkeypatch.setattr(cliff, "find_cliff", lambda gaps: None)
    code, out, _ = verb("selftest", "--json")
    assert code == 5
    assert [c["ok"] for c in json.loads(out)["cases"]] == [True, False, True, True, True, True]
    assert "FAILED" in verb("selftest")[1]


def test_bugs_interrupts_and_closed_pipes(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuprof.commands import list_runs

    def fail(e: BaseException) -> Callable[[], list[Path]]:
        def stores() -> list[Path]:
            raise e

        return stores

    monkeypatch.setattr(list_runs, "stores", fail(ZeroDivisionError("a bug")))
    code, _, err = verb("list")
    assert code == 1
    assert err == "npuprof: internal error: ZeroDivisionError: a bug; --debug shows where\n"
    assert "Traceback" in verb("list", "--debug")[2]
    monkeypatch.setattr(list_runs, "stores", fail(KeyboardInterrupt()))
    assert verb("list")[0] == 130
    monkeypatch.setattr(list_runs, "stores", fail(click.ClickException("clicked")))
    assert verb("list")[0] == 2


def test_errors_of_a_file(verb: Verb, data: Path, tmp_path: Path) -> None:
    log = data / "kernel-log" / "39-page-fault-null-clock.log"
    code, out, _ = verb("errors", "--file", str(log))
    assert code == 0
    assert out.startswith(f"amdxdna error count 13 (benign 0)  from {log}\n")
    assert "2 incidents" in out
    found = json.loads(verb("errors", "--file", str(log), "--json")[1])
    assert found["by_class"] == {"fatal": 3, "taint": 10, "benign": 0, "info": 9}
    assert found["complete"] is True
    assert found["incidents"][1]["kind"] == "timeout"
    assert "cannot be read" in verb("errors", "--file", str(tmp_path / "no"))[2]
    many = tmp_path / "many"
    many.write_text("amdxdna 0000:c5:00.1: [drm] *ERROR* f: TDR timeout detected\n" * 202)
    assert "and 2 more" in verb("errors", "--file", str(many))[1]


def test_errors_now(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    from collectors.kernel import sources

    code, out, _ = verb("errors")
    assert code == 0
    assert "amdxdna error count" in out

    def none(root: Path) -> None:
        raise sources.Unreadable("neither journal nor ring")

    monkeypatch.setattr(sources, "open_source", none)
    assert verb("errors")[1] == "amdxdna error count not available: neither journal nor ring\n"
    found = json.loads(verb("errors", "--json")[1])
    assert (found["count"], found["complete"]) == (None, False)


def test_doctor(verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = verb("doctor")
    assert code == 0
    assert "driver: " in out
    assert "hold: " in out
    checks = json.loads(verb("doctor", "--json")[1])["checks"]
    assert all(c["status"] in ("ok", "warn", "missing", "not_applicable") for c in checks)
    assert all(c["next"] for c in checks if c["status"] == "missing")
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("NPUPROF_HOLD_DIR", str(file))
    hold = next(c for c in json.loads(verb("doctor", "--json")[1])["checks"] if c["name"] == "hold")
    assert hold["status"] == "missing"
    assert hold["next"].startswith("sudo install -d")


def test_kernel_rules_beside_the_configuration(verb: Verb, tmp_path: Path) -> None:
    folder = tmp_path / "xdg-config" / "npuprof" / "kernel-messages.d"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("- {class: benign, kind: mine, pattern: '^TDR timeout'}\n")
    log = tmp_path / "log"
    log.write_text("amdxdna 0000:c5:00.1: [drm] *ERROR* f: TDR timeout detected\n")
    assert json.loads(verb("errors", "--file", str(log), "--json")[1])["by_class"]["benign"] == 1
    (folder / "mine.yaml").write_text("- 1\n")
    assert "mine.yaml: rule 1: must have" in verb("config", "check")[2]
    (folder / "mine.yaml").unlink()
    (folder / "mine.yaml").mkdir()
    assert "cannot be read" in verb("errors", "--file", str(log))[2]
