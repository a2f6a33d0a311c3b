"""Shell completion: `tidegate completion bash|zsh|fish` prints a script, which asks `tidegate complete` for what can follow.

`complete` answers with lines: candidates, each with a tab and its description, and last perhaps `:files SUFFIX` or `:dirs`, which the
shell completes itself. A candidate that ends with `=`, `:` or `/` is to be followed by more, not by a blank.
"""

from __future__ import annotations

import ast
import glob
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from tidegate import systems
from tidegate._core import TidegateError, default_limits
from tidegate.command_tree import Command, Parameter, tree
from tidegate.files import limited

SUFFIXES = {"PROG.p4": "p4", "TEST.stf": "stf", "FILE.py": "py", "topology.json": "json", "FILE.toml": "toml"}
"""Values that are files of one kind."""
FILES = ("FILE", "FILE.pcap", "URL|FILE")
FOLDERS = ("DIR", "DIR...")
MOST_SOURCE = 1 << 20
"""Bytes of a user's file that is looked at for experiments."""
SCENARIOS = "reference.scenarios"
"""The experiment that `compare` runs for schemes."""
SHELLS = ("bash", "zsh", "fish")
GROUPS = ("tidegate.systems", "tidegate.experiments", "tidegate.schemes")
"""Entry points of packages that bring experiments and schemes, as `experiments.packages` has them, which takes long to import."""
AGGREGATES = ("median", "mean", "min", "max", "p95", "p99")
OF_A_RUN = ("case", "seed")
MOST_RUN = 8 << 20
"""Bytes of an earlier run's `run.json` that is looked at for columns."""
MOST_VALUES = 20
"""Of a column; one with more is measured, and nobody chooses rows by it."""
CLUSTER_OPTIONS = {
    "local": ("n_workers", "memory_limit", "local_directory", "dashboard_address", "host", "interface"),
    "slurm": (
        "jobs", "queue", "account", "cores", "memory", "walltime", "interface", "shared_temp_directory",
        "local_directory", "log_directory", "job_extra_directives", "job_script_prologue", "worker_extra_args",
    ),
}  # fmt: skip
"""Settings that are used; to ask Dask for all takes a second."""
INSECURE = "insecure"
GRPC_LIMITS = (
    "message_bytes", "parsed_bytes", "waiting_bytes", "stream_bytes", "source_bytes", "compile_cpu_s",
    "compile_s", "compile_bytes", "compilations", "p4info_bytes", "calls", "calls_per_client",
    "calls_per_primary", "large_answers", "call_s", "request_s", "stalled_s", "streams", "streams_per_client",
    "roles", "role_name", "role_objects", "role_bytes", "messages_per_stream", "bytes_per_stream",
    "digests_per_list", "digests_sent", "updates", "updates_at_once", "cells", "requests", "entities",
    "answer_bytes", "looks", "connections", "connections_per_address", "connections_spare",
    "calls_per_connection", "idle_s", "keepalive_s", "ping_ms", "handshake_s", "header_bytes",
)  # fmt: skip
"""The fields of `p4runtime.Limits`, which takes half a second to import."""


