"""Files of the user's that are parameters of experiments: read once, where they are given, and known by their content from then on.

A run's record has the path as it was given and the SHA-256 of the content. The content goes with the parameters to other processes and
machines: those need not have the file.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.experiments import own
from tidegate.experiments.own import Own
from tidegate.files import read_start, why

MOST_BYTES = 16 << 20
"""Of a file, unless its parameter says otherwise: each task of a cluster has the content, compressed."""
DIGITS = 8
"""Of a digest, where it tells files apart for people."""


@dataclass(frozen=True)
class InputFile:
    """A file as it was when it was read; one with the same content is equal to it, whatever its path."""

    path: str = field(compare=False)
    """As the user gave it."""
    sha256: str
    _data: bytes | None = field(default=None, compare=False, repr=False)
    _most: int = field(default=MOST_BYTES, compare=False, repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str], most: int = MOST_BYTES) -> InputFile:
        """Read a file of so many bytes at most. Raises `TidegateError`."""
        name = os.fspath(path)
        if not name:
            raise TidegateError("there is no path; give that of a file")
        data = _content(Path(name), most)
        return cls(name, hashlib.sha256(data).hexdigest(), data)

    @property
    def data(self) -> bytes:
        """Its content. Raises `TidegateError` where it was not read yet and is another one by now."""
        if self._data is None:
            data = _content(Path(self.path), self._most)
            if hashlib.sha256(data).hexdigest() != self.sha256:
                raise TidegateError(
                    f"{self.path} has another content than the one of SHA-256 {self.sha256} that the run was of"
                )
            object.__setattr__(self, "_data", data)
        assert self._data is not None
        return self._data

    def __str__(self) -> str:
        """Its name with the begin of its digest: `link.trace@1f2e3d4c`."""
        return f"{Path(self.path).name}@{self.sha256[:DIGITS]}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.path, self.sha256, zlib.compress(self.data))


def _again(path: str, sha256: str, compressed: bytes) -> InputFile:
    return InputFile(path, sha256, zlib.decompress(compressed))


def _content(path: Path, most: int) -> bytes:
    try:
        # To open a pipe would wait for its writer.
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise TidegateError(f"{path}: {why(error)}; correct the path") from None
    except ValueError:
        raise TidegateError(f"{str(path)!r} is no path; correct it") from None
    if not regular:
        raise TidegateError(f"{path} is not a file; give the path of one")
    data = read_start(path, most + 1)
    if len(data) > most:
        raise TidegateError(f"{path} has more than {most} bytes; give a shorter file")
    return data


@dataclass(frozen=True)
class File:
    """In a parameter's annotation: it is the path of a file (`Annotated[InputFile | None, File(...)]`), `None` for none."""

    kind: str
    """What it has to be, in words: `trace in Mahimahi's format`."""
    check: Callable[[bytes, str], object] = lambda data, name: None
    """Gets content and path where the file is given; raises `TidegateError`, with the line, for what is none of that kind."""
    most: int = MOST_BYTES

    def read(self, path: str | os.PathLike[str]) -> InputFile:
        """Such a file. Raises `TidegateError`."""
        found = InputFile.read(path, self.most)
        self.check(found.data, found.path)
        return found


def recorded(value: Any) -> Any:
    """Values as a record has them: of a file path and digest, of what is the user's own its name too.

    >>> recorded({"trace": InputFile("my.trace", "1f2e")})
    {'trace': {'path': 'my.trace', 'sha256': '1f2e'}}
    """
    if isinstance(value, InputFile):
        return {"path": value.path, "sha256": value.sha256}
    if isinstance(value, Own):
        return value.recorded()
    if isinstance(value, Mapping):
        return {key: recorded(one) for key, one in value.items()}
    return type(value)(map(recorded, value)) if isinstance(value, list | tuple) else value


def _is_recorded(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() == {"path", "sha256"}
        and all(isinstance(one, str) for one in value.values())
    )


def recalled(value: Any, most: int = MOST_BYTES) -> Any:
    """A value of a record as an experiment takes it. A file is not read before its content is asked for, and no code of the user's is run."""
    if isinstance(value, list):
        return tuple(recalled(one, most) for one in value)
    if own.is_recorded(value):
        return Own(**value)
    return InputFile(value["path"], value["sha256"], _most=most) if _is_recorded(value) else value


def identity(value: Any) -> Any:
    """Recorded values as far as they tell runs apart: of a file its digest alone.

    >>> identity({"trace": {"path": "my.trace", "sha256": "1f2e"}})
    {'trace': {'sha256': '1f2e'}}
    """
    if _is_recorded(value):
        return {"sha256": value["sha256"]}
    if isinstance(value, Mapping):
        return {key: identity(one) for key, one in value.items()}
    return [identity(one) for one in value] if isinstance(value, list | tuple) else value


def as_given(value: Any) -> Any:
    """A recorded value as the command line takes it: of a file its path, and of a list its values.

    >>> as_given(["fifo", {"name": "red", "source": "/home/me/red.py:scheme", "files": "1f2e"}])
    'fifo,/home/me/red.py:scheme'
    """
    if isinstance(value, list | tuple):
        return ",".join(str(as_given(one)) for one in value)
    if own.is_recorded(value):
        return value["source"]
    return value["path"] if _is_recorded(value) else value


def in_words(value: Any) -> Any:
    """A recorded value in a table."""
    if isinstance(value, list | tuple):
        return ", ".join(str(in_words(one)) for one in value)
    if own.is_recorded(value):
        return f"{value['source']} (files {value['files']})"
    return f"{value['path']} (SHA-256 {value['sha256']})" if _is_recorded(value) else value


def differences(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """In what recorded values differ from others, in words.

    >>> differences({"flows": [1, 2], "rate": 5}, {"flows": [1], "rate": 5})
    'flows=1,2 and not flows=1'
    >>> differences({"over": {"mtu": [[900], [1500]]}}, {"over": {"mtu": [[900]]}})
    'over mtu=900,1500 and not over mtu=900'
    """
    there, wanted = _flat(there), _flat(wanted)

    def said(name: str, values: Mapping[str, Any]) -> str:
        return f"{name}={_listed(values[name])}" if name in values else f"no {name}"

    return ", ".join(
        f"{said(name, there)} and not {said(name, wanted)}"
        for name in dict.fromkeys([*there, *wanted])
        if identity(there.get(name)) != identity(wanted.get(name))
    )


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """With the values of a sweep each by its name."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and not _is_recorded(value):
            found |= {f"{name} {key}": one for key, one in value.items()}
        else:
            found[name] = value
    return found


def _listed(value: Any) -> str:
    return ",".join(map(_listed, value)) if isinstance(value, list | tuple) else str(in_words(value))
