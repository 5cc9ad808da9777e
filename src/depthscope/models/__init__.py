"""Keyword arguments in, `torch.nn.Module` out: families of networks, their shortcuts and initialisers.

| what | where |
| --- | --- |
| families | `convnet.cifar_resnet`, `preact.preact_resnet`, `densenet.cifar_densenet`, `nfnet.cifar_nfnet`, `mlp.mlp` |
| shortcuts, by name | `shortcuts.make.SHORTCUTS`; a function each in `shortcuts.named` |
| normalisers and activations, by name | `layers.make.NORMS`, `layers.make.ACTIVATIONS` |
| initialisers, by name | `init.INITIALISERS`, and `torch` |
| a family's network with its weights drawn | `init.build` |
| what its parameters ask of an optimiser | `hints.parameter_groups` |

A family alone makes the layers, with torch's default weights; a repair that is (in part) an initialisation, as Fixup
is, exists once `init.build` has drawn them.
"""
