"""The command `tidegate`, from its first moment on: what it needs takes a while to load, and Ctrl-C may come meanwhile."""

import sys


def main() -> None:
    """Entry point."""
    try:
        from tidegate import cli
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
