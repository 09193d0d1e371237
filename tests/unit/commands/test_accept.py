"""`accept` and `audit` through the entry point: figures, refusals, exit codes. Servers are fakes that say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_llama import WORDS, FakeLlama, serving
from records import usual_record
from verbs import Verb

from npuprof.settings import built_in
from npuprof.store.runs import user_runs, write_record

ACCEPTANCE = Path(__file__).parents[2] / "data/acceptance"
FIXTURE = str(ACCEPTANCE / "recording.json")
LENGTH = 12


def continuation(ids: Sequence[int], n: int) -> list[int]:
    """What the fake target says: counts upwards through the words."""
    return [(ids[-1] + i) % (len(WORDS) - 1) + 1 for i in range(n)]


def every_third_wrong(ids: Sequence[int], n: int) -> list[int]:
    return [t if (len(ids) + i) % 3 else 1 for i, t in enumerate(continuation(ids, n))]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps([{"name": "one", "prompt": "a b c"}, {"name": "two", "prompt": "d e"}]))
    return file


@pytest.fixture
def recording(verb: Verb, prompts: Path, tmp_path: Path) -> Path:
    file = tmp_path / "rec.json"
    with serving(FakeLlama(continuation)) as target:
        code, _, err = verb(
            "accept",
            "record",
            "--url",
            target.url,
            "--prompts",
            str(prompts),
            "--tokens",
            str(LENGTH),
            "--out",
            str(file),
        )
    assert code == 0, err
    return file


def replayed(verb: Verb, recording: Path, fake: FakeLlama, *more: str) -> tuple[int, dict[str, Any], str]:
    with serving(fake) as drafter:
        code, out, err = verb(
            "accept", "replay", "--recording", str(recording), "--draft", drafter.url, "--json", *more
        )
    return code, json.loads(out), err


def test_a_recording_says_what_it_is_of(recording: Path) -> None:
    data = json.loads(recording.read_text())
    assert data["target"]["model"] == "fake"
    assert data["target"]["simulated"] is True
    assert data["target"]["sampling"]["temperature"] == 0
    assert data["target"]["ignore_eos"] is False
    assert data["target"]["vocabulary"]["below"] == len(WORDS)
    assert data["repeat"] == {"server": "same server", "equal": True, "differs": []}
    assert data["ticket"]["through"] == "npuprof"
    assert data["trust"]["absolute"] == "trusted"
    [one, two] = data["prompts"]
    assert one["prompt_ids"] == [1, 2, 3]
    assert len(two["ids"]) == LENGTH
    assert one["top2_margin_nats"] == [2.0] * LENGTH


def test_a_target_that_says_something_else_the_second_time(verb: Verb, prompts: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def moody(ids: Sequence[int], n: int) -> list[int]:
        seen.append(1)
        said = continuation(ids, n)
        return said if n == 1 or len(seen) < 4 else [*said[:5], 1, *said[6:]]

    file = tmp_path / "rec.json"
    with serving(FakeLlama(moody)) as target:
        code, out, _ = verb(
            "accept", "record", "--url", target.url, "--prompts", str(prompts), "--tokens", "12", "--out", str(file)
        )
    assert code == 4
    assert (
        "not_deterministic: recorded twice (same server), the text differs: one at token 5 (top-2 margin 2.000 nats)"
        in out
    )
    assert json.loads(file.read_text())["trust"]["ratios"] == "not_trusted"
    code, data, _ = replayed(verb, file, FakeLlama(continuation), "--k", "4")
    assert code == 4
    assert data["trust"]["reasons"][0]["code"] == "not_deterministic"


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        (FakeLlama(continuation, sampling={"temperature": 0.8}), "samples: temperature 0.8"),
        (FakeLlama(continuation, sampling={"repeat_penalty": 1.3}), "penalises: repeat_penalty 1.3"),
        (FakeLlama(continuation, words=[*WORDS[:5], *WORDS[6:], "x"]), "the vocabularies differ: sampled token ids"),
        (FakeLlama(continuation, words=WORDS[:9]), "the vocabularies differ"),
        (FakeLlama(continuation, context=16), "needs 19 tokens with its continuation and drafts, and a slot of"),
    ],
)
def test_drafters_that_would_give_meaningless_counts_are_refused(
    verb: Verb, recording: Path, fake: FakeLlama, said: str
) -> None:
    code, data, err = replayed(verb, recording, fake, "--k", "4")
    assert code == 2
    assert said in data["error"]
    assert said in err
    assert not fake.asked or len(fake.asked) == 1, "nothing but the sampling was asked for"


def test_a_tokenizer_that_merges_at_the_border_and_a_doubled_bos(
    verb: Verb, recording: Path, tmp_path: Path, prompts: Path
) -> None:
    data = json.loads(recording.read_text())
    data["prompts"][0]["prompt_ids"] = [1, 2]
    merged = tmp_path / "merged.json"
    merged.write_text(json.dumps(data))
    data["prompts"][0] |= {"prompt_ids": [0, 0, 1, 2, 3], "prompt": "<s> <s> a b c"}
    doubled = tmp_path / "doubled.json"
    doubled.write_text(json.dumps(data))
    code, out, _ = replayed(verb, doubled, FakeLlama(continuation), "--k", "4")
    assert code == 2
    assert "begins with the begin-of-text token 0 twice" in out["error"]
    data["prompts"][0] |= {"prompt_ids": [1, 2, 4], "prompt": "a b c"}
    merged.write_text(json.dumps(data))
    code, out, _ = replayed(verb, merged, FakeLlama(continuation), "--k", "4")
    assert code == 2
    assert "does not tokenise to a prefix of prompt + continuation" in out["error"]
    prompts.write_text(json.dumps([{"name": "one", "prompt": "<s> a b"}]))
    with serving(FakeLlama(continuation, adds_bos=True)) as target:
        code, _, err = verb(
            "accept", "record", "--url", target.url, "--prompts", str(prompts), "--tokens", "4", "--out", str(doubled)
        )
    assert code == 2
    assert "twice" in err


def test_no_prefix_is_asked_for_twice_and_prompts_run_side_by_side(verb: Verb, recording: Path, tmp_path: Path) -> None:
    import time

    def slow(ids: Sequence[int], n: int) -> list[int]:
        time.sleep(0.01)
        return every_third_wrong(ids, n)

    fake = FakeLlama(slow, slots=2)
    kept = tmp_path / "kept.json"
    code, data, err = replayed(verb, recording, fake, "--k", "1,2,4", "--keep", str(kept))
    assert code == 0
    prefixes = [a for a in fake.asked if a != (0,)]
    assert len(prefixes) == len(set(prefixes))
    assert fake.most_at_once == 2
    assert data["about"]["side_by_side"] == 2
    assert err == "", "no progress beside --json"
    # 2 + k ms for k tokens: the first token is paid in the prompt's time.
    assert data["k"]["4"]["draft_ms_per_token"] == 1.5
    held = json.loads(kept.read_text())["prompts"][0]
    assert None in held["proposals"]["fake"] or len(held["proposals"]["fake"]) == LENGTH
    code, out, err = verb(
        "accept", "replay", "--recording", str(recording), "--draft-recorded", str(kept), "--k", "1,2,4", "--json"
    )
    again = json.loads(out)
    for k in ("1", "2", "4"):
        same = ("tokens", "rounds", "accepted", "offered", "histogram")
        assert [again["k"][k][x] for x in same] == [data["k"][k][x] for x in same]
    code, _, err = verb("accept", "replay", "--recording", str(recording), "--draft-recorded", str(kept), "--k", "6")
    assert code == 2
    assert "was kept with k=1,2,4" in err or "the file was kept with" in err


def test_repeats_give_the_range_and_what_moved(verb: Verb, recording: Path) -> None:
    calls: list[int] = []

    def moody(ids: Sequence[int], n: int) -> list[int]:
        if ids[:2] == [1, 2] and len(ids) == 3:
            calls.append(1)
        return every_third_wrong(ids, n) if len(calls) < 2 else [1] * n

    code, data, _ = replayed(verb, recording, FakeLlama(moody), "--k", "4", "--repeat", "2")
    assert code == 0
    found = data["repeats"]["k"]["4"]
    assert found["moved"] == ["one", "two"]
    assert found["tokens_per_round"]["low"] == 1.0
    assert found["rounds"][1] == 2 * LENGTH


def test_a_lost_cache_costs_the_trust_in_the_drafts_time_only(verb: Verb, recording: Path) -> None:
    code, data, _ = replayed(verb, recording, FakeLlama(every_third_wrong, prompt_n=30), "--k", "2")
    assert code == 4
    assert (data["trust"]["absolute"], data["trust"]["ratios"]) == ("not_trusted", "trusted")
    assert "had lost its cache" in data["trust"]["reasons"][0]["text"]


@pytest.mark.parametrize(
    ("says", "broken"),
    [
        (lambda ids, n: [7] * n, "proposes token 7 first behind every prefix"),
        (lambda ids, n: continuation([*ids, ids[-1] + 1], n), "positions seem off by one"),
        (every_third_wrong, None),
    ],
)
def test_control_arms_tell_a_broken_input_from_a_weak_drafter(
    verb: Verb, recording: Path, says: Callable[..., list[int]], broken: str | None
) -> None:
    code, data, _ = replayed(verb, recording, FakeLlama(says), "--k", "2", "--controls")
    arms = data["controls"]["arms"]
    assert {
        "scrambled",
        "scrambled, last token kept",
        "one token of context",
        "prefix one short",
        "prefix one ahead",
    } < set(arms)
    assert "last 8 tokens" in arms
    assert "n-gram look-up, no model" in arms
    texts = [r["text"] for r in (data["trust"] or {}).get("reasons", [])]
    if broken is None:
        # This drafter reads the last token only, and that is just what its arms must say.
        assert any("does not move with the context" in t for t in texts)
    else:
        assert any(broken in t for t in texts)
    assert code == 4


def test_servers_without_native_routes_and_without_ids(verb: Verb, prompts: Path, tmp_path: Path) -> None:
    file = tmp_path / "rec.json"
    args = ("accept", "record", "--prompts", str(prompts), "--tokens", "6", "--out", str(file), "--url")
    with serving(FakeLlama(continuation, native=False, ids=False)) as target:
        code, out, err = verb(*args, target.url)
        assert code == 0, err
        assert json.loads(file.read_text())["prompts"][0]["ids_from"] == "the whole text, tokenised again"
        assert "does not echo its sampling" in out
    with serving(FakeLlama(continuation, native=False)) as drafter:
        code, out, _ = verb("accept", "replay", "--recording", str(file), "--draft", drafter.url, "--k", "4")
        assert code == 0
        assert "tokens=12 rounds=4 tokens/round=3 accepted/offered=10/16=0.625" in out
    with serving(FakeLlama(continuation, native=False, ids=False, tokenizes=False)) as target:
        code, _, err = verb(*args, target.url)
        assert code == 3
        assert "gives no token ids" in err
    code, _, err = verb(*args, "http://127.0.0.1:9")
    assert code == 3
    assert "does not answer" in err


def test_live_records_and_replays(verb: Verb, prompts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    with serving(FakeLlama(continuation)) as target, serving(FakeLlama(every_third_wrong)) as drafter:
        code, out, _ = verb(
            "accept", "live", "--url", target.url, "--draft", drafter.url, "--prompts", str(prompts), "--tokens", "12",
            "--k", "2", "--rule", "llama-server", "--keep", str(kept),
        )  # fmt: skip
    assert code == 0
    assert "rule llama-server" in out
    assert json.loads(kept.read_text())["drafters"]["fake"]["k"] == [2]


def test_loop_measures_and_compares_texts(verb: Verb, prompts: Path, tmp_path: Path) -> None:
    file = tmp_path / "loop.json"
    args = ("--prompts", str(prompts), "--tokens", "6", "--repeats", "3")
    with (
        serving(FakeLlama(continuation)) as a,
        serving(FakeLlama(continuation)) as b,
        serving(FakeLlama(every_third_wrong)) as c,
    ):
        code, out, _ = verb("accept", "loop", "--plain", a.url, "--spec", b.url, *args, "--out", str(file))
        assert code == 0
        assert "measured loop: plain" in out
        assert "(95.0 %, 3 rounds)" in out
        assert "texts   equal" in out
        code, out, _ = verb("accept", "loop", "--plain", a.url, "--spec", c.url, *args)
        assert code == 4
        assert "texts   DIFFER for one, two" in out
    data = json.loads(file.read_text())
    assert len(data["samples"]) == 3 * 2 * 2 * 2
    assert data["measured_loop"] is True


def replay_file(verb: Verb, tmp_path: Path, drafter: str = "L29", ks: str = "4,7") -> Path:
    code, out, _ = verb(
        "accept",
        "replay",
        "--recording",
        FIXTURE,
        "--draft-recorded",
        FIXTURE,
        "--drafter",
        drafter,
        "--k",
        ks,
        "--json",
    )
    assert code == 0
    file = tmp_path / f"{drafter}.json"
    file.write_text(out)
    return file


def test_the_recording_out_of_its_file(verb: Verb) -> None:
    code, out, _ = verb(
        "accept", "replay", "--recording", FIXTURE, "--draft-recorded", FIXTURE, "--drafter", "L24", "--k", "4"
    )
    assert code == 0
    assert "k=4: tokens=160 rounds=96 tokens/round=1.667 accepted/offered=66/384=0.172 draft_ms/token=" in out
    assert (
        "prose: 40 tok / 22 rounds = 1.818   code: 25 rounds = 1.6   list: 22 rounds = 1.818   qa: 27 rounds = 1.481"
        in out
    )
    assert "160 tokens = 96 rounds + 66 accepted - 2 rounds that ended without a token of the target's own" in out
    assert "trust   not stated by the recording" in out


def verdict(verb: Verb, *args: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = verb("accept", "verdict", *args, "--json")
    found: dict[str, Any] = json.loads(out)
    return code, found


def test_verdicts(verb: Verb, tmp_path: Path) -> None:
    good, weak = replay_file(verb, tmp_path), replay_file(verb, tmp_path, "L24")
    npu = ("--pass-ms", "1049.1", "--step-ms", "1021.2", "--k", "4")
    cpu = ("--pass-ms", "14.97", "--step-ms", "5.73", "--k", "4")
    code, found = verdict(verb, "--replay", str(good), *npu, "--assert", "pays")
    assert (code, found["verdict"], found["k"]) == (0, "pays", 4)
    assert found["tokens_per_round"] == {"value": 160 / 42, "low": 40 / 14, "high": 40 / 9}
    assert found["derived"] is True
    code, found = verdict(verb, "--replay", str(good), *cpu, "--assert", "pays")
    assert (code, found["verdict"]) == (5, "cannot_win")
    code, found = verdict(
        verb, "--replay", str(weak), "--pass-ms", "2000", "--step-ms", "1000.0", "--k", "4", "--assert", "pays"
    )
    assert (code, found["verdict"]) == (5, "does_not_pay")
    code, found = verdict(verb, "--replay", str(weak), "--pass-ms", "1550.0", "--step-ms", "1000.0", "--k", "4")
    assert (code, found["verdict"]) == (0, "undecided")
    assert "the projection reaches from" in found["reasons"][0]
    code, found = verdict(verb, *npu, "--draft-ms", "5.76")
    assert (code, found["verdict"], round(found["one_pass"]["round_ms"], 1)) == (0, "undecided", 1072.1)
    assert verdict(verb, *cpu)[1]["verdict"] == "undecided"
    assert verdict(verb, *cpu, "--block-ms", "20.2")[1]["verdict"] == "cannot_win"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--pass-ms", "1049.1", "--k", "4"), "--step-ms is missing: --pass-ms alone says nothing"),
        (("--step-ms", "1049.1", "--k", "4"), "--pass-ms is missing: --step-ms alone says nothing"),
        (("--k", "4"), "--timing RUN, or --pass-ms X and --step-ms Y, is needed"),
        (("--pass-ms", "2", "--step-ms", "1"), "without --replay, --k is needed"),
        (("--pass-ms", "2", "--step-ms", "1", "--replay", "REPLAY"), "--k is needed: --pass-ms is of one k"),
        (
            ("--pass-ms", "2", "--step-ms", "1", "--replay", "REPLAY", "--k", "5"),
            "--k 5: the replay has none; it has 4, 7",
        ),
        (("--timing", "latest", "--pass-ms", "2", "--k", "4"), "one of --timing RUN and the pair"),
        (("--pass-ms", "0", "--step-ms", "1", "--k", "4"), "must be milliseconds above 0"),
        (("--pass-ms", "nan", "--step-ms", "1", "--k", "4"), "must be milliseconds above 0"),
        (("--pass-ms", "1e308", "--step-ms", "1e-308", "--k", "4"), "must be milliseconds above 0"),
        (("--pass-ms", "2", "--step-ms", "1", "--k", "4", "--supersedes", "x"), "--supersedes needs --out FILE"),
        (("--pass-ms", "2", "--step-ms", "1", "--k", "4", "--replay", "nothing.json"), "nothing.json: cannot be read"),
        (("--pass-ms", "2", "--step-ms", "1", "--k", "4", "--replay", FIXTURE), "is no replay"),
        (("--pass-ms", "2", "--step-ms", "1", "--draft-ms", "1", "--block-ms", "1", "--k", "4"), "one of --draft-ms"),
    ],
)
def test_half_specified_verdicts(verb: Verb, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    given = [str(replay_file(verb, tmp_path)) if a == "REPLAY" else a for a in args]
    code, out, err = verb("accept", "verdict", *given)
    assert code == 2, out
    assert said in err


def test_a_record_gives_times_with_their_intervals(verb: Verb, tmp_path: Path) -> None:
    user_runs().mkdir(parents=True)
    write_record(usual_record(), user_runs())
    code, found = verdict(verb, "--replay", str(replay_file(verb, tmp_path, ks="4")), "--timing", "latest")
    assert code == 0, found
    bar = found["one_pass"]["bar"]
    assert bar["low"] < bar["value"] < bar["high"]
    over = found["pass_over_step_interval"]
    assert over["low"] < over["value"] == found["pass_over_step"] < over["high"]
    assert any("covers 96.9 % (6 blocks)" in n for n in found["notes"])


def test_a_criterion_is_held_against(verb: Verb, tmp_path: Path) -> None:
    replay = replay_file(verb, tmp_path)
    npu = ("--replay", str(replay), "--pass-ms", "1049.1", "--step-ms", "1021.2")
    criterion = tmp_path / "criterion.yaml"
    criterion.write_text("k: 4\npays_above: 4.0\nfails_below: 1.0\n")
    code, found = verdict(verb, *npu, "--criterion", str(criterion))
    assert (found["k"], found["verdict"]) == (4, "undecided")
    assert found["criterion"]["pays_above"] == 4.0
    criterion.write_text("k: 4\ncontrol_margin: 0.1\n")
    code, found = verdict(verb, *npu, "--criterion", str(criterion))
    assert found["verdict"] == "undecided"
    assert "has no control arms" in found["reasons"][0]
    criterion.write_text("k: 4\npays_over: 1\n")
    code, _, err = verb("accept", "verdict", *npu, "--criterion", str(criterion))
    assert code == 2
    assert "criterion.yaml, line 2" in err or "criterion.yaml:2" in err


def test_a_verdict_supersedes_an_older_one(verb: Verb, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    args = ("--pass-ms", "1049.1", "--step-ms", "1021.2", "--k", "4", "--draft-ms", "5.76")
    verdict(verb, *args, "--out", str(old))
    verdict(verb, *args, "--out", str(new), "--supersedes", str(old))
    assert json.loads(new.read_text())["supersedes"] == str(old)
    assert json.loads(old.read_text())["superseded_by"] == str(new)


def test_audit_by_file(verb: Verb, tmp_path: Path) -> None:
    text = tmp_path / "pr.txt"
    text.write_text(yaml.safe_load((built_in() / "published.yaml").read_text())["text"])
    code, out, _ = verb("audit", str(text))
    assert (code, out) == (0, "47 figures: 47 ok, 0 within rounding, 0 differ, 0 underivable\n")
    text.write_text(text.read_text().replace("bar 1.05,", "bar 1.06,"))
    code, out, _ = verb("audit", str(text), "--json")
    assert code == 5
    assert json.loads(out)["differs"] == 1
    for drafter in ("L29", "L24"):
        assert verb("audit", str(replay_file(verb, tmp_path, drafter)))[0] == 0
    damaged = json.loads(replay_file(verb, tmp_path).read_text())
    damaged["k"]["4"]["by_prompt"]["prose"]["accepted"] += 1
    text.write_text(json.dumps(damaged))
    code, out, _ = verb("audit", str(text))
    assert code == 5
    assert "k=4 prose tokens" in out
    verdict(verb, "--pass-ms", "1049.1", "--step-ms", "1021.2", "--k", "4", "--out", str(text))
    assert verb("audit", str(text))[0] == 0
    user_runs().mkdir(parents=True)
    record = write_record(usual_record(), user_runs())
    assert verb("audit", str(record))[0] == 0
    data = json.loads(record.read_text())
    data["summary"]["step"]["median_ms"] += 0.5
    record.write_text(json.dumps(data))
    code, out, _ = verb("audit", str(record))
    assert code == 5
    assert "summary.step.median_ms" in out
    for nothing in ("no figures here\n", "{}", '{"schema": "npuprof.record/1"}', '{"rule": "reference", "k": 4}'):
        text.write_text(nothing)
        assert verb("audit", str(text))[0] == 2
