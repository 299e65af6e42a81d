"""`python3 -m nnlab ...`: works in a bare clone, before anything is installed.

An older Python can read this file, though not the rest of the package, and so gets an explanation.
"""

import sys


def refusal(version: "tuple[object, ...]", executable: str) -> "str | None":
    """Why this Python cannot run nnlab and what to do, or None where it can."""
    if tuple(version[:2]) >= (3, 11):
        return None
    return (
        f"nnlab needs Python 3.11 or newer; this is Python {version[0]}.{version[1]} at {executable}.\n"
        "Install a newer one (from python.org, or with the package manager of your system) and start it by its name, "
        "for example: python3.13 -m nnlab lab"
    )


if __name__ == "__main__":
    reason = refusal(sys.version_info, sys.executable)
    if reason:
        sys.exit(reason)
    from nnlab.bootstrap.handover import hand_over
    from nnlab.cli import main

    hand_over(sys.argv[1:])
    sys.exit(main())
