"""Different keys with one key hash: murmur3 is no secret, and each of its steps can be undone."""

import struct

_ALL = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_ADD1, _ADD2 = 0x52DCE729, 0x38495AB5
_BLOCK = struct.Struct("<QQ")


def twin(key: bytes) -> bytes:
    """Another key with the hash of `key`, which is two or more whole blocks of 16 bytes."""
    other = bytes(byte ^ 1 for byte in key[:-16])
    return other + _leading_to(_after(key), _after(other))


def _after(blocks: bytes) -> tuple[int, int]:
    h1 = h2 = 0
    for low, high in _BLOCK.iter_unpack(blocks):
        h1 = ((_rotated(h1 ^ _rotated(low * _C1, 31) * _C2 & _ALL, 27) + h2) * 5 + _ADD1) & _ALL
        h2 = ((_rotated(h2 ^ _rotated(high * _C2, 33) * _C1 & _ALL, 31) + h1) * 5 + _ADD2) & _ALL
    return h1, h2


def _leading_to(wanted: tuple[int, int], now: tuple[int, int]) -> bytes:
    first = _rotated((wanted[0] - _ADD1) * _inverse(5) - now[1], 64 - 27) ^ now[0]
    second = _rotated((wanted[1] - _ADD2) * _inverse(5) - wanted[0], 64 - 31) ^ now[1]
    low = _rotated(first * _inverse(_C2), 64 - 31) * _inverse(_C1)
    high = _rotated(second * _inverse(_C1), 64 - 33) * _inverse(_C2)
    return _BLOCK.pack(low & _ALL, high & _ALL)


def _rotated(x: int, left: int) -> int:
    x &= _ALL
    return (x << left | x >> (64 - left)) & _ALL


def _inverse(x: int) -> int:
    return pow(x, -1, 1 << 64)
