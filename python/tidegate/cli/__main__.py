"""`python -m tidegate.cli`."""

from tidegate.cli import main

if __name__ == "__main__":
    main()
