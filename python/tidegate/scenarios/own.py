"""Schemes of the user's: of a file, as `./my.py:scheme`, of a system's folder, as `./step:scheme`, or of a package that is installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.experiments import digests, files, packages, user_code
from tidegate.experiments.jobs import NotCarriedOut
from tidegate.experiments.own import Own
from tidegate.scenarios.schemes import SCHEMES, Scheme
from tidegate.suggest import did_you_mean

MAKE = "give a tidegate.scenarios.Scheme"


def names() -> tuple[str, ...]:
    """Schemes that have a name: Tidegate's own, and those of packages."""
    return (*SCHEMES, *packages.schemes())


def given(word: str) -> str | Own:
    """What a word for a scheme means; one of Tidegate's own, and a word that is none, are given back. Raises `TidegateError`."""
    if word in packages.schemes():
        return Own(word, word, digests.of_file(_loaded(word)[0]))
    if word in SCHEMES or not files.is_reference(word):
        return word
    word = _with_name(word)
    file, scheme = _loaded(word)
    if scheme.name in names():
        raise TidegateError(
            f"{word} is called {scheme.name!r}, and there is a scheme of that name already; give it another name"
        )
    path, name = files.parted(word)
    return Own(scheme.name, f"{Path(path).resolve()}:{name}", digests.of_file(file))


def find(scheme: str | Own) -> Scheme:
    """A scheme; one of the user's is loaded. Raises `TidegateError` where its files are others than those that it was given with."""
    if isinstance(scheme, str):
        return SCHEMES[scheme]
    file, found = _loaded(scheme.source)
    if (there := digests.of_file(file)) != scheme.files:
        raise NotCarriedOut(
            f"the files of the scheme {scheme.source} are {there} here instead of {scheme.files}; have the same here"
        )
    return replace(found, name=scheme.name)


def distinct(schemes: Iterable[str | Own]) -> tuple[str | Own, ...]:
    """Of two of the user's with one name, as of two versions of a file, the second is NAME-2."""
    found: list[str | Own] = []
    alike: Counter[str] = Counter()
    for one in schemes:
        alike[str(one)] += 1
        count = alike[str(one)]
        found.append(replace(one, name=f"{one}-{count}") if isinstance(one, Own) and count > 1 else one)
    return tuple(found)


def of_reference(word: str) -> dict[str, Scheme]:
    """The schemes of the file of a reference by their names in it."""
    _, module = files.module_of(word)
    return {name: value for name, value in vars(module).items() if isinstance(value, Scheme)}


def is_scheme(word: str) -> bool:
    """Whether a word names a scheme: a file alone, as `./my.py`, does not. The file of a reference is loaded."""
    return word in names() or files.parted(word)[1] in schemes_beside(word)


def schemes_beside(word: str) -> dict[str, Scheme]:
    """The schemes of the file, or of the system's folder, that a reference to whatever in it is of."""
    path = files.path_of(word)
    there = path / files.SETUP if files.is_system(path) else path
    return of_reference(word) if files.is_reference(word) and there.is_file() else {}


def _with_name(word: str) -> str:
    """A reference with the name of the file's only scheme, where none is given."""
    path, name = files.parted(word)
    found = {} if name else of_reference(word)
    if name or len(found) == 1:
        return word if name else f"{path}:{next(iter(found))}"
    listed = ", ".join(f"{path}:{one}" for one in found)
    raise TidegateError(
        f"{path} has {len(found)} schemes; give one of {listed}" if found else f"{path} has no scheme; {MAKE}"
    )


def _loaded(source: str) -> tuple[Path, Scheme]:
    """The file and the scheme of a reference, or of the name of a package's."""
    if source in packages.schemes():
        file, found = packages.scheme_of(source)
    else:
        path, name = files.parted(source)
        file, module = files.module_of(source)
        if not hasattr(module, name):
            known = of_reference(source)
            near = f"{did_you_mean(name, known)}known: {', '.join(known)}" if known else MAKE
            raise TidegateError(f"{user_code.shown(path)} has no scheme {name!r}; {near}")
        found = getattr(module, name)
    if not isinstance(found, Scheme):
        raise TidegateError(f"{source} is of type {type(found).__name__}; {MAKE}")
    return file, found
