"""Which program is set: `SetForwardingPipelineConfig` and `GetForwardingPipelineConfig`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from tidegate._core import TidegateError
from tidegate.p4 import Program
from tidegate.p4runtime.compiling import Compiler, exhausted
from tidegate.p4runtime.device import Device, pipeline_of
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.running import Running
from tidegate.p4runtime.schema import Schema, difference
from tidegate.p4runtime.translate.replication import demand_platform
from tidegate.p4runtime.values import Translations

LONGER = 32
"""P4Info as text is shorter than so many times its bytes: one that is longer need not be parsed, which takes seconds if it is long."""


class Configuration:
    """The program that runs, and the one that is saved to run next."""

    def __init__(
        self,
        device: Device,
        program: Program | None,
        translations: Translations,
        on_program: Callable[[Program], None],
        busy: AbstractContextManager[Any],
        limits: Limits,
        program_limits: Mapping[str, int] | None = None,
    ) -> None:
        """`busy` is held while the program is replaced, and not while one is compiled."""
        self._device = device
        self._busy = busy
        self._limits = limits
        self._compiler = Compiler(limits, program_limits)
        self._on_program = on_program
        self._translations = translations
        self.committed: Running | None = None
        # With what is read and written of it until it runs, in a pipeline of its own.
        self._saved: Running | None = None
        if program is not None:
            config = p4.ForwardingPipelineConfig(p4info=parse_p4info(program.p4info))
            self.committed = self._running(program, device, config)

    def _running(self, program: Program, device: Device, config: Any) -> Running:
        return Running(program, device, config, self._translations, self._busy, self._limits)

    def close(self) -> None:
        """Set no more programs."""
        self._compiler.close()

    def current(self) -> Running:
        """The program that reads and writes are of."""
        found = self._saved or self.committed
        if found is None:
            raise P4Error(
                Code.FAILED_PRECONDITION, "no program is set; set a forwarding pipeline config first"
            )
        return found

    def set(self, request: Any, demand: Callable[[], object], *, client: str, first: bool) -> None:
        """Do what a client's request asks. `demand` raises if it may not do it any more; compiling takes its time.

        `first`: it is that of the primary of the default role, which comes before others.
        """
        actions = p4.SetForwardingPipelineConfigRequest
        if request.action == actions.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes the config that is saved; leave it out")
            with ExitStack() as later, self._busy:
                demand()
                if self._saved is None:
                    raise P4Error(Code.NOT_FOUND, "no config is saved")
                self._commit(self._saved, False, later)
            return
        if request.action not in (
            actions.VERIFY,
            actions.VERIFY_AND_SAVE,
            actions.VERIFY_AND_COMMIT,
            actions.RECONCILE_AND_COMMIT,
        ):
            raise invalid("there is no such action")
        if not request.HasField("config"):
            raise invalid("this action needs a config")
        with self._compiler.turn(client, first):
            text = self._text(request.config.p4_device_config)
            self._verify(request.config, text)
            if request.action == actions.VERIFY:
                return
            made = self._made(request.config, text)
            with ExitStack() as later, self._busy:
                demand()
                if request.action == actions.VERIFY_AND_SAVE:
                    self._give_up(self._saved, later)
                    self._saved = made
                else:
                    self._commit(made, request.action == actions.RECONCILE_AND_COMMIT, later)

    def _verify(self, config: Any, text: str | None) -> None:
        """Refuse a config that cannot be run; nothing of it is done in this process but a comparison."""
        if not config.HasField("p4info"):
            raise invalid("a config needs P4Info")
        info = self._committed_program().p4info if text is None else self._compiler.p4info(text)
        if len(info) > LONGER * (config.p4info.ByteSize() + 64):
            raise invalid("the P4Info is not that of the program, whose own is much longer")
        own = parse_p4info(info)
        found = difference(own, config.p4info)
        if found is not None:
            raise invalid(f"the P4Info is not that of the program: {found}")
        demand_platform(config.p4info.pkg_info.platform_properties)
        Schema(own, translations=self._translations)

    def _made(self, config: Any, text: str | None) -> Running:
        """The config, which has been verified, on a pipeline of its own.

        It takes what the process took that has compiled it before, which had limits: the text, the compiler's limits and the engine
        are the same, and neither the environment nor memory that is short has another program come of them.
        """
        try:
            program = (
                self._committed_program()
                if text is None
                else Program.from_text(text, limits=self._compiler.program_limits)
            )
            pipeline = pipeline_of(program)
        except TidegateError as error:
            raise invalid(f"the program cannot be run: {error}") from None
        kept = p4.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        return self._running(program, Device(pipeline), kept)

    def _committed_program(self) -> Program:
        if self.committed is None:
            raise invalid("the device config is empty; it is the program's P4_16 text")
        return self.committed.program

    def _text(self, given: bytes) -> str | None:
        """The program's text; `None`: the one that runs."""
        if not given:
            return None
        if len(given) > self._limits.source_bytes:
            raise exhausted(
                f"the program has {len(given)} bytes of text; {self._limits.source_bytes} at most are compiled"
            )
        try:
            text = given.decode()
        except UnicodeDecodeError:
            raise invalid("the device config is not text; it is the program's P4_16 text") from None
        if text.lstrip().startswith("{"):
            raise invalid("the device config looks like JSON; here it is the program's P4_16 text")
        return text

    def _give_up(self, running: Running | None, later: ExitStack) -> None:
        """Have nobody use a program any more. It is freed `later`, when nobody waits: many entries take time."""
        if running is None:
            return
        running.replaced = True

        def free() -> None:
            own = running.device.pipeline
            # What the device ran has been taken out of it.
            if own is not None and own is not self._device.pipeline:
                own.engine.give_up().free()

        later.callback(free)

    def _commit(self, made: Running, keep_state: bool, later: ExitStack) -> None:
        pipeline = made.device.pipeline
        assert pipeline is not None, "a config is verified on a pipeline"
        try:
            later.callback(self._device.install(pipeline, keep_state).free)
        except TidegateError as error:
            raise invalid(str(error)) from None
        made.device.become(self._device)
        if keep_state and self.committed is not None:
            made.keep(self.committed)
        for before in (self.committed, self._saved):
            if before is not made:
                self._give_up(before, later)
        self.committed, self._saved = made, None
        self._on_program(made.program)

    def get(self, asked: int) -> Any:
        """The config that is set, as it was given."""
        kinds = p4.GetForwardingPipelineConfigRequest
        if asked not in (
            kinds.ALL,
            kinds.COOKIE_ONLY,
            kinds.P4INFO_AND_COOKIE,
            kinds.DEVICE_CONFIG_AND_COOKIE,
        ):
            raise invalid("there is no such type of answer")
        response = p4.GetForwardingPipelineConfigResponse()
        with self._busy:
            committed = self.committed
        if committed is None:
            return response
        config = committed.config
        response.config.SetInParent()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if asked in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if asked in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        return response
