"""Logging of services: lines of text, or of JSON with time, level and message, to standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

ERRORS = "tidegate.errors"
"""The logger of what ends a command."""


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object of a record."""
        message = record.getMessage()
        if record.exc_info:
            message += f"\n{self.formatException(record.exc_info)}"
        said = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": message,
        }
        return json.dumps(said, ensure_ascii=False)


class _StandardError(logging.StreamHandler[TextIO]):
    """To what is standard error at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        """Where lines go."""
        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        raise AttributeError("lines go to standard error")


def logger(name: str) -> logging.Logger:
    """The logger of a service: it writes lines of text until `listen` says otherwise."""
    made = logging.getLogger(name)
    if not made.handlers:
        listen(name, as_json=False)
    return made


def asked(words: Sequence[str]) -> str | None:
    """The form of the lines that a command line asks for; `None` where it does not say."""
    said = None
    for word, after in zip(words, [*words[1:], ""], strict=True):
        option, _, value = word.partition("=")
        if option == "--log-format":
            said = value or after
    return said


def of_file(form: object) -> None:
    """Errors are lines of the form that a configuration file gives, unless the command line gives one."""
    if form == "json" and asked(sys.argv) is None:
        listen(ERRORS, as_json=True)


def is_json(name: str) -> bool:
    """Whether the lines of a logger are JSON."""
    return any(isinstance(one.formatter, JsonLines) for one in logging.getLogger(name).handlers)


def report(text: str) -> None:
    """Say what went wrong, to standard error, in the form of `--log-format`."""
    if is_json(ERRORS):
        logging.getLogger(ERRORS).error("%s", text)
    else:
        sys.stderr.write(f"{text}\n")


def serve(name: str, *, as_json: bool) -> None:
    """`listen` for the service that this process is: what other loggers and Python warn of, as those of controllers, has its form too."""
    listen(name, as_json=as_json)
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if not isinstance(one, _StandardError)]
    if as_json:
        root.handlers.append(_handler(as_json=True))
    logging.captureWarnings(as_json)


def listen(name: str, *, as_json: bool) -> None:
    """Have the logger of a service write lines of this form."""
    made = logging.getLogger(name)
    made.handlers = [_handler(as_json=as_json)]
    made.setLevel(logging.INFO)
    made.propagate = False


def _handler(*, as_json: bool) -> logging.Handler:
    handler = _StandardError()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(message)s"))
    return handler
