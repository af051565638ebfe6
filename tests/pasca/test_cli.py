"""The command line, as users call it."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pasca.cli import main
from pasca.commands.options import LOAD_OPTIONS, parse_fields
from pasca.datasets.options import LoadOptions
from search_space.errors import ConfigError

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "botorch", "optuna", "numba", "pyarrow", "sklearn", "scipy", "numpy")
TINY_SPACE = (
    'k_pre = [0, 1]\npre_aggregator = ["augmented"]\nmessage = ["none", "mean"]\nk_trans = [1]\nk_post = [0, 1]\n'
)
TINY = ["--recipe", "max_epochs=4", "--recipe", "hidden_width=4", "--threads", "1", "--retrain", "2", "--repeats", "2"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, _own_cache: None) -> Path:
    """A working folder with a space file, and the run `tiny` on the embedded data set, whose times go to the cache."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "space.toml").write_text(TINY_SPACE)
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["search", "--run", "tiny", "--space", "space.toml", "-n", "5", "--quiet", *TINY]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PASCA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _in_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which something is refused."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("pasca: error: ")
    assert err.count("\n") == 1
    return err


def test_help_loads_nothing_heavy() -> None:
    code = f"import sys; from pasca.cli import main; main(['--help']); print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["search", "front", "export", "predict", "evaluate", "runs", "info", "convert"])
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str) -> None:
    out = ok(capsys, command, "--help")
    assert "--json" in out
    assert "--debug" in out


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 2
    assert "Commands:" in out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(r"pasca \d+\.\d+\.\d+\n", ok(capsys, "--version"))


def test_flags_for_reading_data_are_the_load_options() -> None:
    assert set(LOAD_OPTIONS) == {field.name for field in fields(LoadOptions)} - {"for_training"}


def test_search_shows_the_front_and_keeps_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("search", "--run", "shown", "--space", "space.toml", "-n", "3", "--retrain", "0", *TINY[:6])
    code, out, err = run(capsys, *arguments)
    assert code == 0
    assert "Pareto front" in out
    assert "kept in results/shown" in out
    assert "digits: 1,797 nodes" in err
    assert "3/3 evaluations" in err


def test_search_and_front_print_the_same_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ok(capsys, "front", "tiny", "--json"))
    again = json.loads(ok(capsys, "search", "--run", "tiny", "--resume", "--json", "--quiet"))
    assert found["front"] == again["front"]
    for row in (*found["front"], *found["classics"]):
        assert {"id", "design", "val_error", "inference_seconds", "test_accuracy"} <= set(row)
        assert 0 <= row["test_accuracy"]["mean"] <= 1
    assert len(found["classics"]) == 9
    assert found["test_readings"] == 1
    assert found["trials"]["complete"] == 5


def test_the_front_is_a_table_with_the_classics_below(capsys: pytest.CaptureFixture[str]) -> None:
    out = ok(capsys, "front", "tiny")
    assert re.search(r"^id +design +val err % +test acc % +time +params$", out, re.MULTILINE)
    assert out.index("Pareto front") < out.index("Classics") < out.index("PaSca-V3")
    assert "against the reference point" in out


def test_one_design_is_picked(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ok(capsys, "front", "tiny", "--json"))
    picked = json.loads(ok(capsys, "front", "tiny", "--pick", "knee", "--json"))
    assert picked["pick"]["id"] == found["knee"]
    best = json.loads(ok(capsys, "front", "tiny", "--pick", "best:inference_seconds", "--json"))
    assert best["pick"]["inference_seconds"] == min(row["inference_seconds"] for row in found["front"])


def test_a_rule_picks_one_design(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ok(capsys, "front", "tiny", "--json"))
    rule = "min inference_seconds where val_error<=best"
    picked = json.loads(ok(capsys, "front", "tiny", "--pick", rule, "--json"))
    assert picked["pick"]["val_error"] == min(row["val_error"] for row in found["front"])
    assert (
        ok(capsys, "front", "tiny", "--pick", rule, "--csv").splitlines()[1].startswith(f"pick,{picked['pick']['id']},")
    )


