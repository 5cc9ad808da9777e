"""What a profile of any model means: expected values, the rate with depth, the verdict and its cause."""

from depthscope.analysis.model.diagnose import diagnose as diagnose
from depthscope.analysis.model.expected import Expectation as Expectation
from depthscope.analysis.model.expected import Expected as Expected
from depthscope.analysis.model.expected import expected as expected
from depthscope.analysis.model.rate import Cliff as Cliff
from depthscope.analysis.model.rate import Rate as Rate
from depthscope.analysis.model.rate import cliff_of as cliff_of
from depthscope.analysis.model.rate import rate_of as rate_of
from depthscope.analysis.model.verdict import CAUSES as CAUSES
from depthscope.analysis.model.verdict import VERDICTS as VERDICTS
from depthscope.analysis.model.verdict import Fault as Fault
from depthscope.analysis.model.verdict import ModelDiagnosis as ModelDiagnosis
from depthscope.analysis.model.verdict import Verdict as Verdict
