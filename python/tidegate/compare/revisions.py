"""Runs of other revisions of this repository: `rev:HASH`, built in a worktree of its own.

A revision whose Rust sources are those that the extension here was built from takes a copy of it, in a second; `make setup` notes them
beside the extension, with its digest. Another one is built with cargo, which takes some ten minutes on two processors the first time.
Builds are kept, by their commit, in the user's cache: the `KEPT` that were used last,
and the folder that cargo builds in. `tidegate clean --revisions` removes them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from tidegate._core import TidegateError
from tidegate.experiments.folder import interrupted
from tidegate.experiments.user_code import PACKAGE
from tidegate.files import invoker, why
from tidegate.lab.death import die_with

PREFIX = "rev:"
REPOSITORY = PACKAGE.parents[1]
EXTENSION = "_core.abi3.so"
NOTE = "_core.sources"
"""Beside an extension: the Rust sources that it is of (tools/rust_sources.sh), and its digest (tools/build_extension.sh)."""
KEPT = 4
"""So many built revisions are kept."""
TARGET = "target"
"""Where cargo builds all of them; what they have in common is built once."""
TIDEGATE = (sys.executable, "-P", "-m", "tidegate")
"""With `PYTHONPATH`, that of a revision. Without `-P`, a package in the current folder would come first."""
BUILD, USE = "build", "use"
"""Locks: one build at a time; and nothing is removed while a revision runs."""


def _git(*words: str, check: bool = True) -> str:
    command = ["git", "-C", str(REPOSITORY), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise TidegateError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of(word: str) -> str:
    """The full hash of a revision."""
    name = word.removeprefix(PREFIX)
    if not name or name.startswith("-"):
        raise TidegateError(f"{word}: give a revision of git, as rev:HEAD~1")
    found = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
    if not found:
        raise TidegateError(f"{word}: this repository has no such revision")
    return found


def demand_possible(word: str) -> None:
    """Refuse a revision that cannot be run here, before anything is."""
    if shutil.which("git") is None:
        raise TidegateError(f"{word}: there is no git here; install it, or compare folders of runs")
    if not (REPOSITORY / ".git").exists():
        raise TidegateError(
            f"{word}: this Tidegate is not a clone of its repository ({REPOSITORY}), so it has no revisions; "
            "clone it, or compare folders of runs"
        )
    commit = commit_of(word)
    if not _is_built(commit) and not _same_rust(commit) and shutil.which("cargo") is None:
        raise TidegateError(
            f"{word}: the extension here is not known to be of its Rust sources, and there is no cargo to build them; "
            "install a Rust toolchain, or compare folders of runs"
        )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tidegate" / "revisions"


def _package(tree: Path) -> Path:
    return tree / "python" / "tidegate"


def _is_built(commit: str) -> bool:
    return _noted(_package(_cache() / commit)) == _sources(commit)


def _same_rust(commit: str) -> bool:
    """Whether the extension here was built from the revision's sources, whatever is in the work tree now."""
    return _noted(PACKAGE) == _sources(commit)


