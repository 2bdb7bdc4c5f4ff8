"""Sphinx configuration: everything in the pages is local, so that they read the same without a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
# tables of command output are as wide as the pages
os.environ["COLUMNS"] = "96"

import public_names  # noqa: E402

import convexlaw  # noqa: E402

project = "convexlaw"
author = "The convexlaw developers"
project_copyright = author
release = version = convexlaw.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "command_help",
    "docstrings",
    "mathml",
]
exclude_patterns = ["_build", "README.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]
nitpicky = True
# a type in a signature or a base class of another project has no page here (intersphinx would need a network)
nitpick_ignore_regex = [("py:.*", r"(?!convexlaw\b)[\w.]+\.\w+"), ("py:class", r"[A-Za-z]\w*")]
default_role = "autolink"
highlight_language = "none"

autosummary_generate = True
autosummary_context = {"public_members": public_names.public_members}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
viewcode_line_numbers = True
toc_object_entries = False

html_theme = "alabaster"
html_title = f"convexlaw {release}"
html_static_path = ["_static"]
html_css_files = ["convexlaw.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_theme_options = {
    "description": "Convex theory for training runs and for high-dimensional selection",
    "fixed_sidebar": True,
    "sidebar_collapse": True,
    "show_powered_by": False,
    "page_width": "940px",
    "sidebar_width": "230px",
    "font_family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "head_font_family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "code_font_family": "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
    "code_font_size": "0.86em",
    "font_size": "16px",
    "link": "#0b5394",
    "link_hover": "#d55e00",
}

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "gallery")],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,
    "thumbnail_size": (400, 200),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "capture_repr": (),
    "doc_module": ("convexlaw",),
    "reference_url": {"convexlaw": None},
}
