"""The migrations that somebody's archive may have been made by, with their digests: none of them is ever edited.

`landed_migrations.txt` has one line for each, and lines are only ever added, at the end. A migration that has just
been written is not in it and may still change until it is released; then `make landed` adds it, as a step of the
release. What has to be otherwise from then on is a new migration, as archive 0009 is for those that were edited before
there was a list.
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("landed_migrations.txt")
APPLICATIONS = ("archive", "semantic")


def listed() -> dict[str, str]:
    """What is in the list: the digest of each landed migration by its path, in order."""
    lines = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines())
    return {path: digest for digest, path in lines}


def there() -> dict[str, str]:
    """What is in the folders of the applications."""
    return {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for application in APPLICATIONS
        for path in sorted((ROOT / application / "migrations").glob("0*.py"))
    }


def main() -> None:
    """Add what is there and not in the list."""
    known = listed()
    with LIST.open("a", encoding="utf-8") as file:
        file.writelines(f"{digest}  {path}\n" for path, digest in there().items() if path not in known)


if __name__ == "__main__":
    main()
