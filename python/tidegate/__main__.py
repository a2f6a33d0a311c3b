"""The command `tidegate`, from its first moment on: what it needs takes a while to load, and Ctrl-C may come meanwhile."""

import os
import sys


def _open_what_is_closed() -> None:
    """Descriptors 0 to 2 that were closed (`>&-`) lead nowhere: else the next file or socket would be opened as one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def main() -> None:
    """Entry point."""
    _open_what_is_closed()
    try:
        from tidegate import cli
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
