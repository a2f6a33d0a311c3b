"""The benchmarks of another commit and of this tree in turns: ratios with their spread.

    make bench-pairs REV=v0.3                      every benchmark of packets and of the simulator, five turns
    .venv/bin/python tools/bench_pairs.py REV [--rounds N] [--only packets|speed] [--json] [part...]

Both are built in one folder, which is removed at the end: a folder's name decides where functions lie in memory, and with that some
percent of their speed. This tree is what git knows of it, uncommitted changes included. Both binaries run in turns on the
same machine, so that what else it does meets both: a figure is the median of the ratios of turns, this / other, and the spread is the
least and the greatest. Below 1 is faster. `part...` is handed to the benchmark of packets (`router`, `tables`, ...). A figure that only
one of the two has is listed. Wants cargo and git; uses the standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKETS, SPEED = "packets", "speed"
# Package and benchmark, by the names of today and, in commits before, those of then.
NAMES = {PACKETS: [("dataplane", "packets")], SPEED: [("network", "speed"), ("sim", "network")]}
OTHER, THIS = "the other commit", "this tree"
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


def this_tree() -> str:
    """A commit of this tree as it is."""
    places = ["Cargo.toml", "Cargo.lock", "crates", "python", "examples"]
    if unknown := git("ls-files", "--others", "--exclude-standard", "--", *places):
        raise fail(f"git does not know {unknown.splitlines()[0]}: `git add` it")
    return git("stash", "create") or git("rev-parse", "HEAD")


@contextmanager
def folder_of(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit."""
    with tempfile.TemporaryDirectory(prefix="tidegate-pairs-") as folder:
        place = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            yield place
        finally:
            git("worktree", "remove", "--force", str(place))


def turn_to(tree: Path, commit: str) -> None:
    """The folder has the files of this commit."""
    git("-C", str(tree), "checkout", "--quiet", "--force", "--detach", commit)


def build(tree: Path, bench: str, into: Path) -> tuple[str, Path]:
    """Package of a benchmark, and its binary with another name."""
    package, name = next(
        (names for names in NAMES[bench] if (tree / "crates" / names[0]).is_dir()), NAMES[bench][0]
    )
    words = ["cargo", "bench", "--locked", "--no-run", "--package", package, "--bench", name]
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
        raise fail(f"{bench} does not build; see above")
    for line in done.stdout.splitlines():
        said = json.loads(line)
        if (
            said.get("reason") == "compiler-artifact"
            and said["target"]["name"] == name
            and said["executable"]
        ):
            return package, Path(shutil.copy2(said["executable"], into))
    raise fail(f"cargo built no benchmark {name}")


def figures_of(bench: str, text: str) -> Figures:
    """By name and unit, those that say how long something takes or how much is done."""
    rows = json.loads(text)
    rows = rows if isinstance(rows, list) else rows["rows"]
    named = {f"{row.get('what', row.get('name'))}, {row['unit']}": float(row["value"]) for row in rows}
    return {name: value for name, value in named.items() if value > 0}


def measured(tree: Path, bench: str, package: str, binary: Path, parts: list[str]) -> Figures:
    """One turn. A benchmark finds its programs in the folder that it was built in."""
    words = [str(binary), "--bench", "--json", *(parts if bench == PACKETS else [])]
    folder = tree / "crates" / package
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
    options.add_argument("--only", choices=list(NAMES), help="one of the benchmarks")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("parts", nargs="*", metavar="part", help="parts of the benchmark of packets")
    given = options.parse_args()
    if given.rounds < 1:
        options.error("--rounds is 1 or more")
    benches = [given.only] if given.only else [PACKETS] if given.parts else list(NAMES)
    answer: dict[str, list[dict[str, object]]] = {}
    commits = {OTHER: git("rev-parse", "--verify", f"{given.revision}^{{commit}}"), THIS: this_tree()}
    with folder_of(commits[OTHER]) as tree:
        built = {}
        for which, commit in commits.items():
            turn_to(tree, commit)
            for bench in benches:
                sys.stderr.write(f"building {bench} of {which}\n")
                built[bench, which] = build(tree, bench, tree.parent / f"{bench} of {which}")
        for bench in benches:
            turns = []
            for number in range(given.rounds):
                sys.stderr.write(f"{bench}: turn {number + 1} of {given.rounds}\n")
                taken = {}
                # Who comes first changes.
                for which in (OTHER, THIS) if number % 2 else (THIS, OTHER):
                    turn_to(tree, commits[which])
                    taken[which] = measured(tree, bench, *built[bench, which], given.parts)
                turns.append((taken[OTHER], taken[THIS]))
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
