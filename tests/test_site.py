"""The site: its sources, and with mkdocs (.venv/docs, by `make docs`) links and anchors of the built pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_pages import PAGES, ROOT, name

MKDOCS = ROOT / ".venv" / "docs" / "bin" / "mkdocs"


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "tools/site.py", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


def test_all_pages_are_there_and_in_the_list(laid: Path) -> None:
    there = {str(page.relative_to(laid)) for page in laid.rglob("*.md")}
    assert there == {name(page) for page in PAGES if "templates" not in page.parts}
    listed = re.findall(r"^ *- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) > 30
    assert set(listed) <= there


def test_what_pages_link_to_comes_along(laid: Path) -> None:
    assert (laid / "docs/meter.png").read_bytes() == (ROOT / "docs/meter.png").read_bytes()
    assert (laid / "examples/p4/firewall/firewall.p4").is_file()
    assert (laid / "examples/network.ipynb").is_file()


@pytest.mark.slow
def test_the_site_is_built_without_warnings(laid: Path, tmp_path: Path) -> None:
    if not MKDOCS.exists():
        pytest.skip("mkdocs is not installed; `make docs` installs it")
    config = tmp_path / "mkdocs.yml"
    text = (
        (ROOT / "mkdocs.yml")
        .read_text()
        .replace("dist/site-source", str(laid))
        .replace("dist/site\n", "built\n")
    )
    config.write_text(
        text.replace("[python]", f"[{ROOT}/python]").replace("tools/doctests", f"{ROOT}/tools/doctests")
    )
    done = subprocess.run(
        [str(MKDOCS), "build", "--config-file", str(config)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "built" / "index.html").read_text()
    # Notebooks are pages with their results.
    notebook = (tmp_path / "built" / "examples/network.html").read_text()
    assert "image/svg" in notebook or "<svg" in notebook
    # Nothing is fetched from elsewhere.
    assert 'src="http' not in page
    assert "fonts.g" not in page
