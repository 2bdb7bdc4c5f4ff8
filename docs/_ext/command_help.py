"""Directive ``command-help``: the help of a command of convexlaw, printed by the command itself."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class CommandHelp(SphinxDirective):
    """``.. command-help:: fit curve`` shows what ``convexlaw fit curve --help`` prints."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return one literal block."""
        import typer

        from convexlaw.cli import app

        names = self.arguments[0].split() if self.arguments else []
        command = typer.main.get_command(app)
        context = command.make_context("convexlaw", ["--help"], resilient_parsing=True)
        for name in names:
            found = getattr(command, "commands", {}).get(name)
            if found is None:
                raise self.error(f"convexlaw has no command {' '.join(names)}")
            command = found
            context = command.context_class(command, info_name=name, parent=context)
        context.terminal_width = context.max_content_width = 92
        text = command.get_help(context)
        shown = " ".join(["$ convexlaw", *names, "--help"])
        return [nodes.literal_block(text, f"{shown}\n{text}", language="none")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