def test_runs_are_compared_whichever_way_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b", "c"):
        ok(capsys, "search", "--run", name, "--space", "space.toml", "-n", "1", "--retrain", "0", "-q", *TINY[:6])
    shown = ok(capsys, "front", "tiny", "--compare", "b", "c")
    assert [line.split()[0] for line in shown.splitlines()[2:5]] == ["tiny", "b", "c"]
    assert "pasca report tiny --compare b c" in shown
    assert ok(capsys, "front", "tiny", "--compare", "b", "--compare", "c") == shown
    assert ok(capsys, "front", "tiny", "--compare", "b,c").splitlines()[:-1] == shown.splitlines()[:-1]
    lines = ok(capsys, "front", "tiny", "--compare", "b", "c", "--csv").splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"tiny", "b", "c"}
    ok(capsys, "report", "tiny", "--compare", "b", "c", "--out", "compared.html")


def test_whoever_follows_a_run_is_told_at_once_where_the_page_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "report", "tiny", "--live", "--out", "live.html")
    assert code == 0
    page = Path("live.html").absolute()
    assert f"open {page.as_uri()}; it is written anew every 10 s" in err
    assert f"wrote {page}" in out


def test_a_bound_that_no_design_meets_is_said_and_its_export_refused(capsys: pytest.CaptureFixture[str]) -> None:
    out = ok(capsys, "front", "tiny", "--at-most", "inference_seconds=1ns")
    assert "no design meets the bound" in out
    message = refused(capsys, "export", "tiny", "--at-most", "inference_seconds=1ns", "--out", "impossible")
    assert "no design meets the bound" in message
    assert not Path("impossible").exists()


def test_runs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    out = ok(capsys, "runs")
    assert re.search(r"^tiny +digits +finished +5 +0 ", out, re.MULTILINE)
    assert "tiny" in {entry["run"] for entry in json.loads(ok(capsys, "runs", "--json"))["runs"]}


def test_a_run_that_cannot_be_read_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("results/broken")
    folder.mkdir()
    (folder / "manifest.json").write_text("{")
    try:
        out = ok(capsys, "runs")
    finally:
        (folder / "manifest.json").unlink()
        folder.rmdir()
    assert re.search(r"^broken .*unreadable: ", out, re.MULTILINE)
    assert "tiny" in out


def test_an_exported_design_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert "model" in ok(capsys, "export", "tiny", "--pick", "knee", "--out", "model", "--threads", "1")
    assert "1797 predictions are in" in ok(capsys, "predict", "model", "digits", "--out", "labels.csv")
    header, first = Path("labels.csv").read_text().splitlines()[:2]
    assert header.startswith("id,label,p_0")
    probabilities = list(map(float, first.split(",")[2:]))
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-5)
    Path("wanted.txt").write_text("5\n0\n")
    ok(capsys, "predict", "model", "digits", "--only", "wanted.txt", "--out", "some.csv")
    assert {line.split(",")[0] for line in Path("some.csv").read_text().splitlines()[1:]} == {"0", "5"}
    Path("wanted.txt").write_text("nobody\n")
    assert "nobody" in refused(capsys, "predict", "model", "digits", "--only", "wanted.txt")
    assert "exists already" in refused(capsys, "export", "tiny", "--out", "model")


@pytest.mark.parametrize(
    ("together", "networks", "said"), [(0.1, 2, "all were exported"), (0.2, 1, "the best was exp")]
)
def test_an_ensemble_leaves_where_it_beats_one_network(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, together: float, networks: int, said: str
) -> None:
    monkeypatch.setattr("pasca.export.ensemble_errors", lambda *arguments: (together, 0.2))
    out = f"ensemble-{networks}"
    arguments = ("export", "tiny", "--ensemble", "--threads", "1", "--out", out)
    shown = ok(capsys, *arguments)
    assert f"validation error of 2 networks together {together:.1%}".replace("%", " %") in shown
    assert said in shown
    written = json.loads(Path(out, "model.json").read_text())
    assert written["repeats"]["count"] == networks
    assert written["protocol"]["ensemble_val_error"] == together
    assert written["protocol"]["best_network_val_error"] == 0.2
    ok(capsys, "predict", out, "digits", "--out", "labels.csv")


def test_what_an_export_wrote_is_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(ok(capsys, "export", "tiny", "--out", "told", "--threads", "1", "--json"))
    assert (told["path"], told["networks"]) == ("told", 1)
    assert told["val_error"] == json.loads(Path("told/model.json").read_text())["repeats"]["val_error"]


