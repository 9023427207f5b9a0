"""A page in the browser for the command line: table, plan, fit, budget, models.

The studio has no logic of its own. Tables are drafted and models fitted by ``hushfit`` in processes
of their own, one after the other; pages show what ledgers, schemas and model files say. Needs
``pip install hushfit[studio]``.

Settings     Where the studio works, and who may use it
doorway      A file that leads a browser to the studio
make_app     The web application
serve        Serve it until it is interrupted
"""

from hushfit.studio._app import make_app
from hushfit.studio._serve import doorway, serve
from hushfit.studio._settings import Settings

__all__ = ["Settings", "doorway", "make_app", "serve"]