def _sources(commit: str) -> str:
    """The Rust sources of a revision; its own name where they are elsewhere in it."""
    done = subprocess.run(
        [str(REPOSITORY / "tools" / "rust_sources.sh"), commit], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or commit


def _noted(package: Path) -> str | None:
    """The Rust sources that a package's extension was built from; `None` where that is not noted of this extension."""
    try:
        sources, digest = (package / NOTE).read_text().split()
        return sources if _digest(package / EXTENSION) == digest else None
    except (OSError, ValueError):
        return None


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextmanager
def _locked(name: str, how: int) -> Iterator[bool]:
    """Whether the lock of this name in the cache could be had; it is held meanwhile."""
    _cache().mkdir(parents=True, exist_ok=True)
    with _own(_cache() / f"{name}.lock") as file:
        try:
            fcntl.flock(file, how)
        except BlockingIOError:
            yield False
            return
        yield True


def _own(path: Path) -> BinaryIO:
    """A file to lock, which is made if it is not there. Raises `TidegateError` for a symbolic link and for another user's file."""
    try:
        file = os.fdopen(os.open(path, os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "rb")
    except OSError as error:
        raise TidegateError(f"{path}: {why(error)}") from None
    owner = os.fstat(file.fileno()).st_uid
    if owner not in (0, os.geteuid(), invoker()):
        file.close()
        raise TidegateError(
            f"{path}: is of user {owner}; remove it, or give another folder as XDG_CACHE_HOME"
        )
    return file


def kept() -> list[Path]:
    """The trees of built revisions, the one that was used last first; and the folder of cargo's builds, at the end."""
    there = [path for path in _cache().glob("*") if path.is_dir()]
    return sorted(there, key=lambda path: (path.name != TARGET, path.stat().st_mtime), reverse=True)


def clear() -> list[Path]:
    """Remove all that was built for revisions; gives what was there. Raises `TidegateError` while a comparison is using it."""
    with _locked(USE, fcntl.LOCK_EX | fcntl.LOCK_NB) as free:
        if not free:
            raise TidegateError(f"{_cache()}: a comparison is using built revisions; end it first")
        return _remove(kept())


def _remove(trees: list[Path]) -> list[Path]:
    for tree in trees:
        shutil.rmtree(tree)
    if trees and (REPOSITORY / ".git").exists() and shutil.which("git") is not None:
        _git("worktree", "prune", check=False)
    return trees


def _build(word: str, tell: Callable[[str], None]) -> Path:
    """The folder of a revision that is ready to run."""
    commit = commit_of(word)
    tree = _cache() / commit
    with _locked(BUILD, fcntl.LOCK_EX):
        if not _is_built(commit):
            _make(word, commit, tree, tell)
    os.utime(tree)
    return tree


def _make(word: str, commit: str, tree: Path, tell: Callable[[str], None]) -> None:
    began = time.monotonic()
    shutil.rmtree(tree, ignore_errors=True)
    _git("worktree", "prune")
    _git("worktree", "add", "--detach", "--force", str(tree), commit)
    try:
        if _same_rust(commit):
            tell(f"{word}: Rust sources as here; the extension is copied")
            made = PACKAGE / EXTENSION
        else:
            tell(
                f"{word}: the extension here is not known to be of its Rust sources; builds one with cargo: some ten minutes "
                "the first time, on two processors"
            )
            made = _cargo(word, tree)
        package = _package(tree)
        shutil.copy2(made, package / EXTENSION)
        (package / NOTE).write_text(f"{_sources(commit)} {_digest(package / EXTENSION)}\n")
    except BaseException:
        _git("worktree", "remove", "--force", str(tree), check=False)
        raise
    tell(f"{word}: ready after {time.monotonic() - began:.0f} s, in {tree}")


def _cargo(word: str, tree: Path) -> Path:
    target = _cache() / TARGET
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "-p",
        "tidegate-python",
        "--features",
        "pyo3/extension-module",
    ]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable}
    # By another name it may be installed already; rustup would fetch it.
    toolchain = tree / "tools" / "toolchain.sh"
    if toolchain.exists():
        named = subprocess.run([str(toolchain)], capture_output=True, text=True, check=False).stdout.strip()
        if named:
            environment["RUSTUP_TOOLCHAIN"] = named
    done = _ended(command, environment, cwd=tree)
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise TidegateError(f"{word}: cargo could not build it:\n{last}")
    return target / "release" / "lib_core.so"


def _ended(
    command: list[str], environment: dict[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What a program has said that does not outlive this process."""
    return subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        preexec_fn=partial(die_with, os.getpid()),
    )


def _threads(word: str, threads: int, environment: dict[str, str], tell: Callable[[str], None]) -> list[str]:
    """The option for so many threads, if the revision has it."""
    said = _ended([*TIDEGATE, "run", "--help"], environment).stdout
    if "--threads" in said:
        return ["--threads", str(threads)]
    tell(f"{word}: has no --threads yet; it runs on one")
    return []


def run(
    word: str,
    experiment: str,
    settings: Sequence[str],
    seeds: Sequence[int],
    quick: bool,
    out: Path,
    tell: Callable[[str], None],
    threads: int = 1,
    resume: bool = False,
) -> Path:
    """Run an experiment with a revision; the folder of the run. One that knows no threads runs on one."""
    folder = (out / word.replace(":", "-").replace("/", "-")).resolve()
    command = [*TIDEGATE, "run", experiment, "--out", str(folder), "--json"]
    command += ["--seed", str(min(seeds)), "--repeat", str(len(seeds)), *(["--quick"] if quick else [])]
    if resume:
        with suppress(TidegateError):
            interrupted(folder)
            command += ["--resume"]
    for setting in settings:
        command += ["--set", setting]
    with _locked(USE, fcntl.LOCK_SH):
        environment = {**os.environ, "PYTHONPATH": str(_build(word, tell) / "python")}
        if threads > 1:
            command += _threads(word, threads, environment, tell)
        done = _ended(command, environment)
    if done.returncode != 0:
        raise TidegateError(f"{word}: {experiment} did not run: {done.stderr.strip()}")
    with _locked(USE, fcntl.LOCK_EX | fcntl.LOCK_NB) as free:
        if free:
            _remove([path for path in kept() if path.name != TARGET][KEPT:])
    return folder
