"""Which namespaces are served, and the index of words in each."""

import argparse
from typing import Final

from lychd.commands.entry import ACTING, NAMESPACE, Entry, option

ENTRIES: Final = (
    Entry(
        "namespace configure",
        "serve a namespace, or change how",
        "namespaces.configure",
        (
            option("key", metavar="KEY", help="the namespace"),
            option("--owner", required=True, help="who owns what is in it"),
            option(
                "--policy", required=True, metavar="REVISION", help="the policy revision that grants are given under"
            ),
            option(
                "--text-configuration",
                metavar="NAME",
                help="how words are cut: simple, english, german … (default: as it is, simple at first)",
            ),
            option(
                "--second-person",
                action=argparse.BooleanOptionalAction,
                help="whoever takes a note in cannot promote it (default: as it is, no at first)",
            ),
            option(
                "--generation",
                metavar="REFERENCE|none|default",
                help="what is embedded here: a generation of its own, none, or the deployment's (default: as it is)",
            ),
        ),
    ),
    Entry(
        "interface",
        "say whether what the admission engine admits by default asks for this profile",
        "namespaces.interface",
        ACTING,
        rights=("inspect_interface",),
    ),
    Entry("namespace list", "list configured namespaces", "namespaces.listed"),
    Entry(
        "namespace migrate",
        "bring retained notes under the binding that is configured now",
        "namespaces.migrate",
        (
            option("--reason", required=True, help="why, for the record"),
            option(
                "--carry-grants", action="store_true", help="give today's grants again under the new policy revision"
            ),
            *ACTING,
        ),
        rights=("migrate_binding",),
    ),
    Entry(
        "namespace disable",
        "stop serving a namespace; everything in it stays",
        "namespaces.disable",
        (option("key", metavar="KEY", help="the namespace"),),
    ),
    Entry(
        "lexical rebuild",
        "cut the promoted notes of a namespace into words again",
        "namespaces.rebuild",
        (NAMESPACE, option("--all", action="store_true", help="every namespace in which recall waits for it")),
    ),
)
