"""The commands as a tree of plain values: what man pages and completion are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

PROGRAM = "tidegate"


@dataclass(frozen=True)
class Parameter:
    """An argument or an option of a command."""

    names: tuple[str, ...]
    """As they are written: `--interface`, `-i`; empty for an argument."""
    negative: tuple[str, ...]
    """The names that switch it off."""
    value: str | None
    """What its value is called: `FILE`, `sim|live`; `None`: it takes none."""
    help: str
    default: str | None
    required: bool
    multiple: bool

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it can have, where they are few."""
        if self.value is None or "|" not in self.value or not self.value.replace("|", "").islower():
            parts: tuple[str, ...] = ()
        else:
            parts = tuple(self.value.split("|"))
        # Not `N|SIZE` and the like.
        return parts if all(part.replace("-", "").replace("_", "").isalnum() for part in parts) else ()


@dataclass(frozen=True)
class Command:
    """A command, and those below it."""

    path: tuple[str, ...]
    """From the program's name on."""
    help: str
    parameters: tuple[Parameter, ...]
    commands: tuple[Command, ...]
    invocable: bool
    """Whether it does something without one of the commands below it."""

    @property
    def name(self) -> str:
        """With a blank between the words."""
        return " ".join(self.path)

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        return self.help.split("\n\n")[0].replace("\n", " ").strip()

    @property
    def options(self) -> tuple[Parameter, ...]:
        """Its parameters that have names."""
        return tuple(one for one in self.parameters if one.names)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """Its positional parameters."""
        return tuple(one for one in self.parameters if not one.names)

    def all(self) -> Iterator[Command]:
        """This one and all below it."""
        yield self
        for one in self.commands:
            yield from one.all()


def _value(parameter: Any) -> str | None:
    if getattr(parameter, "is_flag", False):
        return None
    if parameter.metavar:
        return str(parameter.metavar)
    if isinstance(parameter.default, Enum):
        return "|".join(str(one.value) for one in type(parameter.default))
    return "VALUE"


def _default(parameter: Any) -> str | None:
    shown = getattr(parameter, "show_default", False)
    if isinstance(shown, str):
        return shown
    value = parameter.default
    if not shown or value is None or isinstance(value, bool):
        return None
    return str(value.value if isinstance(value, Enum) else value)


def _parameter(parameter: Any) -> Parameter:
    option = parameter.param_type_name == "option"
    value = _value(parameter)
    if not option and value is not None:
        value = value.strip("[]")
    return Parameter(
        names=tuple(parameter.opts) if option else (),
        negative=tuple(parameter.secondary_opts),
        value=value,
        help=(parameter.help or "").strip(),
        default=_default(parameter),
        required=bool(parameter.required),
        multiple=bool(parameter.multiple) or parameter.nargs == -1,
    )


def _command(command: Any, path: tuple[str, ...]) -> Command:
    below = getattr(command, "commands", {})
    return Command(
        path=path,
        help=(command.help or "").strip(),
        parameters=tuple(_parameter(one) for one in command.params if not getattr(one, "hidden", False)),
        commands=tuple(_command(one, (*path, name)) for name, one in below.items() if not one.hidden),
        invocable=not below or bool(getattr(command, "invoke_without_command", False)),
    )


def of_parameters(command: Any) -> dict[str, Parameter]:
    """The parameters of the parser's command, by their names in Python."""
    return {one.name: _parameter(one) for one in command.params if not getattr(one, "hidden", False)}


def tree() -> Command:
    """All commands."""
    import typer

    from tidegate.cli.commands import app

    return _command(typer.main.get_command(app), (PROGRAM,))
