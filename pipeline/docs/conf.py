"""Sphinx builds the site from here: ``sphinx-build -W -b html pipeline/docs DIRECTORY``."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from latex2mathml import converter

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))
# Kernels of the pages import the same package, and print no colours.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ["TTY_COMPATIBLE"] = "0"
os.environ["COLUMNS"] = "80"

# Cells of commands: what they print comes in one piece, errors too, with paths below the directory of the
# page, and the first command that fails is an error of the page.
os.environ["IPYTHONDIR"] = _ipython = tempfile.mkdtemp(prefix="docs-ipython-")
atexit.register(shutil.rmtree, _ipython, ignore_errors=True)
_startup = Path(_ipython) / "profile_default" / "startup"
_startup.mkdir(parents=True)
(_startup / "commands.py").write_text(
    """
import os, subprocess
from IPython.core.magic import register_cell_magic

@register_cell_magic
def bash(line, cell):
    done = subprocess.run(
        ["bash", "-e", "-c", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(done.stdout.replace(os.getcwd() + "/", ""), end="")
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}")
"""
)

import pages  # noqa: E402

from eigenscape.base.version import __version__  # noqa: E402

project = "eigenscape"
author = "The eigenscape developers"
project_copyright = "the eigenscape developers, BSD 3-Clause"
version = release = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "numpydoc",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
highlight_language = "none"
default_role = "code"
# Quotes of values are those of TOML.
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
myst_heading_anchors = 5

nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_show_tb = True
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Methods of scikit-learn's and pydantic's base classes are documented there.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "eigenscape"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}
# Pages without siblings have nothing to show there.
_ALONE = ("index", "installation", "tutorial", "coming-from", "troubleshooting", "changelog")
html_sidebars = {page: [] for page in _ALONE}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"


def _visit_math(self, node):
    self.body.append(converter.convert(node.astext()))
    raise pages.SkipNode


def _visit_displayed(self, node):
    # Wide formulas scroll on narrow screens, by the keyboard too.
    formula = converter.convert(node.astext(), display="block")
    self.body.append(
        f'<div class="displayed" role="group" aria-label="formula" tabindex="0">{formula}</div>'
    )
    raise pages.SkipNode


def _escape_bars(app, what, name, obj, options, lines):
    """Let |x| in a docstring be a norm, where reStructuredText takes it for a substitution."""
    lines[:] = [line if ">>>" in line else line.replace("|", r"\|") for line in lines]


def setup(app):
    """Formulas are MathML, which browsers draw without a script or a font from elsewhere."""
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_displayed, None))
    app.connect("source-read", pages.fill)
    app.connect("autodoc-process-docstring", _escape_bars)
    app.connect("doctree-read", pages.show_commands)
    return {"parallel_read_safe": True}
