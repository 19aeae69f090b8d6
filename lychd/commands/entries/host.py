"""The first hour, and the host's own commands: demo, init, serve, migrate, doctor, metrics."""

from typing import Final

from lychd.commands.entry import Entry, Needs, option

ENTRIES: Final = (
    Entry(
        "demo",
        "a whole archive on this machine, with a handbook in it",
        "demo.demo",
        (
            option("--remove", action="store_true", help="stop the demo and delete everything it made"),
            option("--no-serve", action="store_true", help="load and prove, then end"),
            option(
                "--model",
                choices=["stand-in", "minilm"],
                default="stand-in",
                help="what embeds: a stand-in without meaning (default), or the small model of the extra `models`",
            ),
            option("--port", type=int, metavar="N", help="serve on this port (default 8000, or the next free one)"),
        ),
        Needs.SETTINGS,
    ),
    Entry(
        "init",
        "migrate, switch the archive on, and make the first namespace, curator and token; safe to repeat",
        "host.init",
        (
            option("--namespace", metavar="KEY", default="notes", help="the first namespace (default notes)"),
            option("--owner", metavar="OWNER", default="owner", help="who owns it (default owner)"),
            option("--policy", metavar="REVISION", default="policy-1", help="its policy revision (default policy-1)"),
            option("--curator", metavar="NAME", default="curator", help="user and subject of the first curator"),
            option("--agent", metavar="SUBJECT", default="agent", help="subject of the first agent"),
            option("--ask-password", action="store_true", help="ask for the curator's password instead of making one"),
        ),
    ),
    Entry(
        "serve",
        "serve pages and API until Ctrl-C",
        "host.serve",
        (
            option("--host", default="127.0.0.1", help="the address to listen on (default 127.0.0.1)"),
            option("--port", type=int, metavar="N", help="the port (default 8000, or the next free one; 0: any)"),
            option("--workers", type=int, metavar="N", help="processes that answer (default LYCHD_WEB_PROCESSES, 1)"),
        ),
        embeds=True,
    ),
    Entry(
        "migrate",
        "bring the tables up to date, as their owner",
        "host.migrate",
        (
            option("app", nargs="?", help="one application only"),
            option("migration", nargs="?", help="and up or down to this migration"),
            option("--database", default="owner", help="the connection to migrate on (default owner)"),
            option("--no-input", action="store_true", help="ask nothing (it never does)"),
        ),
    ),
    Entry(
        "doctor",
        "check the whole installation, changing and starting nothing; exit 4 if anything is wrong",
        "host.doctor",
        (option("--deep", action="store_true", help="every posting and every receipt instead of a sample"),),
        # Not the database: what it is asked to judge is not started for it.
        Needs.SETTINGS,
    ),
    Entry("metrics", "the figures of the archive in Prometheus' text format", "host.metrics"),
)
