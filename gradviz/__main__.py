"""The entry point of ``gradviz`` and of ``python -m gradviz``."""

from gradviz.cli.main import gradviz


def main() -> None:
    """Run the command line on ``sys.argv``; exits the process."""
    gradviz()


if __name__ == "__main__":
    main()
