"""Files and folders that are not there, of the wrong kind, unreadable or empty: one message with what is wrong, and status 1, by each command."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from conftest import EXAMPLES, Run, pcap

ROUTER = EXAMPLES / "ipv4_router" / "ipv4_router.p4"
MISSING, FOLDER, EMPTY, OTHER, UNREADABLE, BELOW, PIPE, DEVICE = (
    "missing",
    "folder",
    "empty",
    "other",
    "unreadable",
    "empty/below",
    "pipe",
    "device",
)
"""Nothing; a folder; a file of no bytes; one of other bytes; a symbolic link to itself, which root cannot read either; what would be in a file;
a named pipe; a symbolic link to a device."""
ANY = (MISSING, FOLDER, EMPTY, OTHER, UNREADABLE, BELOW)
NOT_EMPTY = (MISSING, FOLDER, OTHER, UNREADABLE, BELOW)
"""Where a file of no bytes will do."""
NEW_FOLDER = (EMPTY, OTHER, UNREADABLE, BELOW)
NEW_FILE = (FOLDER, BELOW, PIPE, DEVICE)

COMMANDS = {
    "report X": ANY,
    "report X RUN": ANY,
    "report RUN --out X": NEW_FILE,
    "report RUN --flent X": NEW_FOLDER,
    "man X": NEW_FOLDER,
    "view X": ANY,
    "plot X": ANY,
    "claims X": ANY,
    "compare X RUN": ANY,
    "compare RUN X": ANY,
    "compare RUN ANOTHER --out X": NEW_FOLDER,
    "check X": NOT_EMPTY,
    "check P4 --p4info X": NEW_FILE,
    "stf X STF": ANY,
    "stf P4 X": NOT_EMPTY,
    "replay X --in 1=PCAP --out OUT": ANY,
    "replay P4 --in 1=X --out OUT": ANY,
    "replay P4 --in 1=PCAP --out X": NEW_FOLDER,
    "replay P4 --in 1=PCAP --out OUT --commands X": NOT_EMPTY,
    "replay P4 --in 1=PCAP --out OUT --controller X": ANY,
    "monitor X": ANY,
    "monitor X --after PCAP": ANY,
    "monitor PCAP --after X": ANY,
    "monitor PCAP --samples X.csv": (BELOW,),
    "monitor PCAP --after ANOTHER.pcap --delays X.csv": (BELOW,),
    "monitor PCAP --parquet X.parquet": (BELOW,),
    "monitor PCAP --figure X.png": (BELOW,),
    "list X": ANY,
    "run X": ANY,
    "run reference.dumbbell --quick --out X": NEW_FOLDER,
    "run reference.dumbbell --quick --resume --out X": ANY,
    "sweep X --over flows=1,2": ANY,
    "sweep reference.dumbbell --quick --over flows=1,2 --out X": NEW_FOLDER,
    "sweep reference.dumbbell --quick --over flows=1,2 --resume --out X": ANY,
    "tune X --range flows=1:2 --minimise jain": ANY,
    "tune reference.dumbbell --quick --range flows=1:2 --minimise jain --out X": NEW_FOLDER,
    "tune reference.dumbbell --quick --range flows=1:2 --minimise jain --out OUT --storage X": (
        FOLDER,
        UNREADABLE,
        BELOW,
        OTHER,
    ),
    "demo --out X": NEW_FOLDER,
    "new system mine --dir X": NEW_FOLDER,
    "new experiment mine --dir X": NEW_FOLDER,
    "switch --config X": NOT_EMPTY,
    "switch X -i 1@none": ANY,
    "switch P4 -i 1@none --commands X": NOT_EMPTY,
    "switch P4 -i 1@none --controller X": ANY,
    "agent --config X": NOT_EMPTY,
    "agent -i lo --key-file X": ANY,
    "lab X": ANY,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tidegate import experiments

    place = tmp_path_factory.mktemp("place")
    (place / "in.pcap").write_bytes(pcap([(1, bytes(60))]))
    experiments.run("reference.dumbbell", {"flows": (1,)}, seeds=[1], quick=True, out=place / "run")
    shutil.copytree(place / "run", place / "another")
    return place


@pytest.mark.parametrize(
    ("command", "what"), [(command, what) for command, bad in COMMANDS.items() for what in bad]
)
def test_one_message_without_numbers_of_errors(
    tidegate: Run, place: Path, tmp_path: Path, command: str, what: str
) -> None:
    if command.split()[0] in ("switch", "agent", "lab") and os.geteuid() != 0:
        pytest.skip("needs root, and says so first")
    (tmp_path / FOLDER).mkdir()
    (tmp_path / EMPTY).write_bytes(b"")
    (tmp_path / OTHER).write_bytes(b"{}\n\0\xff\n")
    (tmp_path / UNREADABLE).symlink_to(UNREADABLE)
    os.mkfifo(tmp_path / PIPE)
    (tmp_path / DEVICE).symlink_to("/dev/null")
    names = {
        "X": str(tmp_path / what),
        "RUN": str(place / "run"),
        "ANOTHER": str(place / "another"),
        "P4": str(ROUTER),
        "STF": str(ROUTER.with_suffix(".stf")),
        "PCAP": str(place / "in.pcap"),
        "OUT": str(tmp_path / "out"),
    }
    words = []
    for word in command.split():
        port, equals, name = word.rpartition("=")
        stem, dot, suffix = name.partition(".")
        words.append(port + equals + names.get(stem, stem) + dot + suffix)
    before = sorted(os.listdir(place))
    ran = tidegate(*words)
    assert ran.code == 1, ran.err
    assert len([line for line in ran.err.splitlines() if what in line]) == 1, ran.err
    for sign in ("Errno", "os error", "Traceback", "this is a bug"):
        assert sign not in ran.err
    assert sorted(os.listdir(place)) == before
