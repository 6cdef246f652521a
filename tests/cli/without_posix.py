"""A program: commands of ``gradviz`` where the system has no POSIX (see `HIDDEN`).

Run as ``python -m tests.cli.without_posix COMMANDS``, a JSON list of command lines;
prints a JSON list of their exit codes and outputs. Modules and names are hidden before
gradviz is imported, as they are on Windows; what CPython itself needs stays.
"""

import json
import os
import shlex
import signal
import socket
import sys
from typing import Final

_MODULES: Final = ("fcntl", "grp", "pwd", "resource", "termios", "tty")
_NAMES: Final = {
    os: (
        "O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_DIRECTORY register_at_fork fork getuid "
        "geteuid getgid getpgid killpg setsid pread pwrite fchmod mkfifo "
        "sched_getaffinity getloadavg nice"
    ),
    signal: "SIGHUP SIGUSR1 SIGUSR2 SIGKILL SIGALRM SIGQUIT SIGCHLD setitimer alarm",
    socket: "AF_UNIX SO_REUSEPORT",
}


def hide() -> None:
    """Hide the modules and names."""
    sys.modules.update(dict.fromkeys(_MODULES))
    for module, names in _NAMES.items():
        for name in names.split():
            delattr(module, name)


def main() -> None:
    hide()
    # Only now: nothing of gradviz may have seen what is hidden.
    from click.testing import CliRunner

    from gradviz.cli.main import gradviz

    outcomes = []
    for command in json.loads(sys.argv[1]):
        result = CliRunner().invoke(gradviz, shlex.split(command))
        outcomes.append((result.exit_code, result.output))
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
