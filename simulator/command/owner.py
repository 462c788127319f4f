"""Restricts a state folder to one checkout and user, so that no other checkout changes its stacks.

A shell may still have `SIMULATOR_HOME` of another checkout.
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from simulator.host import files, paths

_MARK = "checkout"  # the file that names the owner
_IN_EVERY_CHECKOUT = Path("simulator", "__main__.py")  # all versions have this file


class Foreign(Exception):
    """The state belongs to another checkout. The message names the owner, and how to use this checkout's state."""


def claim() -> None:
    """Makes this checkout the owner of the state folder.

    Raises Foreign if another checkout owns the folder and still exists.
    """
    home = paths.home().resolve()
    mark = home / _MARK
    owner = Path(mark.read_text()) if mark.exists() else home.parent
    if home != paths.ROOT / ".simulator" and owner != paths.ROOT and (owner / _IN_EVERY_CHECKOUT).exists():
        raise Foreign(
            f"SIMULATOR_HOME={home} is the state of another checkout, {owner}. {paths.ROOT} may not change its "
            "stacks.\n"
            '  to use the state of this checkout: unset SIMULATOR_HOME && eval "$(make -s env)"\n'
            f"  to use the other checkout: cd {owner}"
        )
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace(mark, str(paths.ROOT))


def refusal() -> str | None:
    """Claims the state folder. Returns why this user or checkout may not use it, or None."""
    try:
        claim()
    except Foreign as error:
        return str(error)
    except PermissionError as error:
        return not_allowed(error)
    return None


def not_allowed(error: PermissionError) -> str:
    path = Path(error.filename or paths.home())
    return (
        f"{path}: {error.strerror}. Its owner is {_owner(path)}, and you are {_name(os.geteuid())}.\n"
        f"  fix: run the command as {_owner(path)}, or use another state: SIMULATOR_HOME=<folder> <command>"
    )


def _owner(path: Path) -> str:
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


if __name__ == "__main__":  # called before the tools are built, because that takes 15 minutes
    if found := refusal():
        sys.stderr.write(f"error: {found}\n")
    sys.exit(1 if found else 0)
