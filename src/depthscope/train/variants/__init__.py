"""Train variants of the user's own in step: the same seeds, the same batches, the same draws of each update."""

from depthscope.train.variants.loop import Trained as Trained
from depthscope.train.variants.loop import train_variants as train_variants
