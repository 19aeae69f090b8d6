"""Who acts, what they may, and the tokens they act with."""

from typing import Final

from archive import limits
from lychd.commands.entry import NAMESPACE, Entry, moment, option

ENTRIES: Final = (
    Entry(
        "principal add",
        "make a principal, or link one to a user",
        "authority.add_principal",
        (
            option("subject", metavar="SUBJECT", help="the stable name; it is never given to another"),
            option("--user", metavar="USERNAME", help="the user who signs in as this principal"),
        ),
    ),
    Entry("principal list", "list principals", "authority.list_principals"),
    Entry(
        "principal disable",
        "refuse a principal everything",
        "authority.disable_principal",
        (option("subject", metavar="SUBJECT", help="the principal"),),
    ),
    Entry(
        "principal enable",
        "let a disabled principal act again",
        "authority.enable_principal",
        (option("subject", metavar="SUBJECT", help="the principal"),),
    ),
    Entry(
        "grant give",
        "allow roles or single actions",
        "authority.give_grant",
        (
            option("subject", metavar="SUBJECT", help="the principal"),
            option("actions", nargs="+", metavar="ROLE|ACTION", help="writer, recaller, curator, inspector, operator"),
            option("--until", type=moment, metavar="TIME", help="until then, such as 2031-05-01T12:00:00+02:00"),
            NAMESPACE,
        ),
    ),
    Entry(
        "grant list",
        "list grants that hold now",
        "authority.list_grants",
        (
            option("--subject", metavar="SUBJECT", help="only of this principal"),
            option("--namespace", metavar="KEY", help="only in this namespace"),
        ),
    ),
    Entry(
        "grant withdraw",
        "end roles or single actions now",
        "authority.withdraw_grant",
        (
            option("subject", metavar="SUBJECT", help="the principal"),
            option("actions", nargs="+", metavar="ROLE|ACTION", help="what is withdrawn"),
            NAMESPACE,
        ),
    ),
    Entry(
        "token create",
        "make a token; its secret is shown once",
        "authority.create_token",
        (
            option("subject", metavar="SUBJECT", help="the principal it stands for"),
            option(
                "--namespace",
                action="append",
                default=[],
                dest="namespaces",
                metavar="KEY",
                help="a namespace it is for, as often as needed (or LYCHD_NAMESPACE; the only one served)",
            ),
            option(
                "--all-namespaces",
                action="store_true",
                help="every namespace in which the principal holds a grant, now or later",
            ),
            option("--name", default="", help="what it is for, to tell it from others"),
            option(
                "--days",
                type=int,
                default=limits.TOKEN_LIFETIME_DAYS_DEFAULT,
                metavar="N",
                help=f"how long it lasts (default 90, at most {limits.TOKEN_LIFETIME_DAYS_MAX})",
            ),
        ),
    ),
    Entry(
        "token list",
        "list tokens, never their secrets",
        "authority.list_tokens",
        (option("--subject", metavar="SUBJECT", help="only of this principal"),),
    ),
    Entry(
        "token rotate",
        "make a successor; the old one goes on a little",
        "authority.rotate_token",
        (
            option("prefix", metavar="PREFIX", help="the beginning of the token, as the list shows it"),
            option(
                "--overlap",
                type=int,
                default=limits.TOKEN_ROTATION_OVERLAP_SECONDS_DEFAULT,
                metavar="SECONDS",
                help="how long the old one goes on (default 3600)",
            ),
        ),
    ),
    Entry(
        "token revoke",
        "end a token now",
        "authority.revoke_token",
        (option("prefix", metavar="PREFIX", help="the beginning of the token, as the list shows it"),),
    ),
)
