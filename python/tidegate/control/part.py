"""One part of a program that includes others, as the controller that was written for it alone sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.control import Controller, Digest, SwitchApi
from tidegate.control.api import PacketIn


@dataclass(frozen=True)
class _Core:
    """The engine, with names found among those of a part first: `forward` is `CombinedIngress.meter.forwarding.forward`."""

    core: Any
    names: dict[str, str]

    def _of_part(self, operation: Any) -> Any:
        for field in ("table", "name", "register", "counter"):
            given = getattr(operation, field, None)
            if given in self.names:
                operation = replace(operation, **{field: self.names[given]})
        return operation

    def now(self) -> int:
        now: int = self.core.now()
        return now

    def act(self, operation: Any) -> Any:
        return self.core.act(self._of_part(operation))

    def act_each(self, operations: Sequence[Any]) -> list[Any]:
        answers: list[Any] = self.core.act_each([self._of_part(one) for one in operations])
        return answers

    def act_all(self, operations: Sequence[Any]) -> list[Any]:
        answers: list[Any] = self.core.act_all([self._of_part(one) for one in operations])
        return answers

    def table_keys(self, table: str) -> Any:
        return self.core.table_keys(self.names.get(table, table))

    def command(self, line: str) -> str:
        answer: str = self.core.command(line)
        return answer


class Part(Controller):
    """A controller of a part: it names tables and registers as in its own program, and `names` says what they are in the whole."""

    def __init__(self, controller: Controller, names: Mapping[str, str]) -> None:
        self.controller = controller
        self.period = controller.period
        self.clock = controller.clock
        self._names = dict(names)

    def _seen(self, switch: SwitchApi) -> SwitchApi:
        seen = SwitchApi(switch.name, _Core(switch._core, self._names), switch.ports, switch._note)
        seen.subject, seen.recorder = switch.subject, switch.recorder
        return seen

    def start(self, switch: SwitchApi) -> None:
        """As the part."""
        self.controller.start(self._seen(switch))

    def tick(self, now: int, switch: SwitchApi) -> None:
        """As the part."""
        self.controller.tick(now, self._seen(switch))

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        """As the part."""
        self.controller.on_digest(now, self._seen(switch), digest)

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        """As the part."""
        self.controller.on_packet_in(now, self._seen(switch), packet)
