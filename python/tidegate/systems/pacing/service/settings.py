"""What the service is told: which flows it paces, at which interfaces, in which bounds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, BinaryIO

from tidegate import addresses, units
from tidegate._core import TidegateError
from tidegate.config_file import line_of
from tidegate.files import demand_secret, toml
from tidegate.suggest import did_you_mean
from tidegate.systems.pacing.format import MOST_WEIGHT, Keys

DIRECTIONS = {"opened": 1, "accepted": 2, "both": 3}
PACE_BY = ("socket", "fq", "htb")
LOG_FORMATS = ("text", "json")
PS_PER_NS = 1000
MOST_CGROUPS = 8
MOST_CHOSEN = 65_536
MOST_FLOWS = 1_048_576
FASTEST = 8 * (2**32 - 32)
"""In bit/s: BPF programs give the kernel a pacing rate of 32 bits in bytes/s."""
LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """All of them have the names that they have in the configuration file."""

    interfaces: tuple[str, ...] = ()
    """Those that the flows use."""
    cgroups: tuple[str, ...] = ()
    """Folders of cgroups of version 2 whose flows are paced; none: all."""
    ports: tuple[int, ...] = ()
    """Ports that connections are opened to, or accepted at; none: all."""
    destinations: tuple[str, ...] = ()
    """IPv4 and IPv6 prefixes of the other side; none: all."""
    direction: str = "opened"
    """Which connections: `opened` by this host, `accepted` by it, or `both`."""
    existing: bool = True
    """Connections that are there when the service starts, too."""
    lend: bool = True
    """What a flow's application does not take is given to others, until it takes it."""
    weight: int = 1
    pace_by: str = "socket"
    """What holds a flow back: `socket`, TCP itself; `fq`, the qdisc that goes by the sockets' rates; `htb`, a class for each flow."""
    least_rate: units.Rate = "64 kbit/s"
    most_rate: units.Rate = FASTEST
    changes_per_second: int = 100
    """Of each flow: what comes more often is not believed."""
    refresh: units.Time = "10 s"
    """A flow that sends, and has heard nothing for so long, asks its switches."""
    timeout: units.Time = "30 s"
    """Without an answer for so long, a flow is not paced."""
    key_file: str | None = None
    most_flows: int = 65_536
    metrics_addr: str | None = None
    insecure: bool = False
    """Metrics at an address that other machines reach."""
    log_format: str = "text"
    """Of lines on standard error: `text`, or `json`, an object a line."""

    keys: Keys | None = field(default=None, compare=False, repr=False)
    """From the key file."""

    @property
    def refresh_ns(self) -> int:
        """In nanoseconds."""
        return units.time(self.refresh) // PS_PER_NS

    @property
    def timeout_ns(self) -> int:
        """In nanoseconds."""
        return units.time(self.timeout) // PS_PER_NS

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The destinations."""
        return tuple(ip_network(one) for one in self.destinations)

    def checked(self) -> Settings:
        """These settings with their keys; raises TidegateError where one is wrong."""
        if not self.interfaces:
            raise TidegateError(
                "no interface is given; name those that the flows use: tidegate agent -i eth0"
            )
        if self.direction not in DIRECTIONS:
            raise TidegateError(f"direction {self.direction!r} is none of {', '.join(DIRECTIONS)}")
        if self.pace_by not in PACE_BY:
            raise TidegateError(f"pace_by {self.pace_by!r} is none of {', '.join(PACE_BY)}")
        if self.log_format not in LOG_FORMATS:
            raise TidegateError(f"log_format {self.log_format!r} is none of {', '.join(LOG_FORMATS)}")
        for port in self.ports:
            units.below(port, 1, 65_536, "a TCP port")
        for one in self.destinations:
            try:
                ip_network(one)
            except ValueError as error:
                raise TidegateError(f"destination {one!r} is no IP prefix: {error}") from None
        for name, value in (("ports", self.ports), ("destinations", self.destinations)):
            if len(value) > MOST_CHOSEN:
                raise TidegateError(f"{len(value)} {name} are given; there is room for {MOST_CHOSEN}")
        if len(self.cgroups) > MOST_CGROUPS:
            raise TidegateError(
                f"{len(self.cgroups)} cgroups are given; there is room for {MOST_CGROUPS}: "
                "give one that contains several"
            )
        units.below(self.weight, 1, MOST_WEIGHT + 1, "a weight")
        units.below(self.changes_per_second, 1, 1_000_001, "a number of changes per second")
        units.below(self.most_flows, 1, MOST_FLOWS + 1, "a number of flows")
        least, most = units.rate(self.least_rate), units.rate(self.most_rate)
        if not 8_000 <= least <= most <= FASTEST:
            raise TidegateError(
                f"rates from {self.least_rate} to {self.most_rate} cannot be set; "
                "give 8 kbit/s to 34 Gbit/s, the least one first"
            )
        if self.refresh_ns < 100_000_000:
            raise TidegateError(f"refresh {self.refresh} is too short; give at least 100 ms")
        if self.timeout_ns < self.refresh_ns:
            raise TidegateError(
                f"timeout {self.timeout} is shorter than refresh, {self.refresh}; give a longer one"
            )
        if self.metrics_addr is not None:
            addresses.demand_local_metrics(self.metrics_addr, self.insecure)
        keys = None if self.key_file is None else read_keys(Path(self.key_file))
        return replace(self, keys=keys)


NAMES = tuple(one.name for one in fields(Settings) if one.name != "keys")
_LISTS = ("interfaces", "cgroups", "ports", "destinations")
_NUMBERS = ("weight", "changes_per_second", "most_flows")
_FLAGS = ("existing", "lend", "insecure")
_RATES = ("least_rate", "most_rate")


def _toml(path: Path, what: str) -> tuple[str, dict[str, Any]]:
    """A file's text, and what it says."""
    try:
        with path.open("rb") as file:
            return _read_toml(file, path, what)
    except OSError as error:
        raise TidegateError(f"{what} {path}: {error.strerror}") from None


