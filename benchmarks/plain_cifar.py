"""The plain reference for CIFAR-10: the network, the augmentation and the loop as a textbook writes them.

Float32, channels first, one image at a time in the loader, one parameter group; nothing is done for speed, and nothing
against it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
STD = torch.tensor([0.2470, 0.2435, 0.2616]).view(3, 1, 1)


class Block(nn.Module):
    """Two 3x3 convolutions, and option A around them."""

    def __init__(self, num_in: int, num_out: int, stride: int, residual: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_in, num_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(num_out)
        self.conv2 = nn.Conv2d(num_out, num_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(num_out)
        self.stride, self.extra, self.residual = stride, num_out - num_in, residual

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.residual:
            out = out + F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))
        return F.relu(out)


class PlainResNet(nn.Module):
    """He et al.'s network for CIFAR-10."""

    def __init__(self, depth: int, width: int = 16, *, residual: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        num_in = width
        for stage in range(3):
            for index in range((depth - 2) // 6):
                num_out = width * 2**stage
                blocks.append(Block(num_in, num_out, 2 if stage and not index else 1, residual))
                num_in = num_out
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(num_in, 10)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn(self.conv(x)))
        logits: Tensor = self.head(F.adaptive_avg_pool2d(self.blocks(out), 1).flatten(1))
        return logits


def augmented(image_HWC: Tensor, padding: int, generator: torch.Generator) -> Tensor:
    """One image of bytes as the loader gives it: scaled, normalised, padded, cropped, mirrored or not."""
    image = image_HWC.permute(2, 0, 1).float() / 255
    image = F.pad((image - MEAN) / STD, (padding,) * 4)
    top, left = torch.randint(0, 2 * padding + 1, (2,), generator=generator).tolist()
    size = image_HWC.shape[0]
    image = image[:, top : top + size, left : left + size]
    return image.flip(-1) if torch.rand((), generator=generator) < 0.5 else image


def batch_of(images: Tensor, chosen: Tensor, padding: int, generator: torch.Generator) -> Tensor:
    """The chosen images, one by one."""
    return torch.stack([augmented(images[index], padding, generator) for index in chosen.tolist()])


class Training:
    """The loop: each `step` takes the next batch of an epoch's order and makes one update."""

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        *,
        depth: int,
        width: int = 16,
        residual: bool = True,
        padding: int = 4,
        batch_size: int = 128,
        lr: float = 0.1,
    ) -> None:
        torch.manual_seed(0)
        self.images, self.labels, self.padding, self.batch_size = images, labels, padding, batch_size
        self.model = PlainResNet(depth, width, residual=residual)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr, momentum=0.9, weight_decay=1e-4)
        self.generator = torch.Generator().manual_seed(0)
        self.left = torch.empty(0, dtype=torch.int64)

    def step(self) -> float:
        if not len(self.left):
            self.left = torch.randperm(len(self.images), generator=self.generator)
        chosen, self.left = self.left[: self.batch_size], self.left[self.batch_size :]
        x = batch_of(self.images, chosen, self.padding, self.generator)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), self.labels[chosen])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def evaluate(self, images: Tensor, labels: Tensor, batch_size: int = 500) -> float:
        """Share of images that are told rightly, without augmentation."""
        self.model.eval()
        hits = 0
        with torch.no_grad():
            for begin in range(0, len(images), batch_size):
                some = images[begin : begin + batch_size]
                x = torch.stack([(each.permute(2, 0, 1).float() / 255 - MEAN) / STD for each in some])
                hits += int((self.model(x).argmax(1) == labels[begin : begin + batch_size]).sum())
        self.model.train()
        return hits / len(images)
