from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.data.batches import Augmentation, augmentation, augmentation_digest, order, order_digest


def apply_naive(x: NDArray[Any], drawn: Augmentation, padding: int) -> NDArray[Any]:
    """Pad with zeros, crop, mirror: one pixel at a time, by the definition in `batches`."""
    num, channels, height, width = x.shape
    out = np.zeros_like(x)
    for n in range(num):
        for row in range(height):
            for column in range(width):
                source_row = row + int(drawn.dy[n]) - padding
                source_column = (width - 1 - column if drawn.flip[n] else column) + int(drawn.dx[n]) - padding
                if 0 <= source_row < height and 0 <= source_column < width:
                    for channel in range(channels):
                        out[n, channel, row, column] = x[n, channel, source_row, source_column]
    return out


def hand_made(dy: int, dx: int, flip: bool) -> Augmentation:
    return Augmentation(np.array([dy]), np.array([dx]), np.array([flip]))


IMAGE = np.random.default_rng(0).integers(1, 256, size=(1, 3, 5, 7), dtype=np.uint8)


def test_the_middle_window_is_the_image_itself() -> None:
    np.testing.assert_array_equal(apply_naive(IMAGE, hand_made(2, 2, False), 2), IMAGE)


def test_the_flip_is_horizontal() -> None:
    # Pillow says what left and right are.
    picture = Image.fromarray(IMAGE[0].transpose(1, 2, 0)).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    flipped = apply_naive(IMAGE, hand_made(2, 2, True), 2)
    np.testing.assert_array_equal(flipped[0].transpose(1, 2, 0), np.asarray(picture))
    np.testing.assert_array_equal(flipped, IMAGE[:, :, :, ::-1])


@pytest.mark.parametrize(("dy", "dx"), [(0, 0), (0, 4), (4, 0), (1, 3)])
@pytest.mark.parametrize("flip", [False, True])
def test_the_window_is_cut_out_of_the_padded_image_and_then_mirrored(dy: int, dx: int, flip: bool) -> None:
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (2, 2), (2, 2)))
    window = padded[:, :, dy : dy + 5, dx : dx + 7]
    np.testing.assert_array_equal(
        apply_naive(IMAGE, hand_made(dy, dx, flip), 2), window[:, :, :, ::-1] if flip else window
    )


@pytest.mark.parametrize(("padding", "limit"), [(4, 124.8), (2, 51.2)])
def test_crops_are_uniform_over_all_windows(padding: int, limit: float) -> None:
    # `limit`: .999 quantile of chi-square with (2p+1)^2 - 1 degrees of freedom (80 and 24).
    side = 2 * padding + 1
    drawn = augmentation(0, 0, 50_000, padding)
    assert drawn.dy.min() == drawn.dx.min() == 0
    assert drawn.dy.max() == drawn.dx.max() == 2 * padding
    counts = np.bincount(drawn.dy * side + drawn.dx, minlength=side * side)
    expected = 50_000 / side**2
    assert ((counts - expected) ** 2 / expected).sum() < limit


def test_one_image_in_two_is_flipped_whatever_its_crop() -> None:
    drawn = augmentation(0, 0, 50_000, 4)
    sigma = np.sqrt(0.25 / 50_000)
    assert abs(drawn.flip.mean() - 0.5) < 4 * sigma
    for offset in (drawn.dy, drawn.dx):
        assert abs(np.corrcoef(drawn.flip, offset)[0, 1]) < 4 / np.sqrt(50_000)


def test_types_and_shapes() -> None:
    drawn = augmentation(1, 2, 10, 4)
    assert [part.shape for part in drawn] == [(10,)] * 3
    assert [part.dtype for part in drawn] == [np.int64, np.int64, np.bool_]
    assert order(1, 2, 10).dtype == np.int64


def test_no_padding_still_flips() -> None:
    drawn = augmentation(0, 0, 1000, 0)
    assert not drawn.dy.any()
    assert not drawn.dx.any()
    assert 400 < drawn.flip.sum() < 600


def test_flips_do_not_depend_on_the_padding() -> None:
    np.testing.assert_array_equal(augmentation(0, 0, 100, 2).flip, augmentation(0, 0, 100, 4).flip)


def test_a_negative_padding_is_refused() -> None:
    with pytest.raises(UserError, match=r"^padding: wanted an integer of 0 or more, got -1\.$"):
        augmentation(0, 0, 10, -1)


def test_order_is_the_named_stream_and_visits_each_example_once() -> None:
    drawn = order(3, 7, 1000)
    np.testing.assert_array_equal(np.sort(drawn), np.arange(1000))
    np.testing.assert_array_equal(drawn, stream(3, "order", 7).permutation(1000))


def test_draws_are_repeatable_and_change_with_seed_and_epoch() -> None:
    draws = {(seed, epoch): order(seed, epoch, 100).tobytes() for seed in (0, 1) for epoch in (0, 1)}
    assert len(set(draws.values())) == 4
    assert order(1, 1, 100).tobytes() == draws[1, 1]
    flips = {(seed, epoch): augmentation(seed, epoch, 100, 4).flip.tobytes() for seed in (0, 1) for epoch in (0, 1)}
    assert len(set(flips.values())) == 4


def test_digests_see_every_epoch_and_every_part() -> None:
    orders = {order_digest(seed, epochs, n) for seed, epochs, n in [(0, 2, 50), (1, 2, 50), (0, 3, 50), (0, 2, 51)]}
    assert len(orders) == 4
    crops = {augmentation_digest(*each) for each in [(0, 2, 50, 4), (1, 2, 50, 4), (0, 3, 50, 4), (0, 2, 50, 2)]}
    assert len(crops) == 4
    assert order_digest(0, 2, 50) in orders
    assert augmentation_digest(0, 2, 50, 4) in crops


def test_draws_are_the_ones_of_the_first_release() -> None:
    # Records of old runs name these; a change makes their arms no longer comparable with new ones.
    assert order(0, 0, 8).tolist() == [5, 4, 6, 7, 3, 1, 2, 0]
    assert [part.tolist() for part in augmentation(0, 0, 4, 4)] == [
        [5, 8, 0, 0],
        [4, 7, 2, 4],
        [False, False, True, True],
    ]
