"""Which program is set: `SetForwardingPipelineConfig` and `GetForwardingPipelineConfig`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate._core import TidegateError
from tidegate.p4 import Program
from tidegate.p4runtime.device import Device, pipeline_of
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.running import Running
from tidegate.p4runtime.schema import difference
from tidegate.p4runtime.values import Translations


class Configuration:
    """The program that runs, and the one that is saved to run next."""

    def __init__(
        self,
        device: Device,
        program: Program | None,
        translations: Translations,
        on_program: Callable[[Program], None],
    ) -> None:
        self._device = device
        self._on_program = on_program
        self._translations = translations
        self.committed: Running | None = None
        # With what is read and written of it until it runs, in a pipeline of its own.
        self._saved: Running | None = None
        if program is not None:
            config = p4.ForwardingPipelineConfig(p4info=parse_p4info(program.p4info))
            self.committed = Running(program, device, config, translations)

    def current(self) -> Running:
        """The program that reads and writes are of."""
        found = self._saved or self.committed
        if found is None:
            raise P4Error(
                Code.FAILED_PRECONDITION, "no program is set; set a forwarding pipeline config first"
            )
        return found

    def set(self, request: Any) -> None:
        """Do what a request asks."""
        actions = p4.SetForwardingPipelineConfigRequest
        if request.action == actions.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes the config that is saved; leave it out")
            if self._saved is None:
                raise P4Error(Code.NOT_FOUND, "no config is saved")
            self._commit(self._saved, keep_state=False)
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
        made = self._verified(request.config)
        if request.action == actions.VERIFY_AND_SAVE:
            self._saved = made
        elif request.action == actions.VERIFY_AND_COMMIT:
            self._commit(made, keep_state=False)
        elif request.action == actions.RECONCILE_AND_COMMIT:
            self._commit(made, keep_state=True)

    def _verified(self, config: Any) -> Running:
        """The config on a pipeline of its own."""
        program = self._program(config.p4_device_config)
        try:
            pipeline = pipeline_of(program)
        except TidegateError as error:
            raise invalid(f"the program cannot be run: {error}") from None
        if not config.HasField("p4info"):
            raise invalid("a config needs P4Info")
        found = difference(parse_p4info(program.p4info), config.p4info)
        if found is not None:
            raise invalid(f"the P4Info is not that of the program: {found}")
        kept = p4.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        return Running(program, Device(pipeline), kept, self._translations)

    def _program(self, given: bytes) -> Program:
        if not given:
            if self.committed is None:
                raise invalid("the device config is empty; it is the program's P4_16 text")
            return self.committed.program
        try:
            text = given.decode()
        except UnicodeDecodeError:
            raise invalid("the device config is not text; it is the program's P4_16 text") from None
        if text.lstrip().startswith("{"):
            raise invalid("the device config looks like JSON; here it is the program's P4_16 text")
        try:
            return Program.from_text(text)
        except TidegateError as error:
            raise invalid(f"the program does not compile:\n{error}") from None

    def _commit(self, made: Running, keep_state: bool) -> None:
        pipeline = made.device.pipeline
        assert pipeline is not None, "a config is verified on a pipeline"
        try:
            self._device.install(pipeline, keep_state)
        except TidegateError as error:
            raise invalid(str(error)) from None
        made.device.become(self._device)
        if keep_state and self.committed is not None:
            made.keep(self.committed)
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
        if self.committed is None:
            return response
        config = self.committed.config
        response.config.SetInParent()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if asked in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if asked in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        return response
