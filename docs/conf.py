"""How Sphinx builds the site: `make docs` with the gallery run, `make docs-check` without."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

from hushfit._version import __version__  # noqa: E402
from hushfit.errors import InsecureNoiseWarning  # noqa: E402

# Examples of the gallery are seeded, and its first page says so.
warnings.filterwarnings("ignore", category=InsecureNoiseWarning)

project, author = "hushfit", "The hushfit developers"
copyright = author
version = release = __version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "public_names",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_ext", "README.md", "**/.ipynb_checkpoints"]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

numpydoc_show_class_members = False
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_mock_imports = ["nvflare"]

html_theme = "pydata_sphinx_theme"
html_title = "hushfit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages of wide tables get the room of the navigation.
_WIDE = ("benchmarks", "benchmarks-texts", "reproduction", "theory", "cli")
html_sidebars = {page: [] for page in ("index", *_WIDE)}
html_theme_options = {
    "logo": {"text": "hushfit"},
    "header_links_before_dropdown": 7,
    # The wide table gets the room of the list of headings.
    "secondary_sidebar_items": {"**": ["page-toc"], "understand/compare": []},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "gallery_order.GalleryOrder",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "thumbnail_size": (600, 400),
    "min_reported_time": 3600,  # how long the building machine took says nothing to a reader
    "write_computation_times": False,
    "remove_config_comments": True,
}
