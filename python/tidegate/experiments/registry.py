"""Registry of experiments, and their parameters."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tidegate import backends, systems, units
from tidegate._core import TidegateError
from tidegate.experiments import input_file, roots, user_code
from tidegate.experiments.input_file import File, InputFile
from tidegate.experiments.own import Own
from tidegate.experiments.plan import MOST, AtLeast, Case, MayRepeat, OneOf, Plan
from tidegate.suggest import did_you_mean, nearest


@dataclass(frozen=True)
class Experiment:
    """An experiment by name."""

    name: str
    summary: str
    plan: Callable[..., Plan]
    table: tuple[str, ...] = ()
    """Columns that a terminal shows; empty: all."""
    backends: tuple[str, ...] = ("sim",)
    """Backends on which it runs."""
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Other defaults for `--quick`."""
    live: Mapping[str, Any] = field(default_factory=dict)
    """Other defaults between real hosts."""
    live_quick: Mapping[str, Any] = field(default_factory=dict)
    """Other defaults for `--quick` between real hosts."""
    also: str | None = None
    """An alternative name."""
    source: str | None = None
    """File and function of an experiment that is in no registry: `/home/me/my.py:rates`."""

    @property
    def shown_name(self) -> str:
        """What the command line takes for it."""
        if self.source is None:
            return self.name
        file, _, function = self.source.rpartition(":")
        shown = user_code.shown(file)
        return f"{shown if shown.startswith('/') else f'./{shown}'}:{function}"

    def planned(self, parameters: Mapping[str, Any]) -> Plan:
        """Its plan; errors of users' code say where they are."""
        with user_code.blamed():
            plan = self.plan(**parameters)
        wrong = None
        if not isinstance(plan, Plan):
            what = "nothing" if plan is None else f"a {type(plan).__name__}"
            wrong = f"{what}; return a tidegate.experiments.Plan"
        elif not isinstance(plan.cases, list) or not all(isinstance(case, Case) for case in plan.cases):
            wrong = f"a plan with the cases {plan.cases!r:.60}; give a list of Case"
        if wrong is not None:
            raise TidegateError(f"{user_code.defined(self.plan)} returns {wrong}")
        return plan

    def parameters(self, quick: bool = False, backend: str = "sim") -> dict[str, Any]:
        """Names and defaults."""
        signature = inspect.signature(self.plan)
        defaults = {p.name: p.default for p in signature.parameters.values()}
        if quick:
            defaults.update(self.quick)
        if backend == "live":
            defaults.update(self.live)
            defaults.update(self.live_quick if quick else {})
        return defaults

    def samples(self, quick: bool = False, backend: str = "sim") -> dict[str, Any]:
        """The defaults as examples of the parameters' types: of one that is annotated as float, 100 is a float too, and of a file
        what its annotation says of it.
        """
        annotations, files = self.annotations(), self.files()
        return {
            name: files.get(name) or _as_annotated(default, annotations.get(name))
            for name, default in self.parameters(quick, backend).items()
        }

    def annotations(self) -> dict[str, Any]:
        """The parameters' annotations. What the function returns is not looked at: its name may be imported for type checkers only."""
        plan = inspect.unwrap(self.plan)
        found: dict[str, Any] = {}
        for name, said in plan.__annotations__.items():
            if name == "return":
                continue
            try:
                holder = SimpleNamespace(__annotations__={name: said})
                found |= get_type_hints(holder, plan.__globals__, include_extras=True)
            except Exception as error:
                code = plan.__code__
                raise TidegateError(
                    f"{user_code.shown(code.co_filename)}:{code.co_firstlineno}: {plan.__name__}: "
                    f"the annotation of {name}, {said}, cannot be evaluated: {type(error).__name__}: {error}; "
                    "import its names outside `if TYPE_CHECKING`, or leave it out"
                ) from None
        return found

    def files(self) -> dict[str, File]:
        """Of each parameter that is a file what its annotation says of it."""
        said = {name: _file_of(annotation) for name, annotation in self.annotations().items()}
        return {name: file for name, file in said.items() if file is not None}

    def no_parameter(self, name: str) -> str:
        """What to say of a parameter that it does not have."""
        known = self.parameters()
        return (
            f"{self.name} has no parameter {name!r}; {did_you_mean(name, known)}it has {', '.join(known)} "
            f"(`tidegate list {shlex.quote(self.shown_name)}` says what each is)"
        )

    def about(self) -> dict[str, dict[str, Any]]:
        """Of each parameter its type and unit in words, and its known values or its bounds."""
        annotations = self.annotations()
        return {
            name: _about(name, default, annotations.get(name)) for name, default in self.samples().items()
        }

    def owners(self) -> dict[str, OneOf]:
        """Of each parameter that may name what is the user's own, what its annotation says of it."""
        return {
            name: bound
            for name, annotation in self.annotations().items()
            for bound in getattr(annotation, "__metadata__", ())
            if isinstance(bound, OneOf) and bound.own is not None
        }

    def with_files(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, with the files read that are given by their paths, and what is the user's own found.

        Raises `TidegateError` for what is no such file, or is not there.
        """
        found = dict(parameters)
        for name, bound in self.owners().items():
            if name in found:
                found[name] = _with_own(name, found[name], bound)
        for name, file in self.files().items():
            if isinstance(path := found.get(name), str | os.PathLike):
                found[name] = _read(name, path, file)
        return found

    def recalled(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a record as the function takes them. Files are not read before their content is asked for.

        Raises `TidegateError` for a value of another kind.
        """
        most = {name: file.most for name, file in self.files().items()}
        found = {
            name: input_file.recalled(value, most.get(name, input_file.MOST_BYTES))
            for name, value in parameters.items()
        }
        samples = self.samples()
        for name, value in found.items():
            if not _is_like(value, samples[name]):
                raise TidegateError(
                    f"{self.name}: {name} is {value!r:.60}, which is no value of this parameter"
                )
        return found

    @property
    def text(self) -> str:
        """What it shows: its whole docstring."""
        return inspect.cleandoc(self.plan.__doc__ or "")

    def check(self, parameters: dict[str, Any]) -> None:
        """Raise `TidegateError` for invalid values."""
        annotations, known = self.annotations(), self.parameters()
        for name, value in parameters.items():
            if name not in known:
                raise TidegateError(self.no_parameter(name))
            values = value if isinstance(value, tuple) else (value,)
            if not values:
                raise TidegateError(f"{self.name}: {name} has nothing in it; give a value or several")
            bounds = getattr(annotations.get(name), "__metadata__", ())
            if len(set(values)) < len(values) and MayRepeat() not in bounds:
                raise TidegateError(f"{self.name}: {name} has a value twice; give each once")
            for one in values:
                why = _wrong(one, bounds)
                if why is not None and not bounds and value == known[name]:
                    # It is the experiment's own default, so what is to be mended is the experiment.
                    why += (
                        f", or say in the experiment that it may be so: {name}: "
                        f"Annotated[{type(one).__name__}, AtLeast({min(0, one):g})]"
                    )
                if why is not None:
                    raise TidegateError(f"{self.name}: {name} is {one!r}; {why}")


def _as_annotated(default: Any, annotation: Any) -> Any:
    """A default, with whole numbers as floats where the annotation says so."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if isinstance(default, tuple):
        of = get_args(annotation)
        return tuple(_as_annotated(one, of[0] if of else None) for one in default)
    return float(default) if annotation is float and type(default) is int else default


def _is_like(value: Any, sample: Any) -> bool:
    """Whether a value is of a parameter's kind; whole numbers and others are one kind, and what is the user's own stands for a name."""
    if isinstance(sample, File):
        return True
    if isinstance(sample, tuple):
        return isinstance(value, tuple) and all(_is_like(one, sample[0]) for one in value)
    kinds: tuple[type, ...] = (int, float) if type(sample) in (int, float) else (type(sample),)
    return type(value) in kinds or (isinstance(value, Own) and isinstance(sample, str))


def _file_of(annotation: Any) -> File | None:
    """What a parameter's annotation says of a file."""
    bounds = getattr(annotation, "__metadata__", ())
    return next((bound for bound in bounds if isinstance(bound, File)), None)


def _read(name: str, path: str | os.PathLike[str], file: File) -> InputFile:
    try:
        return file.read(path)
    except TidegateError as error:
        raise TidegateError(f"{name}: {error}") from None


def _with_own(name: str, value: Any, bound: OneOf) -> Any:
    """A parameter's value, with what is the user's own found."""
    if isinstance(value, tuple | list):
        return tuple(_with_own(name, one, bound) for one in value)
    try:
        return bound.own(value) if bound.own is not None and isinstance(value, str) else value
    except TidegateError as error:
        raise TidegateError(f"{name}: {error}") from None


def _wrong(value: Any, bounds: Collection[OneOf | AtLeast | MayRepeat | File]) -> str | None:
    """The cure for an invalid value of a parameter."""
    for bound in bounds:
        if isinstance(bound, File):
            return None if value is None or isinstance(value, InputFile) else "give the path of a file"
        if isinstance(bound, OneOf):
            known = ", ".join(map(str, bound.names)) + (", or yours, as ./my.py:NAME" if bound.own else "")
            right = value in bound.names or (isinstance(value, Own) and bound.own is not None)
            return None if right else f"{did_you_mean(value, bound.names)}known are {known}"
        if isinstance(bound, MayRepeat):
            continue
        right = bound.least <= value <= bound.most
        return None if right else f"give a number from {bound.least:g} to {bound.most:g}"
    if isinstance(value, int | float) and not isinstance(value, bool) and not 0 < value <= MOST:
        return f"give a number above 0 and up to {MOST:g}"
    return None


UNITS = {
    "s": "s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
    "gbps": "Gbit/s",
    "mbps": "Mbit/s",
    "kbps": "kbit/s",
    "bdp": "BDP",
    "bytes": "bytes",
    "packets": "packets",
    "percent": "%",
    "rtts": "RTTs",
}
"""Units by the ends of parameters' names."""


def _about(name: str, default: Any, annotation: Any) -> dict[str, Any]:
    """Type, unit and values of a parameter."""
    if isinstance(default, File):
        return {"type": f"file: {default.kind}", "unit": None}
    several = isinstance(default, tuple)
    one = default[0] if several and default else default
    kind = {bool: "true or false", int: "whole number", float: "number", str: "name"}[type(one)]
    about: dict[str, Any] = {
        "type": f"list of {kind}s" if several else kind,
        "unit": UNITS.get(name.rpartition("_")[2]) if "_" in name else None,
    }
    for bound in getattr(annotation, "__metadata__", ()):
        if isinstance(bound, OneOf):
            about["known"] = list(bound.names)
        elif isinstance(bound, AtLeast):
            about |= {"least": bound.least, "most": bound.most}
    return about


_registry: dict[str, Experiment] = {}
_loading: list[tuple[str, dict[str, Experiment]]] = []
"""Files that are being loaded, and what they have registered: it is not for all."""


@contextmanager
def loading(file: Path) -> Iterator[dict[str, Experiment]]:
    """While a user's file is loaded: its own experiments go into the dictionary that this gives."""
    _loading.append((str(file), {}))
    try:
        yield _loading[-1][1]
    finally:
        _loading.pop()


def experiment(
    name: str,
    table: tuple[str, ...] = (),
    backends: tuple[str, ...] = ("sim",),
    quick: Mapping[str, Any] | None = None,
    live: Mapping[str, Any] | None = None,
    live_quick: Mapping[str, Any] | None = None,
    also: str | None = None,
) -> Callable[[Callable[..., Plan]], Callable[..., Plan]]:
    """Makes a function an experiment; the first line of its docstring says what it shows.

    `table` says which columns a terminal shows, `backends` where it can run: in the simulator alone, or live as well. `quick`
    has the defaults that are others with `--quick`, `live` those that are others between real hosts, and `live_quick` those with both;
    `also` is a second name.
    """

    def register(plan: Callable[..., Plan]) -> Callable[..., Plan]:
        summary = next(iter((plan.__doc__ or "").strip().splitlines()), "")
        others = (quick or {}, live or {}, live_quick or {})
        made = Experiment(name, summary, plan, table, backends, *others, also)
        file = _file(made)
        for loaded, own in _loading:
            if file == loaded:
                own[name] = made
                return plan
        if name in _registry and _file(_registry[name]) != file:
            raise TidegateError(
                f"two experiments are {name}: in {_file(_registry[name])} and in {file}; give one another name"
            )
        _registry[name] = made
        return plan

    return register


def _file(one: Experiment) -> str:
    return str(Path(inspect.unwrap(one.plan).__code__.co_filename).resolve())


def system_names() -> list[str]:
    """The folders of systems."""
    for folder in systems.ELSEWHERE:
        if not Path(folder).is_dir():
            raise TidegateError(f"TIDEGATE_SYSTEMS names {folder!r}, which is not a folder; correct it")
        _demand_own(Path(folder))
    return sorted({module.name for module in pkgutil.iter_modules(systems.__path__) if module.ispkg})


def _demand_own(folder: Path) -> None:
    """As root, refuse a folder of systems that others can change: itself, a system, or a file of its experiments."""
    if os.geteuid() != 0:
        return
    from tidegate.control.files import demand_own

    demand_own(folder)
    # With the folder that each is in.
    for pattern in ("*/__init__.py", "*/experiments/*.py"):
        for file in sorted(folder.glob(pattern)):
            demand_own(file)


def all_experiments() -> dict[str, Experiment]:
    """Every experiment of every system, by name."""
    for system in system_names():
        name = f"{systems.__name__}.{system}.experiments"
        if importlib.util.find_spec(name) is None:
            continue
        with user_code.blamed():
            import_experiments(name)
    from tidegate.experiments import packages

    packages.load()
    return dict(sorted(_registry.items()))


def import_experiments(name: str) -> None:
    """Import a package of experiments: a file for each."""
    package = importlib.import_module(name)
    for part in pkgutil.iter_modules(getattr(package, "__path__", ())):
        importlib.import_module(f"{name}.{part.name}")


def find(name: str) -> Experiment:
    """The experiment of that name or alternative name, or of a file (`my.py:rates`)."""
    from tidegate.experiments import files

    if files.is_reference(name):
        return files.one_of_reference(name)
    roots.enter(None)
    known = all_experiments()
    for one in known.values():
        if name in (one.name, one.also):
            return one
    raise TidegateError(f"there is no experiment {name!r}; {_instead(name, known.values())}")


def _instead(name: str, known: Collection[Experiment]) -> str:
    """What may have been meant: the nearest experiment, those of the system, or all."""
    names = [one.name for one in known]
    both = [*names, *(one.also for one in known if one.also is not None)]
    system = nearest(name.partition(".")[0], {one.partition(".")[0] for one in names})
    own = [one.removeprefix(f"{system}.") for one in both if one.startswith(f"{system}.")]
    # A system that two names share does not make them alike.
    near = nearest(name.partition(".")[2], own)
    meant = did_you_mean(name, names) if near is None and not own else ""
    if near is not None or meant:
        full = f"{system}.{near}"
        return f"{meant or f'did you mean {full!r}? '}`tidegate list` shows all"
    listed = [one for one in names if one.startswith(f"{system}.")]
    return f"{f'{system} has' if listed else 'known:'} {', '.join(listed or names)}"


def of_system(name: str) -> list[Experiment]:
    """The experiments that `tidegate list NAME` shows: one by its name, or those of a system."""
    from tidegate.experiments import files

    if files.is_reference(name):
        return files.of_reference(name)
    known = all_experiments()
    own = [one for one in known.values() if one.name.startswith(f"{name}.")]
    return own or [find(name)]


def with_settings(
    one: Experiment, settings: list[str], quick: bool = False, backend: str = "sim"
) -> dict[str, Any]:
    """The parameters, with those set by `name=value` converted to the types of their defaults."""
    parameters = one.parameters(quick, backend)
    samples = one.samples(quick, backend) if settings else {}
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name, setting in zip(names, settings, strict=True):
        _, sign, text = setting.partition("=")
        if not sign:
            raise TidegateError(f"--set {setting}: write it as name=value")
        if name not in parameters:
            raise TidegateError(one.no_parameter(name))
        if names.count(name) > 1:
            raise TidegateError(f"--set {setting}: {name} is set twice; a list is written as {name}=1,2")
        parameters[name] = converted(name, text, samples[name])
    return one.with_files(parameters) if settings else parameters


WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""What is written for true and false."""


def converted(name: str, text: str, default: Any, option: str = "--set") -> Any:
    """A value of a parameter from text, of the type of its default."""
    if isinstance(default, File):
        return _read(f"{option} {name}", text.strip(), default)
    try:
        if isinstance(default, tuple):
            return tuple(_one(item, default[0] if default else "") for item in text.split(","))
        return _one(text, default)
    except (ValueError, KeyError):
        one = default[0] if isinstance(default, tuple) else default
        number = "whole number" if isinstance(one, int) else "number"
        wanted = f"a list of {number}s" if isinstance(default, tuple) else f"a {number}"
        if isinstance(one, bool):
            wanted = "true or false"
        raise TidegateError(f"{option} {name}={text}: {text!r} is not {wanted}") from None


def _one(text: str, default: bool | int | float | str) -> bool | int | float | str:
    """One value from text, of the type of another; `ValueError` or `KeyError` for a text that is none."""
    text = text.strip()
    return WORDS[text.lower()] if isinstance(default, bool) else type(default)(text)


def clock_time(one: Experiment, parameters: dict[str, Any], repeat: int) -> str:
    """Duration of its cases in real time, one after another: `2 h 5 min`, `40 s`."""
    return size(one, parameters, repeat)[1]


def size(one: Experiment, parameters: dict[str, Any], repeat: int) -> tuple[int, str]:
    """The number of its runs, and their simulated time in all: `2 h 5 min`, `40 s`, `0.12 s`."""
    one.check(parameters)
    cases = one.planned(parameters).cases
    runs, whole = repeat * len(cases), repeat * sum(units.time(case.until) for case in cases)
    if whole < units.PS_PER_S:
        return runs, f"{whole / units.PS_PER_S:.2g} s"
    seconds = whole // units.PS_PER_S
    minutes = -(-seconds // 60)
    if seconds < 120:
        return runs, f"{seconds} s"
    return runs, f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def demand_backend(one: Experiment, backend: str) -> None:
    """Refuse a backend that the experiment or this machine does not support."""
    backends.find(backend)
    if backend not in one.backends:
        raise TidegateError(
            f"{one.name} runs on {' and '.join(one.backends)}, not on {backend}; "
            f"on {backend} run: {', '.join(name for name, other in all_experiments().items() if backend in other.backends)}"
        )
    if backend == "live":
        from tidegate.lab import kernel

        kernel.demand_privilege()
