"""The sources of the site: the repository's pages and the files that they link to, under their own paths.

    python tools/site.py FOLDER

A link to a folder leads to its page, if it has one; a file that is not a page is copied beside, so that readers can open it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def pages() -> list[Path]:
    """The pages of the site: all that git knows, and new ones, but for templates, whose placeholders are no names."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [Path(name) for name in sorted(set(listed)) if "templates" not in Path(name).parts]


def _led(page: Path, link: str, files: set[Path]) -> str:
    """A link as the site has it; notes the file that it leads to."""
    target = (ROOT / page.parent / link).resolve()
    if target.is_dir():
        inside = next(
            (target / name for name in ("README.md", "__init__.py") if (target / name).exists()), None
        )
        if inside is None:
            return link
        target, link = inside, f"{link.rstrip('/')}/{inside.name}"
    if target.is_file() and target.suffix != ".md":
        # By the name that the link has, if that is another name of a file.
        files.add(Path(os.path.normpath(page.parent / link)))
    return link


def lay(folder: Path) -> list[Path]:
    """Write the pages and the files that they link to into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    files: set[Path] = set()
    found = pages()
    for page in found:
        text = (ROOT / page).read_text()

        def led(match: re.Match[str], page: Path = page) -> str:
            return f"{match[1]}{_led(page, match[2], files)}{match[3]}"

        place = folder / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LINK.sub(led, text))
    for file in sorted(files):
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, place)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/site.py FOLDER")
    print(f"{len(lay(Path(sys.argv[1])))} pages")