def test_a_design_alone_is_exported_and_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    ok(capsys, "export", "tiny", "--architecture", "--out", "design.json")
    found = json.loads(ok(capsys, "evaluate", "design.json", "--seeds", "1", "--json", *TINY[:6]))
    assert found["design"] == json.loads(Path("design.json").read_text())["design"]


def test_a_design_without_preprocessing_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ok(capsys, "evaluate", "-/-/mlp-1/-", "--seeds", "1", "--json", *TINY[:6]))
    assert found["design"] == "-/-/mlp-1/-"


def test_a_classic_is_evaluated_and_tested_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ok(capsys, "evaluate", "SGC", "--seeds", "2", "--json", *TINY[:6]))
    assert found["design"] == "augmented^2/none/mlp-1/-"
    assert len(found["val_errors"]) == 2
    assert found["test_score"] is None
    assert found["test_scores"] is None
    tested = json.loads(ok(capsys, "evaluate", "SGC", "--seeds", "2", "--json", "--test", *TINY[:6]))
    assert tested["val_errors"] == found["val_errors"]
    assert len(tested["test_scores"]) == 2
    assert "test acc %" not in ok(capsys, "evaluate", "SGC", "--seeds", "1", *TINY[:6])


def test_ranks_are_planned_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes", "1000", "--edges", "5000", "--features", "50", "--multiply-adds", "1e9", "--ranks", "1,2"]
    said = ok(capsys, "plan", *sizes, "--memory", "800kB", "--bandwidth", "1GB")
    assert said.splitlines()[0] == "a graph with random edges: 1,000 nodes, 5,000 edges, 50 features"
    assert said.splitlines()[-1] == "with 800.0 kB a rank, 2 rank(s) in rows are enough"
    planned = json.loads(ok(capsys, "plan", *sizes, "--json"))["plans"]
    assert [(one["ranks"], one["plan"]) for one in planned] == [
        (1, "rows"),
        (1, "features"),
        (2, "rows"),
        (2, "features"),
    ]
    missing = "a plan needs a graph, or --nodes, --edges and --features, got nodes"
    assert missing in refused(capsys, "plan", "--nodes", "10")


def test_a_graph_is_prepared_for_several_numbers_of_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    said = ok(capsys, "prepare", "digits", "prepared", "--ranks", "2")
    assert "prepared for 2 rank(s), contiguous" in said
    found = json.loads(ok(capsys, "prepare", "prepared", "--ranks", "3", "--json"))
    assert (found["ranks"], found["partition"]) == (3, "contiguous")
    assert Path(found["path"]).resolve() == Path("prepared").resolve()
    assert "1797 nodes" in ok(capsys, "info", "prepared").replace(",", "")


