"""Every public verb, one function each.

The verb `report` is `make_report` in Python: `depthscope.report` is the room that draws, and a package cannot be both.
"""

from depthscope.api.by_name import check_verdicts as check_verdicts
from depthscope.api.by_name import compare_named as compare_named
from depthscope.api.by_name import probe_named as probe_named
from depthscope.api.callbacks import lightning_callback as lightning_callback
from depthscope.api.callbacks import trainer_callback as trainer_callback
from depthscope.api.compare import Comparison as Comparison
from depthscope.api.compare import compare as compare
from depthscope.api.landscape import landscape as landscape
from depthscope.api.model import Checkup as Checkup
from depthscope.api.model import probe as probe
from depthscope.api.planning import StudyInfo as StudyInfo
from depthscope.api.planning import calibrate as calibrate
from depthscope.api.planning import costs as costs
from depthscope.api.planning import plan as plan
from depthscope.api.planning import studies as studies
from depthscope.api.reports import Report as Report
from depthscope.api.reports import make_report as make_report
from depthscope.api.reports import results as results
from depthscope.api.status import Running as Running
from depthscope.api.status import Status as Status
from depthscope.api.status import status as status
from depthscope.api.study import Watcher as Watcher
from depthscope.api.study import run as run
from depthscope.api.surface import Landscape as Landscape
from depthscope.api.tuning import TuneResult as TuneResult
from depthscope.api.tuning import tune as tune
from depthscope.api.watch import Watch as Watch
from depthscope.api.watch import watch as watch
from depthscope.execute.tell import MapProgress as MapProgress
from depthscope.record.events import DoneElsewhere as DoneElsewhere
from depthscope.record.events import Ended as Ended
from depthscope.record.events import MapNews as MapNews
from depthscope.record.events import News as News
from depthscope.record.events import Progress as Progress
from depthscope.record.events import Resumed as Resumed
from depthscope.record.events import Retried as Retried
from depthscope.record.events import Started as Started
from depthscope.study.expand import Cell as Cell
from depthscope.study.expand import Plan as Plan
from depthscope.study.halves import half_repairs as half_repairs
from depthscope.study.outline import outlines as outlines
from depthscope.study.schema import study_schema as study_schema