class Shell(StrEnum):
    """Shells that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that reads it.", show_default=False)
    ],
) -> None:
    """Print a completion script, as: tidegate completion bash > /etc/bash_completion.d/tidegate."""
    from importlib.resources import files

    sys.stdout.write(files("tidegate.cli").joinpath(f"completion.{shell.value}").read_text())


def complete(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD", help="Words so far.")] = None,
) -> None:
    """Print what the last of these words can be: what the completion scripts ask."""
    for line in candidates(words or [""]):
        print(line)


def candidates(words: list[str]) -> list[str]:
    """What the last word can be, behind those before it (without the program's name)."""
    *before, last = words
    command, arguments, option = _place(tree(), before)
    if option is not None:
        return list(_values(option, last, arguments, before))
    if "--" in before:
        pass
    elif last.startswith("--") and "=" in last:
        name, _, value = last.partition("=")
        for one in command.options:
            if name in one.names and one.value is not None:
                found = _values(one, value, arguments, before)
                return [line if line.startswith(":") else f"{name}={line}" for line in found]
    elif last.startswith("-"):
        return list(_matching(last, _options(command)))
    if command.commands and not arguments:
        return list(_matching(last, ((one.path[-1], one.summary) for one in command.commands)))
    places = command.arguments
    if not places:
        return []
    at = places[min(len(arguments), len(places) - 1)]
    if len(arguments) >= len(places) and not at.multiple:
        return []
    return list(_values(at, last, arguments, before))


def _place(command: Command, words: list[str]) -> tuple[Command, list[str], Parameter | None]:
    """The command that these words are of, its arguments among them, and the option that is to have a value next."""
    arguments: list[str] = []
    option: Parameter | None = None
    plain = False
    for word in words:
        if option is not None:
            option = None
        elif word == "--" and not plain:
            plain = True
        elif word.startswith("-") and len(word) > 1 and not plain:
            known = (one for one in command.options if word in one.names and one.value is not None)
            option = next(known, None)
        else:
            below = [one for one in command.commands if one.path[-1] == word]
            if below and not arguments:
                command = below[0]
            else:
                arguments.append(word)
    return command, arguments, option


def _options(command: Command) -> Iterator[tuple[str, str]]:
    for one in command.options:
        for name in (*one.names, *one.negative):
            yield name, one.help
    yield "--help", "Show this message and exit."


def _matching(start: str, known: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, help_text in known:
        if name.startswith(start):
            about = " ".join(help_text.split())
            yield f"{name}\t{about}" if about else name


def _values(parameter: Parameter, start: str, arguments: list[str], words: list[str]) -> Iterator[str]:
    """What a parameter's value can be."""
    kind = parameter.value or ""
    if parameter.choices:
        yield from _matching(start, ((one, "") for one in parameter.choices))
    elif kind == "A B...":
        known = experiments()
        schemes = [(one, "A scheme") for one in known[SCENARIOS].parameters["schemes"]]
        yield from _matching(start, [*schemes, *_summaries(known), ("rev:", "A revision of git")])
        path = start.partition(":")[0]
        yield from _matching(start, ((f"{path}:{name}", "A scheme") for name in _schemes_of(path)))
        yield from _own(start)
    elif kind == "FILE.py:FUNCTION":
        yield from _own(start)
    elif kind in SUFFIXES:
        yield f":files {SUFFIXES[kind]}"
    elif kind == "IFACE" or (kind == "FILE|IFACE" and {"-i", "--interface"}.intersection(words)):
        yield from _matching(start, ((name, "") for name in _interfaces()))
    elif kind in FILES or kind.startswith("FILE"):
        yield ":files"
    elif kind in FOLDERS:
        yield ":dirs"
    elif kind == "SYSTEM.EXPERIMENT":
        yield from list(_matching(start, _summaries(experiments()))) or _own(start)
    elif kind == "NAME" and words[:1] == ["list"]:
        known = experiments()
        systems = dict.fromkeys(name.partition(".")[0] for name in known)
        both = [*((name, "") for name in systems), *_summaries(known)]
        yield from list(_matching(start, both)) or _own(start)
    elif {"--set", "--over", "--range"}.intersection(parameter.names):
        yield from _settings(start, _parameters(arguments, words))
    elif "--limit" in parameter.names:
        yield from _settings(start, {name: [] for name, _ in default_limits()})
    elif "--grpc-limit" in parameter.names:
        yield from _settings(start, {name: [] for name in GRPC_LIMITS})
    elif "--cluster-option" in parameter.names:
        yield from _settings(start, _cluster_options(_given("--cluster", words)))
    elif "--where" in parameter.names:
        rows = _rows(arguments, words)
        yield from _settings(start, {name: _texts(rows, name) for name in _columns(rows)})
    elif "--by" in parameter.names:
        rows = _rows(arguments, words)
        names = [name for name in _columns(rows) if _texts(rows, name)]
        yield from _matching(start, ((one, "") for one in names or _shown(arguments, words)))
    elif kind == "NAME[:AGGREGATE]" or "--quantity" in parameter.names:
        rows = _rows(arguments, words)
        names = [name for name in _columns(rows) if any(type(row.get(name)) in (int, float) for row in rows)]
        known_names = [name for name in names or _shown(arguments, words) if name not in OF_A_RUN]
        name, colon, _ = start.partition(":")
        if colon and kind != "NAME":
            yield from _matching(start, ((f"{name}:{one}", "") for one in AGGREGATES))
        else:
            yield from _matching(start, ((one, "") for one in known_names))
    elif kind == "PORT=FILE" and "=" in start:
        port, _, path = start.partition("=")
        yield from _matching(start, ((f"{port}={one}", "") for one in _paths(path)))
    elif kind == "PORT@INTERFACE" and "@" in start:
        port = start.partition("@")[0]
        yield from _matching(start, ((f"{port}@{name}", "") for name in _interfaces()))
    elif "|" in kind:
        # Of `local|tls://HOST:PORT`: `local` and `tls://`.
        words_in_it = re.findall(r"(?:^|\|)([a-z]+(?:://)?)", kind)
        yield from _matching(start, ((one, "") for one in words_in_it))


def _settings(start: str, parameters: dict[str, list[str]]) -> Iterator[str]:
    """`NAME=`, and behind it the values, where they are known."""
    name, equals, given = start.partition("=")
    if not equals:
        yield from _matching(start, ((f"{one}=", "") for one in parameters))
        return
    before, comma, _ = given.rpartition(",")
    rest = (value for value in parameters.get(name, []) if value not in before.split(","))
    yield from _matching(start, ((f"{name}={before}{comma}{value}", "") for value in rest))


def _given(option: str, words: list[str]) -> str:
    """The last value of an option among the words; empty: none."""
    pairs = [
        *pairwise(words),
        *(tuple(word.split("=", 1)) for word in words if word.startswith(f"{option}=")),
    ]
    return next((value for name, value in reversed(pairs) if name == option), "")


def _cluster_options(cluster: str) -> dict[str, list[str]]:
    if "://" in cluster:
        return {INSECURE: ["true"]}
    names = CLUSTER_OPTIONS.get(cluster) or dict.fromkeys(sum(CLUSTER_OPTIONS.values(), ()))
    return {name: [] for name in names}


def _experiment(arguments: list[str], words: list[str]) -> About | None:
    """The experiment that a command is given."""
    known = experiments()
    for name in [_given("--experiment", words), *arguments]:
        if name in known:
            return known[name]
        if name in known[SCENARIOS].parameters["schemes"]:
            return known[SCENARIOS]
        path, _, function = name.partition(":")
        if function in _schemes_of(path):
            return known[SCENARIOS]
        own = _of_file(path)
        if function in own or len(own) == 1:
            return own[function or next(iter(own))]
    return None


def _parameters(arguments: list[str], words: list[str]) -> dict[str, list[str]]:
    """The parameters of the experiment that a command is given, with the values that are known."""
    one = _experiment(arguments, words)
    return {} if one is None else one.parameters


def _shown(arguments: list[str], words: list[str]) -> list[str]:
    """The columns that a terminal shows of the experiment."""
    one = _experiment(arguments, words)
    return [] if one is None else one.columns


def _rows(arguments: list[str], words: list[str]) -> list[dict[str, Any]]:
    """The rows of a folder that is given, or of an earlier run of the experiment where such runs are put: what columns there are
    is known only from a run.
    """
    for folder in arguments:
        if rows := _of_folder(Path(folder).expanduser(), None):
            return rows
    one = _experiment(arguments, words)
    if one is None:
        return []
    runs = Path("runs")
    places = [
        Path(_given("--out", words) or "."),
        runs / one.name,
        runs / f"sweep-{one.name}",
        runs / "compare" / one.name,
    ]
    return next((rows for place in places if (rows := _of_folder(place, one.name))), [])


def _of_folder(folder: Path, experiment: str | None) -> list[dict[str, Any]]:
    with suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
        file = folder / "run.json"
        if file.is_file():
            record = json.loads(limited(file, MOST_RUN))
            if experiment in (None, record["experiment"]):
                return [row for row in record["rows"] if isinstance(row, dict)]
    return []


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _texts(rows: list[dict[str, Any]], name: str) -> list[str]:
    """The values of a column as they are printed, where they are few."""
    values = dict.fromkeys(str(row[name]) for row in rows if name in row)
    return list(values) if len(values) <= MOST_VALUES else []


def _summaries(known: Known) -> list[tuple[str, str]]:
    return [(name, one.summary) for name, one in known.items()]


def _own(start: str) -> Iterator[str]:
    """A file of the user's and its experiments."""
    path, colon, _ = start.partition(":")
    if path not in ("", ".", "./"):
        yield from _matching(start, ((f"{path}:{name}", about) for name, about in _summaries(_of_file(path))))
    if not colon:
        yield ":files py"


def _of_file(name: str) -> Known:
    """The experiments of a file, or of a system's folder, by their functions. It is read, not run: Tab is not to run code."""
    path = Path(name).expanduser()
    found: Known = {}
    for file in [path] if path.suffix == ".py" else sorted((path / "experiments").glob("*.py")):
        with suppress(OSError, ValueError, SyntaxError, RecursionError):
            if file.is_file():
                for one in ast.parse(limited(file, MOST_SOURCE)).body:
                    if isinstance(one, ast.FunctionDef) and _gives_plan(one):
                        name, columns = _registered(one) or (f"{file.stem}.{one.name}", [])
                        found[one.name] = About(
                            name,
                            (ast.get_docstring(one) or "").partition("\n")[0],
                            {each.arg: [] for each in one.args.args + one.args.kwonlyargs},
                            columns,
                        )
    return found


def _schemes_of(name: str) -> list[str]:
    """The schemes of a file, or of a system's folder. It is read, not run."""
    path = Path(name).expanduser()
    file = path if path.suffix == ".py" else path / "setup.py"
    with suppress(OSError, ValueError, SyntaxError, RecursionError):
        if file.is_file():
            calls = [
                (one.targets[0], one.value.func)
                for one in ast.parse(limited(file, MOST_SOURCE)).body
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
            ]
            return [
                target.id
                for target, called in calls
                if isinstance(target, ast.Name)
                and "Scheme" in (getattr(called, "id", ""), getattr(called, "attr", ""))
            ]
    return []


def _registered(function: ast.FunctionDef) -> tuple[str, list[str]] | None:
    """The name and the columns of `@experiment(NAME, table=COLUMNS)`, where they are written out."""
    for one in function.decorator_list:
        with suppress(AttributeError, IndexError, ValueError, TypeError):
            given = {word.arg: word.value for word in one.keywords}  # type: ignore[attr-defined]
            name = given.get("name") or one.args[0]  # type: ignore[attr-defined]
            columns = ast.literal_eval(given["table"]) if "table" in given else ()
            return str(ast.literal_eval(name)), [str(column) for column in columns]
    return None


def _gives_plan(function: ast.FunctionDef) -> bool:
    said = [function.returns, *(getattr(one, "func", one) for one in function.decorator_list)]
    names = [getattr(one, "attr", getattr(one, "id", getattr(one, "value", None))) for one in said]
    return "Plan" in names[:1] or "experiment" in names[1:]


def _paths(start: str) -> list[str]:
    """Files and folders whose paths begin so; a folder's ends with a slash."""
    found = sorted(glob.glob(f"{glob.escape(start)}*"))
    return [f"{one}/" if Path(one).is_dir() else one for one in found]


def _interfaces() -> list[str]:
    with suppress(OSError):
        return sorted(os.listdir("/sys/class/net"))
    return []


class About(NamedTuple):
    """What is known of an experiment."""

    name: str
    summary: str
    parameters: dict[str, list[str]]
    """With their values, where they are known."""
    columns: list[str]
    """That a terminal shows."""


Known = dict[str, About]


def experiments() -> Known:
    """All experiments. To import them takes a second or more, so that they are kept in a file of the user's cache."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate" / "completion.json"
    stamp = _stamp()
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(place.read_text())
        if kept["stamp"] == stamp:
            return {name: About(*one) for name, one in kept["experiments"].items()}
    from tidegate.experiments import all_experiments
    from tidegate.files import replacing

    found: Known = {
        name: About(
            name,
            one.summary,
            {name: [str(v) for v in about.get("known", ())] for name, about in one.about().items()},
            list(one.table),
        )
        for name, one in all_experiments().items()
    }
    # A cache that cannot be written costs time only.
    with suppress(OSError, TidegateError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as file:
            file.write(json.dumps({"stamp": stamp, "experiments": found}).encode())
    return found


def _stamp() -> str:
    """What changes when the experiments do: the newest of their files, where they are, and which packages bring some."""
    from importlib.metadata import entry_points

    folders = [Path(__file__).parents[1] / "systems", *(Path(name).absolute() for name in systems.ELSEWHERE)]
    files = [path for folder in folders for path in folder.glob("*/experiments/*.py")]
    brought = [one for group in GROUPS for one in entry_points(group=group)]
    for one in brought:
        files += _files(one.module)
    newest = max((path.stat().st_mtime_ns for path in files), default=0)
    names = [str(one) for one in (*folders, *brought)]
    return json.dumps([*names, len(files), newest])


def _files(module: str) -> list[Path]:
    """The files of the package that a module is in, which is not imported for it."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)] if spec.has_location and spec.origin else []
    return [path for folder in spec.submodule_search_locations for path in Path(folder).rglob("*.py")]
