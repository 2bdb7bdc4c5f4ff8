"""Directive ``command-help``: what every command of convexlaw prints for ``--help``, a section each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def _commands(command: Any, context: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (names, help) of ``command`` and of those below it; groups have no page of their own."""
    below = getattr(command, "commands", {})
    if not names or not below:
        yield names, command.get_help(context)
    for name, child in sorted(below.items()):
        inner = command.context_class(child, info_name=name, parent=context)
        inner.terminal_width = inner.max_content_width = 92
        yield from _commands(child, inner, (*names, name))


class CommandHelp(SphinxDirective):
    """``.. command-help::`` shows the help of all commands."""

    def run(self) -> list[nodes.Node]:
        """Return the help of the program, then a section for each command."""
        import typer

        from convexlaw.cli import app

        top = typer.main.get_command(app)
        context = top.make_context("convexlaw", ["--help"], resilient_parsing=True)
        context.terminal_width = context.max_content_width = 92
        out: list[nodes.Node] = []
        for names, text in _commands(top, context, ()):
            shown = " ".join(["$ convexlaw", *names, "--help"])
            block = nodes.literal_block(text, f"{shown}\n{text}", language="none")
            if not names:
                out.append(block)
                continue
            section = nodes.section(ids=["convexlaw-" + "-".join(names)])
            section += nodes.title(text=" ".join(names))
            section += block
            out.append(section)
        return out


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
