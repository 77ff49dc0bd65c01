"""The policies of the replay in help texts."""

from __future__ import annotations

import click


class CommandOfPolicies(click.Command):
    """A command whose help ends with the policies and what each serves next."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the policies as their registry has them."""
        from shapleyprio.replay.policies import POLICIES
        from shapleyprio.replay.utilities import UTILITIES

        with formatter.section("Policies, and which organization each serves next"):
            formatter.write_dl([(name, policy.decision) for name, policy in POLICIES.items()])
        with formatter.section("Policies besides"):
            formatter.write_dl(
                [
                    *((f"ref:{name}", "ref for this utility") for name in UTILITIES),
                    ("ref:module:function", "ref for a utility of your own, in Python"),
                    ("module:function", "the order that your own function in Python returns"),
                ]
            )
        super().format_epilog(ctx, formatter)
