"""`zelda study`: compare ways of training over several seeds, with the statistics that such a claim needs.

`app` is the command; `trial` is one run of one arm, `stats` the comparison, `page` what people read.
"""

from cli.study.command import app

__all__ = ["app"]
