"""BibTeX of just what a study used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from depthscope.core.errors import UserError, unknown_name
from depthscope.study.catalog import CATALOG
from depthscope.study.expand import Plan


def _entry(kind: str, key: str, **fields: str) -> str:
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
    return f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}"


def _arxiv(key: str, title: str, author: str, year: str, eprint: str, **more: str) -> str:
    kind = "inproceedings" if "booktitle" in more else "misc"
    return _entry(kind, key, title=title, author=author, **more, year=year, eprint=eprint, archivePrefix="arXiv")


BIBTEX: Mapping[str, str] = MappingProxyType(
    {
        "he2016resnet": _arxiv(
            "he2016resnet",
            "Deep Residual Learning for Image Recognition",
            "He, Kaiming and Zhang, Xiangyu and Ren, Shaoqing and Sun, Jian",
            "2016",
            "1512.03385",
            booktitle="IEEE Conference on Computer Vision and Pattern Recognition (CVPR)",
        ),
        "he2016identity": _arxiv(
            "he2016identity",
            "Identity Mappings in Deep Residual Networks",
            "He, Kaiming and Zhang, Xiangyu and Ren, Shaoqing and Sun, Jian",
            "2016",
            "1603.05027",
            booktitle="European Conference on Computer Vision (ECCV)",
        ),
        "he2015delving": _arxiv(
            "he2015delving",
            "Delving Deep into Rectifiers: Surpassing Human-Level Performance on {ImageNet} Classification",
            "He, Kaiming and Zhang, Xiangyu and Ren, Shaoqing and Sun, Jian",
            "2015",
            "1502.01852",
            booktitle="IEEE International Conference on Computer Vision (ICCV)",
        ),
        "ioffe2015batchnorm": _arxiv(
            "ioffe2015batchnorm",
            "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift",
            "Ioffe, Sergey and Szegedy, Christian",
            "2015",
            "1502.03167",
            booktitle="International Conference on Machine Learning (ICML)",
        ),
        "saxe2014exact": _arxiv(
            "saxe2014exact",
            "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks",
            "Saxe, Andrew M. and McClelland, James L. and Ganguli, Surya",
            "2014",
            "1312.6120",
            booktitle="International Conference on Learning Representations (ICLR)",
        ),
        "krizhevsky2009cifar": _entry(
            "techreport",
            "krizhevsky2009cifar",
            title="Learning Multiple Layers of Features from Tiny Images",
            author="Krizhevsky, Alex",
            institution="University of Toronto",
            year="2009",
        ),
        "kingma2015adam": _arxiv(
            "kingma2015adam",
            "Adam: A Method for Stochastic Optimization",
            "Kingma, Diederik P. and Ba, Jimmy",
            "2015",
            "1412.6980",
            booktitle="International Conference on Learning Representations (ICLR)",
        ),
        "paszke2019pytorch": _arxiv(
            "paszke2019pytorch",
            "{PyTorch}: An Imperative Style, High-Performance Deep Learning Library",
            "Paszke, Adam and Gross, Sam and Massa, Francisco and Lerer, Adam and Bradbury, James and Chanan, Gregory "
            "and Killeen, Trevor and Lin, Zeming and Gimelshein, Natalia and Antiga, Luca and Desmaison, Alban and "
            'K{\\"o}pf, Andreas and Yang, Edward and DeVito, Zachary and Raison, Martin and Tejani, Alykhan and '
            "Chilamkurthy, Sasank and Steiner, Benoit and Fang, Lu and Bai, Junjie and Chintala, Soumith",
            "2019",
            "1912.01703",
            booktitle="Advances in Neural Information Processing Systems (NeurIPS)",
        ),
        "goyal2017accurate": _arxiv(
            "goyal2017accurate",
            "Accurate, Large Minibatch {SGD}: Training {ImageNet} in 1 Hour",
            "Goyal, Priya and Doll{\\'a}r, Piotr and Girshick, Ross and Noordhuis, Pieter and Wesolowski, Lukasz "
            "and Kyrola, Aapo and Tulloch, Andrew and Jia, Yangqing and He, Kaiming",
            "2017",
            "1706.02677",
        ),
        "yang2019meanfield": _arxiv(
            "yang2019meanfield",
            "A Mean Field Theory of Batch Normalization",
            "Yang, Greg and Pennington, Jeffrey and Rao, Vinay and Sohl-Dickstein, Jascha and Schoenholz, Samuel S.",
            "2019",
            "1902.08129",
            booktitle="International Conference on Learning Representations (ICLR)",
        ),
        "schoenholz2017deep": _arxiv(
            "schoenholz2017deep",
            "Deep Information Propagation",
            "Schoenholz, Samuel S. and Gilmer, Justin and Ganguli, Surya and Sohl-Dickstein, Jascha",
            "2017",
            "1611.01232",
            booktitle="International Conference on Learning Representations (ICLR)",
        ),
        "poole2016exponential": _arxiv(
            "poole2016exponential",
            "Exponential expressivity in deep neural networks through transient chaos",
            "Poole, Ben and Lahiri, Subhaneil and Raghu, Maithra and Sohl-Dickstein, Jascha and Ganguli, Surya",
            "2016",
            "1606.05340",
            booktitle="Advances in Neural Information Processing Systems (NeurIPS)",
        ),
    }
)
"""key -> BibTeX entry."""


def citations(plan: Plan) -> tuple[str, ...]:
    """Keys of what the plan's runs use, then those that the study names; each once, in the order of use."""
    used: dict[str, None] = {}
    for spec in plan.runs.values():
        for kind, names in CATALOG.items():
            chosen = spec.measures if kind == "measure" else (getattr(spec, kind),)
            for name in chosen:
                if name in names:  # user code has no entry
                    used.update(dict.fromkeys(names[name].sources))
    used.update(dict.fromkeys(plan.study.sources))
    return tuple(used)


def bibtex(keys: Iterable[str]) -> str:
    """The entries of these keys, a blank line between them.

    Raises:
        UserError: a key that the bibliography does not hold.
    """
    keys = tuple(keys)
    for key in keys:
        if key not in BIBTEX:
            raise UserError(unknown_name("source", key, BIBTEX))
    return "\n\n".join(BIBTEX[key] for key in keys)
