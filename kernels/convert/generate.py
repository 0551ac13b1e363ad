"""Random and regular edges, each a function of the seed and of its own index alone.

So any thread can make any batch, and nothing is kept between batches. Labels and stubs are shuffled
by a Feistel network on the next power of two, repeated until the result is inside the range; this
is a permutation that needs no memory. A permutation is one array of uint64: the number of labels,
the bits of the low half, the masks of the low and the high half, and an even number of round keys;
with no round keys it is the identity.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import GOLDEN, HALF_BITS, LOW_HALF, ONE

Ids = NDArray[np.uint64]

_U64 = types.uint64
_IDS = types.Array(types.uint64, 1, "C")
_WORD = (1 << 64) - 1
_NUM_ROUNDS = 6
_FIRST_ROUND = 4

# The multipliers of SplitMix64 (Steele, Lea and Flood 2014), whose increment is GOLDEN.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TWO = np.uint64(2)


@njit(inline="always")
def mix(z: np.uint64) -> np.uint64:
    """Scramble a word so that every input bit reaches every output bit."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def draw(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return the random word number ``counter`` of the stream ``key``."""
    word: np.uint64 = mix(key + counter * GOLDEN)
    return word


@njit(inline="always")
def _high_product(x: np.uint64, y: np.uint64) -> np.uint64:
    """Upper word of a product: x random gives a uniform number below y."""
    x_low, x_high = x & LOW_HALF, x >> HALF_BITS
    y_low, y_high = y & LOW_HALF, y >> HALF_BITS
    middle = x_high * y_low + ((x_low * y_low) >> HALF_BITS)
    other = x_low * y_high + (middle & LOW_HALF)
    return x_high * y_high + (middle >> HALF_BITS) + (other >> HALF_BITS)


@njit(inline="always")
def _round(half: np.uint64, key: np.uint64) -> np.uint64:
    """Return the Feistel round function: 32 random bits of one half and a key."""
    z = (half ^ key) * _MIX_1
    z = (z ^ (z >> HALF_BITS)) * _MIX_2
    return z >> HALF_BITS


@njit(inline="always")
def _permuted(label: np.uint64, permutation: Ids) -> np.uint64:
    """Image of one label."""
    low_bits, low_mask, high_mask = permutation[1], permutation[2], permutation[3]
    while True:
        low, high = label & low_mask, label >> low_bits
        for r in range(_FIRST_ROUND, permutation.size, 2):
            high ^= _round(low, permutation[r]) & high_mask
            low ^= _round(high, permutation[r + 1]) & low_mask
        label = (high << low_bits) | low
        if label < permutation[0]:
            return label


@compiled(types.void(_IDS, _IDS))
def permute(labels: Ids, permutation: Ids) -> None:
    """Replace every label by its image."""
    for i in range(labels.size):
        labels[i] = _permuted(labels[i], permutation)


