"""`make bench-pairs`: the ratios of turns."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools/bench_pairs.py"
SPEC = importlib.util.spec_from_file_location("bench_pairs", TOOL)
assert SPEC is not None
assert SPEC.loader is not None
bench_pairs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench_pairs)


def test_figures_are_told_apart_by_their_unit() -> None:
    rows = [
        {"name": "router", "value": 50.0, "unit": "ns/packet"},
        {"name": "router", "value": 20.0, "unit": "Mpps", "goal": "at least 8"},
        {"name": "never", "value": 0.0, "unit": "ns"},
    ]
    assert bench_pairs.figures_of("packets", json.dumps(rows)) == {
        "router, ns/packet": 50.0,
        "router, Mpps": 20.0,
    }
    speed = [{"what": "dumbbell", "value": 75.5, "unit": "ns"}]
    assert bench_pairs.figures_of("speed", json.dumps(speed)) == {"dumbbell, ns": 75.5}


def test_a_ratio_is_the_median_of_those_of_turns() -> None:
    turns = [({"a": 10.0, "gone": 1.0}, {"a": other, "new": 1.0}) for other in (5.0, 20.0, 8.0)]
    (row,) = bench_pairs.compared(turns)
    assert row == {"figure": "a", "other": 10.0, "this": 8.0, "ratio": 0.8, "least": 0.5, "most": 2.0}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such-revision"], "bench-pairs: git rev-parse --verify no-such-revision^{commit}: "),
        (["HEAD", "--rounds", "0"], "--rounds is 1 or more"),
    ],
)
def test_bad_words_are_refused_before_anything_is_built(words: list[str], why: str) -> None:
    done = subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_both_are_built_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cargo is a script that says which commit's file it finds, as the benchmark that it `builds` does, with its folder."""
    root = tmp_path / "root"
    (root / "crates/dataplane").mkdir(parents=True)
    (root / "tools").mkdir()
    tool = root / "tools/bench_pairs.py"
    tool.write_bytes(TOOL.read_bytes())
    value = root / "crates/dataplane/value"

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b.example", *words], check=True
        )

    git("init", "--quiet")
    for number in ("50", "40"):
        value.write_text(number)
        git("add", "--all")
        git("commit", "--quiet", "--message", number)
    # Not committed.
    value.write_text("25")
    tools = tmp_path / "bin"
    tools.mkdir()
    cargo = tools / "cargo"
    cargo.write_text(
        f"""#!/bin/sh
echo "$PWD $(cat crates/dataplane/value)" >> {tmp_path}/built
cat > bench <<END
#!/bin/sh
echo '[{{"name":"router","unit":"ns","value":'\\$(cat value)'}},{{"name":"built","unit":"ns","value":$(cat crates/dataplane/value)}}]'
END
chmod 755 bench
echo '{{"reason":"compiler-artifact","target":{{"name":"packets"}},"executable":"'$PWD'/bench"}}'
"""
    )
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    done = subprocess.run(
        [sys.executable, tool, "HEAD^", "--rounds", "2", "--only", "packets", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)["benches"]["packets"]
    assert {(row["figure"], row["other"], row["this"], row["ratio"]) for row in rows} == {
        ("router, ns", 50.0, 25.0, 0.5),
        ("built, ns", 50.0, 25.0, 0.5),
    }
    places = {line.split()[0] for line in (tmp_path / "built").read_text().splitlines()}
    assert len(places) == 1
    assert not Path(places.pop()).exists()
    assert value.read_text() == "25"
    (root / "crates/new").write_text("")
    refused = subprocess.run([sys.executable, tool, "HEAD"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == "bench-pairs: git does not know crates/new: `git add` it\n"