def _read_toml(file: BinaryIO, path: Path, what: str) -> tuple[str, dict[str, Any]]:
    data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise TidegateError(f"{what} {path} has more than {LARGEST_FILE} bytes")
    try:
        text = data.decode()
        return text, toml(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TidegateError(f"{what} {path}: {error}") from None


def form_of_logs(path: Path) -> object:
    """`log_format` of a file, whatever else is wrong in it."""
    with suppress(TidegateError):
        return _toml(path, "configuration")[1].get("log_format")
    return None


def read(path: Path | None, given: Mapping[str, Any]) -> Settings:
    """Settings of a file (TOML), replaced by those that were `given`."""
    values: dict[str, Any] = {}
    text, found = ("", {}) if path is None else _toml(path, "configuration")
    for name, value in found.items():
        if name not in NAMES:
            raise TidegateError(
                f"configuration {path}:{line_of(text, name)}: there is no {name!r}; {did_you_mean(name, NAMES)}known: {', '.join(NAMES)}"
            )
        wanted = _wanted(name, value)
        if wanted is not None:
            place = f"configuration {path}:{line_of(text, name)}"
            raise TidegateError(f"{place}: {name} is {wanted}, not {value!r}")
        values[name] = tuple(value) if name in _LISTS else value
    values.update(given)
    return Settings(**values).checked()


def _wanted(name: str, value: object) -> str | None:
    """What a setting of a file is to be, if the value is of another type."""
    if name in _LISTS:
        kind, what = (int, "numbers") if name == "ports" else (str, "texts")
        good = isinstance(value, list) and all(type(one) is kind for one in value)
        return None if good else f"a list of {what}"
    if name in _NUMBERS:
        return None if type(value) is int else "a whole number"
    if name in _FLAGS:
        return None if type(value) is bool else "true or false"
    if name in _RATES:
        return None if type(value) in (str, int) else "a text or a number"
    return None if type(value) is str else "a text in quotes"


def read_keys(path: Path) -> Keys:
    """Keys of a file (TOML): `keys`, two texts of 16 hexadecimal digits, and `signing`, 0 or 1. Nobody else may read it."""
    try:
        with path.open("rb") as file:
            demand_secret(file, path)
            _, values = _read_toml(file, path, "key file")
    except OSError as error:
        raise TidegateError(f"key file {path}: {error.strerror}") from None
    texts, signing = values.get("keys"), values.get("signing", 0)
    good = (
        isinstance(texts, list)
        and len(texts) == 2
        and all(isinstance(one, str) and len(one) == 16 and _is_hexadecimal(one) for one in texts)
        and type(signing) is int
        and signing in (0, 1)
        and not values.keys() - {"keys", "signing"}
    )
    if not good:
        raise TidegateError(
            f'key file {path}: write keys = ["0123456789abcdef", "fedcba9876543210"], two keys of 16 hexadecimal '
            "digits, and signing = 0 or 1"
        )
    assert isinstance(texts, list)
    return Keys((int(texts[0], 16), int(texts[1], 16)), signing=1 if signing else 0)


def _is_hexadecimal(text: str) -> bool:
    return all(digit in "0123456789abcdefABCDEF" for digit in text)
