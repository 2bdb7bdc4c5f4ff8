"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def _mathml(node: nodes.math | nodes.math_block, block: bool) -> str:
    """Bars are fences: without this a browser spaces them like operators."""
    text = latex2mathml.tex2mathml(node.astext(), as_block=block)
    return re.sub(r"<mo[^>]*>\|</mo>", '<mo lspace="0" rspace="0" stretchy="false">|</mo>', text)


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node, False))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{_mathml(node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
