"""A scheduler and workers that speak TLS, as Dask's configuration says, with keys of an authority of one's own."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import dask
from test_cluster import digests
from tidegate.experiments.executors import cluster

pytest.importorskip("distributed", reason="needs the extra `cluster`")

pytestmark = pytest.mark.slow


def configured(folder: Path) -> Path:
    """Dask's configuration in a folder, with a key that an authority of its own has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    ours, theirs = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    for name, key in (("ca", ours), ("host", theirs)):
        made = x509.CertificateBuilder(
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")]),
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]),
            key.public_key(),
            x509.random_serial_number(),
            now,
            now + datetime.timedelta(days=1),
        ).add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
        file = folder / f"{name}.pem"
        file.write_bytes(made.sign(ours, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "host.key").write_bytes(
        theirs.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    own = {"cert": str(folder / "host.pem"), "key": str(folder / "host.key")}
    tls = {"ca-file": str(folder / "ca.pem"), **dict.fromkeys(("scheduler", "worker", "client"), own)}
    comm = {"require-encryption": True, "tls": tls}
    (folder / "tls.json").write_text(json.dumps({"distributed": {"comm": comm}}))
    return folder


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a scheduler, and the configuration that has its key."""
    place = tmp_path_factory.mktemp("tls")
    config = configured(place / "config")
    with dask(place, protocol="tls", DASK_CONFIG=str(config)) as (address, _):
        yield address, config


def run(config: Path, out: Path, *words: str, code: int = 0) -> str:
    """The last line that a run of two cases says on standard error."""
    given = ["reference.dumbbell", "--set", "flows=1,2", "--set", "duration_s=3", "--out"]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", "run", *given, out, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "DASK_CONFIG": str(config)},
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert out.exists() == (code == 0)
    return done.stderr.splitlines()[-1]


def test_runs_by_tls_are_those_of_this_machine(there: tuple[str, Path], tmp_path: Path) -> None:
    address, config = there
    run(config, tmp_path / "serial")
    run(config, tmp_path / "tls", "--cluster", address)
    found = digests(tmp_path / "tls")
    assert found == digests(tmp_path / "serial")
    assert len(found) > 10
    said = (config.parent / "worker0.log").read_text()
    assert re.search(r"Start worker at: +tls://", said)


def test_without_a_key_its_settings_are_named(there: tuple[str, Path], tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    said = run(tmp_path / "config", tmp_path / "run", "--cluster", there[0], code=1)
    assert said == f"{there[0]} needs a certificate and a key: set {cluster.KEY}"


@pytest.mark.parametrize(("wrong", "why"), [(None, "No such file"), ("no key", "PEM")])
def test_a_key_that_cannot_be_read(
    wrong: str | None, why: str, there: tuple[str, Path], tmp_path: Path
) -> None:
    key = configured(tmp_path / "config") / "host.key"
    key.unlink() if wrong is None else key.write_text(wrong)
    said = run(tmp_path / "config", tmp_path / "run", "--cluster", there[0], code=1)
    assert said.startswith(f"{there[0]} needs a certificate and a key: ")
    assert why in said


def test_the_key_of_another_authority_is_refused(there: tuple[str, Path], tmp_path: Path) -> None:
    said = run(configured(tmp_path / "config"), tmp_path / "run", "--cluster", there[0], code=1)
    assert said.startswith(f"no Dask scheduler answers at {there[0]}: TLS certificate does not match")


@pytest.mark.parametrize(
    ("scheme", "why"),
    [("tcp", "encryption required by Dask configuration"), ("TLS", "unknown address scheme 'TLS'")],
)
def test_an_address_that_dask_refuses_is_one_message(
    scheme: str, why: str, there: tuple[str, Path], tmp_path: Path
) -> None:
    address = there[0].replace("tls", scheme)
    words = ("--cluster", address, "--cluster-option", "insecure=true")
    said = run(there[1], tmp_path / "run", *words, code=1)
    assert said.startswith(f"no Dask scheduler answers at {address}: {why}")
