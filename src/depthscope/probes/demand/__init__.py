"""Measurements on demand, each with its cost told before it runs.

| measurement | call | cost |
| --- | --- | --- |
| Jacobian spectra and distance to the identity, of blocks in a model | `block_spectra` | `jacobian_cost` |
| the same of one function or module | `spectrum` | |
| effective rank of the representation by depth | `rank_reducer` | `rank_cost` |
| dead and saturated units, beside what chance gives | `unit_reducer` | `units_cost` |
| the gradient's direction against float64 | `gradient_trust` | `trust_cost` |

The reducers are called by `measure.listener.Recorder` at each boundary of a followed pass.
"""

from depthscope.probes.demand.between import BlockSpectra as BlockSpectra
from depthscope.probes.demand.between import block_spectra as block_spectra
from depthscope.probes.demand.between import cost as jacobian_cost
from depthscope.probes.demand.cost import Cost as Cost
from depthscope.probes.demand.jacobian import spectrum as spectrum
from depthscope.probes.demand.rank import cost as rank_cost
from depthscope.probes.demand.rank import effective_rank as effective_rank
from depthscope.probes.demand.reducers import SampleCounter as SampleCounter
from depthscope.probes.demand.reducers import rank_reducer as rank_reducer
from depthscope.probes.demand.reducers import unit_reducer as unit_reducer
from depthscope.probes.demand.silent import expected_silent as expected_silent
from depthscope.probes.demand.spectra import Spectrum as Spectrum
from depthscope.probes.demand.trust import Trust as Trust
from depthscope.probes.demand.trust import cost as trust_cost
from depthscope.probes.demand.trust import gradient_trust as gradient_trust
from depthscope.probes.demand.units import cost as units_cost
from depthscope.probes.demand.units import too_few as too_few

__all__ = [
    "BlockSpectra",
    "Cost",
    "SampleCounter",
    "Spectrum",
    "Trust",
    "block_spectra",
    "effective_rank",
    "expected_silent",
    "gradient_trust",
    "jacobian_cost",
    "rank_cost",
    "rank_reducer",
    "spectrum",
    "too_few",
    "trust_cost",
    "unit_reducer",
    "units_cost",
]
