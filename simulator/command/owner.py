"""Whose a state folder is: one checkout's and one user's, so that nobody changes its stacks by settings of their own.

`SIMULATOR_HOME` leads to the state of another checkout where the environment of that one was entered before.
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from simulator.host import files, paths

_MARK = "checkout"  # the file that names the owner
_IN_EVERY_CHECKOUT = Path("simulator", "__main__.py")  # of every version


class Foreign(Exception):
    """The state is another checkout's; the message says whose, and how to come to this checkout's own."""


def claim() -> None:
    """Makes the state this checkout's, which it stays until it is removed. Raises Foreign.

    A checkout that is no longer where it was has been moved, or is gone: what it left goes to whoever comes.
    """
    home = paths.home().resolve()
    mark = home / _MARK
    owner = Path(mark.read_text()) if mark.exists() else home.parent
    if home != paths.ROOT / ".simulator" and owner != paths.ROOT and (owner / _IN_EVERY_CHECKOUT).exists():
        raise Foreign(
            f"SIMULATOR_HOME={home} is the state of another checkout, {owner}: from here, {paths.ROOT}, its stacks "
            "would be changed by settings that are not theirs.\n"
            '  for this checkout\'s own state: unset SIMULATOR_HOME && eval "$(make -s env)"\n'
            f"  for that one's: cd {owner}"
        )
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace(mark, str(paths.ROOT))


def refusal() -> str | None:
    """Why the state is not this user's, or this checkout's; None once it is."""
    try:
        claim()
    except Foreign as error:
        return str(error)
    except PermissionError as error:
        return not_allowed(error)
    return None


def not_allowed(error: PermissionError) -> str:
    """What to do where a file of the state, or another one, is kept from whoever runs the command."""
    path = Path(error.filename or paths.home())
    return (
        f"{path}: {error.strerror}. It is {_owner(path)}'s, and this is {_name(os.geteuid())}.\n"
        f"  run the command as {_owner(path)}, or with a state of your own: SIMULATOR_HOME=<a folder> before it"
    )


def _owner(path: Path) -> str:
    """Of the file, or of the folder that hides it."""
    for place in (path, *path.parents):
        try:
            return _name(place.stat().st_uid)
        except OSError:
            continue
    return "another user"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # as in containers
        return f"user {user}"


if __name__ == "__main__":  # before tools are made, which takes a quarter of an hour
    if found := refusal():
        sys.stderr.write(f"error: {found}\n")
    sys.exit(1 if found else 0)
