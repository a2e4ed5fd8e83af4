"""Sphinx's settings: pages that open from disk, and that fail at the first warning."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))

from regard.version import __version__  # noqa: E402 - after the path is set

project = "regard"
author = "the authors of regard"
copyright = "the authors of regard; Apache-2.0"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "gathered",
    "offline_math",
    "lesson_pages",
    "reference",
]
exclude_patterns = ["_build", "results", "show/README.md"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# A link to a page of the repository that is no page of the site goes to the site's own copy.
suppress_warnings = ["myst.header"]

autodoc_typehints = "none"  # the docstrings have the shapes, which annotations show badly
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"regard {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "offline"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}
