"""What goes around a block's branch, and how the two are joined; this face is what a shortcut of one's own needs."""

from depthscope.models.hints import ParamHint as ParamHint
from depthscope.models.shortcuts.joins import Add as Add
from depthscope.models.shortcuts.joins import Join as Join
from depthscope.models.shortcuts.make import make_shortcut as make_shortcut
from depthscope.models.shortcuts.shortcut import Shortcut as Shortcut
from depthscope.models.shortcuts.skips import unweighted as unweighted
from depthscope.models.site import Site as Site
