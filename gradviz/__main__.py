"""The entry point of ``gradviz`` and of ``python -m gradviz``."""

import sys


def main() -> None:
    """Run the command line on ``sys.argv``; exits the process."""
    try:
        from gradviz.cli.main import gradviz  # noqa: PLC0415 - Ctrl-C may come meanwhile

        gradviz()
    except KeyboardInterrupt:  # once there is a command line, it catches this itself
        sys.exit(130)


if __name__ == "__main__":
    main()
