"""The benchmarks of another commit and of this tree in turns: ratios with their spread.

    make bench-pairs REV=v0.3                      every benchmark of packets and of the simulator, five turns
    .venv/bin/python tools/bench_pairs.py REV [--rounds N] [--only packets|speed] [--json] [part...]

The other commit is built in a folder of its own, which is removed at the end. Both binaries run in turns on the same machine, so
that what else it does meets both: a figure is the median of the ratios of turns, this / other, and the spread is the least and the
greatest. Below 1 is faster. `part...` is handed to the benchmark of packets (`router`, `tables`, ...). A figure that only one of the
two has is listed. Wants cargo and git; uses the standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKETS, SPEED = "packets", "speed"
PACKAGES = {PACKETS: "dataplane", SPEED: "network"}
MORE_IS_BETTER = ("Mpps", "flows", "Gbit/s")

Figures = dict[str, float]


def fail(why: str) -> SystemExit:
    """The one message."""
    return SystemExit(f"bench-pairs: {why}")


def git(*words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise fail(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """A folder with the files of a commit."""
    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="tidegate-pairs-") as folder:
        place = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            yield place
        finally:
            git("worktree", "remove", "--force", str(place))


def build(tree: Path, bench: str) -> Path:
    """The binary of a benchmark."""
    words = ["cargo", "bench", "--locked", "--no-run", "--package", PACKAGES[bench], "--bench", bench]
    sys.stderr.write(f"building {bench} in {tree}\n")
    try:
        done = subprocess.run(
            [*words, "--message-format", "json-render-diagnostics"],
            cwd=tree,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise fail("there is no cargo; https://rustup.rs has it") from None
    if done.returncode:
        raise fail(f"{bench} does not build in {tree}; see above")
    for line in done.stdout.splitlines():
        said = json.loads(line)
        if (
            said.get("reason") == "compiler-artifact"
            and said["target"]["name"] == bench
            and said["executable"]
        ):
            return Path(said["executable"])
    raise fail(f"cargo built no benchmark {bench} in {tree}")


def figures_of(bench: str, text: str) -> Figures:
    """By name and unit, those that say how long something takes or how much is done."""
    rows = json.loads(text)
    rows = rows if isinstance(rows, list) else rows["rows"]
    named = {f"{row.get('what', row.get('name'))}, {row['unit']}": float(row["value"]) for row in rows}
    return {name: value for name, value in named.items() if value > 0}


def measured(tree: Path, bench: str, binary: Path, parts: list[str]) -> Figures:
    """One turn. A benchmark finds its programs from the folder of its package."""
    words = [str(binary), "--bench", "--json", *(parts if bench == PACKETS else [])]
    folder = tree / "crates" / PACKAGES[bench]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        raise fail(f"{' '.join(words)} has ended with status {done.returncode} and said nothing")
    return figures_of(bench, done.stdout)


def compared(turns: list[tuple[Figures, Figures]]) -> list[dict[str, object]]:
    """A row for each figure that both have in all turns."""
    rows: list[dict[str, object]] = []
    for name in turns[0][1]:
        pairs = [(other[name], this[name]) for other, this in turns if name in other and name in this]
        if len(pairs) < len(turns):
            continue
        ratios = [this / other for other, this in pairs]
        rows.append(
            {
                "figure": name,
                "other": statistics.median(other for other, _ in pairs),
                "this": statistics.median(this for _, this in pairs),
                "ratio": statistics.median(ratios),
                "least": min(ratios),
                "most": max(ratios),
            }
        )
    return rows


def main() -> None:
    """Build, run in turns, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("revision", metavar="REV", help="commit, tag or branch to compare with")
    options.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each")
    options.add_argument("--only", choices=list(PACKAGES), help="one of the benchmarks")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("parts", nargs="*", metavar="part", help="parts of the benchmark of packets")
    given = options.parse_args()
    if given.rounds < 1:
        options.error("--rounds is 1 or more")
    benches = [given.only] if given.only else [PACKETS] if given.parts else list(PACKAGES)
    answer: dict[str, list[dict[str, object]]] = {}
    with tree_of(given.revision) as other:
        binaries = {bench: (build(other, bench), build(ROOT, bench)) for bench in benches}
        for bench, (theirs, ours) in binaries.items():
            turns = []
            for number in range(given.rounds):
                sys.stderr.write(f"{bench}: turn {number + 1} of {given.rounds}\n")
                both = [(other, theirs), (ROOT, ours)]
                # Who comes first changes.
                taken = {
                    tree: measured(tree, bench, binary, given.parts)
                    for tree, binary in (both if number % 2 else both[::-1])
                }
                turns.append((taken[other], taken[ROOT]))
            answer[bench] = compared(turns)
            lone = sorted(set(turns[0][0]) ^ set(turns[0][1]))
            if lone:
                sys.stderr.write(f"{bench}: only one of the two has: {'; '.join(lone)}\n")
    if given.json:
        print(json.dumps({"revision": given.revision, "rounds": given.rounds, "benches": answer}))
        return
    for rows in answer.values():
        for row in rows:
            more = " (more is better)" if str(row["figure"]).rpartition(", ")[2] in MORE_IS_BETTER else ""
            print(
                f"{row['figure']:<64} {row['other']:>10.2f} {row['this']:>10.2f} "
                f"{row['ratio']:>6.3f} ({row['least']:.3f} to {row['most']:.3f}){more}"
            )


if __name__ == "__main__":
    os.environ.pop("CARGO_TARGET_DIR", None)
    main()