@njit(inline="always")
def _quadrant_bits(
    field: np.uint64, a: np.uint64, ab: np.uint64, abc: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Source and target bit of a random field, without branches: 00 below a, …, 11 from abc on."""
    lower = np.uint64(field >= ab)
    return lower, np.uint64(field >= a) - lower + np.uint64(field >= abc)


@compiled(types.void(_IDS, _IDS, _U64, _U64, types.int64, _U64, _U64, _U64))
def kronecker(
    sources: Ids,
    targets: Ids,
    first: np.uint64,
    key: np.uint64,
    scale: int,
    a: np.uint64,
    ab: np.uint64,
    abc: np.uint64,
) -> None:
    """Choose a quadrant of the adjacency matrix ``scale`` times; thresholds are out of 2^32."""
    draws = np.uint64((scale + 1) // 2)
    for i in range(sources.size):
        counter = (first + np.uint64(i)) * draws
        source = target = np.uint64(0)
        for _ in range(scale // 2):
            word = draw(key, counter)
            counter += ONE
            s_high, t_high = _quadrant_bits(word >> HALF_BITS, a, ab, abc)
            s_low, t_low = _quadrant_bits(word & LOW_HALF, a, ab, abc)
            source = (source << _TWO) | (s_high << ONE) | s_low
            target = (target << _TWO) | (t_high << ONE) | t_low
        if scale & 1:
            s_low, t_low = _quadrant_bits(draw(key, counter) & LOW_HALF, a, ab, abc)
            source = (source << ONE) | s_low
            target = (target << ONE) | t_low
        sources[i] = source
        targets[i] = target


@compiled(types.void(_IDS, _IDS, _U64, _U64, _U64))
def uniform(
    sources: Ids, targets: Ids, first: np.uint64, key: np.uint64, num_vertices: np.uint64
) -> None:
    """Draw both endpoints of every edge independently and uniformly."""
    for i in range(sources.size):
        counter = (first + np.uint64(i)) * _TWO
        sources[i] = _high_product(draw(key, counter), num_vertices)
        targets[i] = _high_product(draw(key, counter + ONE), num_vertices)


@njit(inline="always")
def _vertex_of_stub(
    stub: np.uint64,
    first_stubs: Ids,
    first_vertices: Ids,
    degrees: Ids,
    guide: Ids,
    shift: np.uint64,
) -> np.uint64:
    """Vertex that owns a stub: its degree class, then its position within the class.

    ``guide`` has the class of every 2^shift-th stub and at least as many entries as there are
    classes, so that the class of a random stub is, on average, at most one further.
    """
    c = guide[stub >> shift]
    while first_stubs[c + ONE] <= stub:
        c += ONE
    vertex: np.uint64 = first_vertices[c] + (stub - first_stubs[c]) // degrees[c]
    return vertex


@compiled(types.void(_IDS, _IDS, _U64, _IDS, _IDS, _IDS, _IDS, _IDS, _U64))
def match_stubs(
    sources: Ids,
    targets: Ids,
    first: np.uint64,
    stubs: Ids,
    first_stubs: Ids,
    first_vertices: Ids,
    degrees: Ids,
    guide: Ids,
    shift: np.uint64,
) -> None:
    """Let edge k join the vertices of the stubs that the permutation puts at 2k and 2k + 1."""
    for i in range(sources.size):
        stub = (first + np.uint64(i)) * _TWO
        source = _permuted(stub, stubs)
        target = _permuted(stub + ONE, stubs)
        sources[i] = _vertex_of_stub(source, first_stubs, first_vertices, degrees, guide, shift)
        targets[i] = _vertex_of_stub(target, first_stubs, first_vertices, degrees, guide, shift)


@compiled(types.void(_IDS, _IDS, _U64, _IDS, types.boolean))
def lattice(sources: Ids, targets: Ids, first: np.uint64, shape: Ids, wrap: bool) -> None:
    """Join neighbours in a box of planes, rows and columns; ids are row-major.

    The edges of a plane come first, row by row (along the row, then to the next row), then those to
    the next plane. The last row and the last plane have a next one only if they wrap; without
    wrapping, the pattern ends early there.
    """
    num_rows, num_columns = shape[1], shape[2]
    per_plane = num_rows * num_columns
    along = num_columns if wrap and num_columns > _TWO else num_columns - ONE
    rows_leading_on = num_rows if wrap and num_rows > _TWO else num_rows - ONE
    inside = num_rows * along + rows_leading_on * num_columns
    per_row = along + num_columns
    for i in range(sources.size):
        edge = first + np.uint64(i)
        plane = edge // (inside + per_plane)
        rest = edge - plane * (inside + per_plane)
        if rest < inside:
            row = rest // per_row
            column = rest - row * per_row
            next_plane, next_row, next_column = plane, row, column
            if column < along:
                next_column = column + ONE if column + ONE < num_columns else np.uint64(0)
            else:
                column -= along
                next_column = column
                next_row = row + ONE if row + ONE < num_rows else np.uint64(0)
        else:
            row = (rest - inside) // num_columns
            column = rest - inside - row * num_columns
            next_row, next_column = row, column
            next_plane = plane + ONE if plane + ONE < shape[0] else np.uint64(0)
        sources[i] = plane * per_plane + row * num_columns + column
        targets[i] = next_plane * per_plane + next_row * num_columns + next_column


def stream_key(seed: int, purpose: int) -> np.uint64:
    """Key of one of the independent random streams of a seed."""
    z = (seed * int(_MIX_2) + purpose * int(GOLDEN) + int(_MIX_1)) & _WORD
    for multiplier in (int(_MIX_1), int(_MIX_2)):
        z = ((z ^ (z >> 30)) * multiplier) & _WORD
    return np.uint64(z ^ (z >> 31))


def permutation(num_labels: int, key: np.uint64) -> Ids:
    """Parameters of a pseudo-random permutation of 0…num_labels-1."""
    bits = (num_labels - 1).bit_length()
    low_bits = (bits + 1) // 2
    masks = [(1 << low_bits) - 1, (1 << (bits - low_bits)) - 1]
    keys = [int(stream_key(int(key), r + 1)) for r in range(_NUM_ROUNDS)]
    return np.array([num_labels, low_bits, *masks, *keys], np.uint64)
