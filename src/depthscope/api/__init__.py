"""Every public verb, one function each."""

from depthscope.api.report import Report as Report
from depthscope.api.report import report as report
from depthscope.api.report import results as results
from depthscope.api.study import Status as Status
from depthscope.api.study import StudyInfo as StudyInfo
from depthscope.api.study import Watcher as Watcher
from depthscope.api.study import costs as costs
from depthscope.api.study import plan as plan
from depthscope.api.study import run as run
from depthscope.api.study import status as status
from depthscope.api.study import studies as studies
