"""What a new system begins with: `system` is a smallest whole one, which `new_system` copies under another name."""

from __future__ import annotations

import re
from pathlib import Path

from tidegate._core import TidegateError

SYSTEM = Path(__file__).with_name("system")
_NAME = "marker"


def new_system(name: str, folder: Path) -> Path:
    """Make the folder of a system in `folder`, and give it.

    It is found where `tidegate.systems` looks: in its own folder, and in those that the environment variable TIDEGATE_SYSTEMS names.
    """
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        raise TidegateError(
            f"a system cannot be named {name!r}; give lower-case letters, digits and _, a letter first"
        )
    place = folder / name
    if place.exists():
        raise TidegateError(f"{place} is there already; give another name or folder")
    title = "".join(part.capitalize() for part in name.split("_"))
    try:
        for source in sorted(SYSTEM.rglob("*")):
            if source.is_dir() or "__pycache__" in source.parts:
                continue
            file = place / str(source.relative_to(SYSTEM)).replace(_NAME, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text()
            file.write_text(text.replace(_NAME, name).replace(_NAME.capitalize(), title))
    except OSError as error:
        raise TidegateError(f"{place} cannot be written: {error.strerror or error}") from None
    return place
