"""Every public verb, one function each.

The verb `report` is `make_report` in Python: `depthscope.report` is the room that draws, and a package cannot be both.
"""

from depthscope.api.planning import StudyInfo as StudyInfo
from depthscope.api.planning import costs as costs
from depthscope.api.planning import plan as plan
from depthscope.api.planning import studies as studies
from depthscope.api.reports import Report as Report
from depthscope.api.reports import make_report as make_report
from depthscope.api.reports import results as results
from depthscope.api.study import Status as Status
from depthscope.api.study import Watcher as Watcher
from depthscope.api.study import run as run
from depthscope.api.study import status as status