def test_a_graph_is_described_and_converted(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(ok(capsys, "info", "digits", "--json"))["nodes"] == 1797
    ok(capsys, "convert", "digits", "graph")
    assert (
        json.loads(ok(capsys, "info", "graph", "--json"))["edges"]
        == json.loads(ok(capsys, "info", "digits", "--json"))["edges"]
    )
    assert "exists already" in refused(capsys, "convert", "digits", "graph")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("search nowhere", "nowhere: no such folder or file"),
        ("search --objectives accuracy,macs", "unknown objective 'accuracy'; choose from: val_error"),
        ("search --objectives val_error", "two or more objectives"),
        ("search --at-most speed=1", "unknown objective 'speed'"),
        ("search --at-most inference_seconds=5parsec", "unknown unit 'parsec'"),
        ("search --evaluations 0", "evaluations is a whole number of at least 1, got 0"),
        ("search --evaluations many", "Invalid value for '--evaluations'"),
        ("search --time-budget soon", "time_budget is a number of seconds"),
        ("search --memory lots", "memory is a number of bytes"),
        ("search --searcher grid", "unknown searcher 'grid'; choose from: ehvi, random"),
        ("search --recipe dropout", "--recipe takes FIELD=VALUE"),
        ("search --recipe droput=0.5 --run r", "unknown field 'droput' of a recipe; choose from: hidden_width"),
        ("search --metric f2 --run r", "unknown metric 'f2'; choose from: accuracy, macro-f1, roc-auc"),
        ("search --device gpu --run r", "device 'gpu'"),
        ("search --run ../x", "got '../x'"),
        ("search --run reference", "reserved"),
        ("search --run a --out b", "a name or a folder of its own"),
        ("search --run tiny", "results/tiny exists already; continue it with --resume"),
        ("search --run tiny --resume --seed 5", "another seed: 0 there, 5 asked for now"),
        ("search --run tiny --resume --train-per-class 3", "another data"),
        ("search --run tiny --resume --metric macro-f1", "another recipe metric"),
        ("search --run nothing --resume", "there is no run in results/nothing to resume"),
        ("search --config none.toml", "cannot read the configuration file 'none.toml'"),
        ("search --space wide", "unknown space 'wide'; choose from: paper, extended, or give a TOML file"),
        ("search --space none.toml", "cannot read the space file 'none.toml'"),
        ("search --stage-times nothing --run r", "no run 'nothing'"),
        ("search --storage nonsense --run r", "a storage is a database URL"),
        ("search --train-fraction 0.5 --run r", "train_fraction and val_fraction go together"),
        ("front nothing", "no run 'nothing'"),
        ("front tiny --at-most x", "a bound is OBJECTIVE=NUMBER"),
        ("front tiny --pick best:test_accuracy", "choose from: val_error, inference_seconds"),
        ("front tiny other", "one run is shown at a time, got other too"),
        ("front tiny --compare nothing", "no run 'nothing'"),
        ("front tiny --compare tiny --pick knee", "--pick 'knee' shows one design and --compare whole runs"),
        ("front tiny --csv --json", "--csv and --json are two forms of one answer"),
        ("report tiny other", "one run is shown at a time, got other too"),
        ("export tiny --pick 99", "has no finished trial 99"),
        ("export tiny --pick elbow", "unknown pick 'elbow'"),
        ("export tiny --architecture --ensemble", "--architecture writes no network and --ensemble several"),
        ("predict nothing digits", "nothing"),
        ("evaluate SGCC", "unknown design 'SGCC'; give a classic (MLP, SGC"),
        ("evaluate -/-/mlp-x/- digits", "got 'mlp-x' in '-/-/mlp-x/-'"),
        ("export tiny --pick -/-/mlp-x/-", "got 'mlp-x' in '-/-/mlp-x/-'"),
        ("evaluate SGC --seeds 0", "at least 1, got 0"),
        ("info nowhere", "no such folder or file"),
        ("nonsense", "No such command 'nonsense'"),
        ("search --nonsense", "No such option: --nonsense"),
        ("front", "Missing argument 'RUN'"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    before = sorted(os.listdir("results"))
    assert message in refused(capsys, *arguments.split())
    assert sorted(os.listdir("results")) == before, "nothing was written"


def test_reading_a_run_leaves_the_collector_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    ok(capsys, "front", "tiny")
    refused(capsys, "front", "nothing")
    assert gc.isenabled()


def test_a_traceback_comes_only_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "front", "nothing", "--debug")
    assert "Traceback" in err
    assert "RunError" in err


def test_a_fault_of_our_own_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pasca.results.Study.open", lambda run: 1 / 0)
    code, out, err = run(capsys, "front", "tiny")
    assert (code, out) == (1, "")
    assert err == "pasca: error: ZeroDivisionError: division by zero; this is a fault in pasca, --debug shows where\n"


def test_messages_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\\x1b[31m" in refused(capsys, "front", "\x1b[31mred")


def test_settings_come_from_a_file_and_flags_override_them(capsys: pytest.CaptureFixture[str]) -> None:
    space = "[space]\nk_pre = [0]\nk_post = [0]\nk_trans = [1, 2]\n"
    recipe = "[recipe]\nmax_epochs = 3\nhidden_width = 4\n"
    Path("run.toml").write_text(f"evaluations = 9\nretrain = 0\nrepeats = 1\n{recipe}{space}")
    ok(capsys, "search", "--config", "run.toml", "-n", "2", "--run", "filed", "--threads", "1", "-q")
    manifest = json.loads(Path("results/filed/manifest.json").read_text())
    assert manifest["config"]["evaluations"] == 2
    assert manifest["identity"]["recipe"]["max_epochs"] == 3
    assert manifest["identity"]["space"]["k_trans"] == [1, 2]


def test_a_run_goes_on_by_its_own_recipe_when_the_defaults_have_changed(capsys: pytest.CaptureFixture[str]) -> None:
    from engines.evaluation.recipe import Recipe

    settings = ("--space", "space.toml", "--threads", "1", "-q", "--retrain", "0", "--recipe", "max_epochs=2")
    ok(capsys, "search", "--run", "older", "-n", "1", *settings)
    path = Path("results/older/manifest.json")
    manifest = json.loads(path.read_text())
    assert manifest["identity"]["recipe"]["patience"] == Recipe().patience
    manifest["identity"]["recipe"]["patience"] = Recipe().patience + 1
    path.write_text(json.dumps(manifest))
    ok(capsys, "search", "--run", "older", "-n", "2", "--resume", "-q")
    assert "another recipe patience" in refused(
        capsys, "search", "--run", "older", "--resume", "--recipe", f"patience={Recipe().patience}"
    )


def test_an_unknown_setting_in_a_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.toml").write_text("evals = 9\n")
    assert "unknown setting 'evals' in the configuration file 'wrong.toml'" in refused(
        capsys, "search", "--config", "wrong.toml"
    )


def test_stage_times_are_measured_once_and_reused(capsys: pytest.CaptureFixture[str]) -> None:
    stored = list(Path(os.environ["PASCA_CACHE"]).glob("stage-times/*.json"))
    assert stored
    first = json.loads(Path("results/tiny/manifest.json").read_text())["stage_times"]
    for extra in ([], ["--stage-times", "tiny"]):
        name = f"again{len(extra)}"
        ok(
            capsys,
            "search",
            "--run",
            name,
            "--space",
            "space.toml",
            "-n",
            "1",
            "-q",
            *TINY[:6],
            "--retrain",
            "0",
            *extra,
        )
        times = json.loads(Path(f"results/{name}/manifest.json").read_text())["stage_times"]
        shared = set(first["seconds"]) & set(times["seconds"])
        assert shared
        assert {stage: times["seconds"][stage] for stage in shared} == {s: first["seconds"][s] for s in shared}, extra


def test_the_same_seed_and_stage_times_give_the_same_designs_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        ok(
            capsys, "search", "--run", name, "--space", "space.toml", "-n", "5", "-q", *TINY[:6], "--retrain", "0",
            "--num-initial", "3", "--stage-times", "tiny", "--seed", "4",
        )  # fmt: skip
    from pasca.results import Study

    one, two = (list(Study.open(name).history) for name in ("one", "two"))
    assert [(t.design, t.seeds, dict(t.values)) for t in one] == [(t.design, t.seeds, dict(t.values)) for t in two]


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_finishes_the_record_and_says_how_to_go_on(here: Path, number: int, code: int, word: str) -> None:
    Path("wide.toml").write_text('pre_aggregator = ["augmented"]\nmessage = ["mean"]\nk_pre = [0, 1]\nk_post = [0]\n')
    command = [sys.executable, "-m", "pasca", "search", "--run", word, "--space", "wide.toml", *TINY]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=here) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("trial 2 "):  # of 20
                break
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(30) == code
    assert said.splitlines()[-1] == (
        f"pasca: {word}; nothing finished is lost, go on with: pasca search --run {word} --resume"
    )
    from pasca.results import Study

    study = Study.open(word)
    assert study.status == "interrupted"
    assert study.history.running == []
    assert len(study.history.complete) >= 3


def test_a_closed_pipe_is_no_fault(here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m pasca front tiny --json | true"
    done = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True, env=environment, timeout=60)
    assert done.stderr == ""


def test_fields_are_numbers_where_they_look_like_one() -> None:
    assert parse_fields(["dropout=0.8", "max_epochs=50", "metric=roc-auc", "learning-rate=1e-3"], "--recipe") == {
        "dropout": 0.8,
        "max_epochs": 50,
        "metric": "roc-auc",
        "learning_rate": 1e-3,
    }


@pytest.mark.parametrize("texts", [["dropout"], ["=1"], ["a="], ["a=1", "a=2"]])
def test_fields_without_a_value_or_given_twice_are_refused(texts: list[str]) -> None:
    with pytest.raises(ConfigError, match="--recipe"):
        parse_fields(texts, "--recipe")
