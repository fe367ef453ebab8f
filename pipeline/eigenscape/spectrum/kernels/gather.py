"""The innermost loop of a sparse product, written as vector instructions.

LLVM does not keep a row of sums in registers by itself: it cannot prove that the rows written and
the rows read are different memory, and checks so again for every entry. Spelled out as one vector
of `WIDTH` numbers the same product is 2.7 to 4 times as fast.
"""

import platform
from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

_FLAGS = ("contract", "reassoc", "nsz")

WIDTH = 32
"""Columns of a group: in single precision a row of a group is two cache lines, which the processor
fetches as a pair (16 columns: 1.5 times as long per column). Fixed, so that every column meets the
same arithmetic everywhere."""

_AHEAD = 128
"""Entries between the one that is added and the one whose row is asked for. With 8 the product of the
graph of `tests/bench/performance/spectrum.py` takes 47 ms on one thread, with 32 40, with 64 34, with 128 34
and with 256 36: rows come from memory, and a row of the matrix has fewer entries than that takes."""


def _converts_halves() -> bool:
    if platform.machine() not in ("x86_64", "AMD64"):
        return platform.machine() in ("aarch64", "arm64")
    if config.CPU_NAME not in (None, "host"):
        return "+f16c" in str(config.CPU_FEATURES)
    return bool(binding.get_host_cpu_features().get("f16c", False))


CONVERTS_HALVES = _converts_halves()
"""Whether the processor turns half precision into single by itself: all of x86-64 since 2013, and ARM."""


@intrinsic
def add_rows(typing, indices, data, begin, end, last, X, sums):  # type: ignore[no-untyped-def]
    """Set sums to the sum of ``data[entry] * X[indices[entry], :]`` for entries begin ... end - 1.

    Parameters
    ----------
    indices, data : contiguous array
        Columns and values of the entries.
    begin, end : int64
    last : int64
        The last entry there is: nothing is fetched ahead from beyond it.
    X : contiguous array, shape (n, WIDTH)
    sums : contiguous array, shape (WIDTH,), of the type of X
    """
    signature = types.void(indices, data, begin, end, last, X, sums)
    return signature, _generate


@intrinsic
def add_rows_backward(typing, indices, data, begin, end, X, sums):  # type: ignore[no-untyped-def]
    """Do what `add_rows` does, from the last entry to the first, for rows that are taken in that order.

    A sweep of 21.8 million entries takes 0.085 s so, and 0.2 s where the rows of later entries are
    fetched ahead, which have been read before.
    """
    signature = types.void(indices, data, begin, end, X, sums)
    return signature, _generate_backward


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    *entries, last, X, sums = _pointers(context, builder, signature, arguments)
    return _add(context, builder, signature.args[-1].dtype, [*entries, last], X, sums)


def _generate_backward(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    *entries, X, sums = _pointers(context, builder, signature, arguments)
    return _add(context, builder, signature.args[-1].dtype, [*entries, None], X, sums)


def _add(context: Any, builder: Any, kind: Any, entries: list[Any], X: Any, sums: Any) -> Any:
    number, size = context.get_value_type(kind), kind.bitwidth // 8
    indices, data, begin, end, last = entries
    total = _sum_rows(builder, indices, data, begin, end, last, X, number, number, size)
    _store(builder, total, sums, size)
    return context.get_dummy_value()


@intrinsic
def step_halves(typing, indices, data, begin, end, last, here, own, D, Z, R, a, b):  # type: ignore[no-untyped-def]
    """Z[here] <- a (own D[here] - sum of data[entry] D[indices[entry]] + R[here]) - b Z[here].

    Arrays of the vectors hold half precision; everything is summed in single.

    Parameters
    ----------
    indices, data, begin, end, last
        See `add_rows`.
    here : int64
    own : float32
    D, Z, R : contiguous array of uint16, shape (n, WIDTH)
        The bits of half precision: compiled code has no such type.
    a, b : contiguous array of float32, shape (WIDTH,)
    """
    signature = types.void(indices, data, begin, end, last, here, own, D, Z, R, a, b)
    return signature, _generate_step


def _generate_step(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    indices, data, begin, end, last, here, own, D, Z, R, a, b = _pointers(
        context, builder, signature, arguments
    )
    half, number = ir.HalfType(), ir.FloatType()
    D, Z, R = (builder.bitcast(array, half.as_pointer()) for array in (D, Z, R))
    total = _sum_rows(builder, indices, data, begin, end, last, D, half, number, 2)
    place = builder.mul(here, ir.Constant(ir.IntType(64), WIDTH))
    e, z, r = (_load(builder, builder.gep(array, [place]), half, number) for array in (D, Z, R))
    factor, share = (_load(builder, array, number, number) for array in (a, b))
    image = builder.fmul(_spread(builder, own, e.type), e, flags=_FLAGS)
    image = builder.fadd(builder.fsub(image, total, flags=_FLAGS), r, flags=_FLAGS)
    image = builder.fmul(factor, image, flags=_FLAGS)
    image = builder.fsub(image, builder.fmul(share, z, flags=_FLAGS), flags=_FLAGS)
    _store(builder, builder.fptrunc(image, _vector(half)), builder.gep(Z, [place]), 2)
    return context.get_dummy_value()


@intrinsic
def store_halves(typing, row, H, here):  # type: ignore[no-untyped-def]
    """H[here] <- row, an array of float32 of shape (WIDTH,), in half precision (see `step_halves`)."""
    return types.void(row, H, here), _generate_store


def _generate_store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    row, H, here = _pointers(context, builder, signature, arguments)
    half, number = ir.HalfType(), ir.FloatType()
    place = builder.mul(here, ir.Constant(ir.IntType(64), WIDTH))
    target = builder.gep(builder.bitcast(H, half.as_pointer()), [place])
    values = _load(builder, row, number, number)
    _store(builder, builder.fptrunc(values, _vector(half)), target, 2)
    return context.get_dummy_value()


@intrinsic
def load_halves(typing, H, here, row):  # type: ignore[no-untyped-def]
    """Row <- H[here]; see `store_halves`."""
    return types.void(H, here, row), _generate_load


def _generate_load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    H, here, row = _pointers(context, builder, signature, arguments)
    half, number = ir.HalfType(), ir.FloatType()
    place = builder.mul(here, ir.Constant(ir.IntType(64), WIDTH))
    source = builder.gep(builder.bitcast(H, half.as_pointer()), [place])
    _store(builder, _load(builder, source, half, number), row, 4)
    return context.get_dummy_value()


def _pointers(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments, the data of an array in its place."""
    return [
        context.make_array(kind)(context, builder, value).data
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _sum_rows(
    builder: Any, indices: Any, data: Any, begin: Any, end: Any, last: Any, X: Any,
    stored: Any, number: Any, size: int,
) -> Any:  # fmt: skip
    """Return the sum of `add_rows` as one vector of `number`, X being `stored` in `size` bytes each.

    Without a last entry it goes backward, and fetches what stands before.
    """
    wide = ir.IntType(64)
    one, ahead = ir.Constant(wide, 1), ir.Constant(wide, _AHEAD)
    if last is None:
        begin, end = builder.sub(end, one), builder.sub(begin, one)

    def later(entry: Any) -> Any:
        if last is None:
            place, limit = builder.sub(entry, ahead), ir.Constant(wide, 0)
            return builder.select(builder.icmp_signed(">", place, limit), place, limit)
        place = builder.add(entry, ahead)
        return builder.select(builder.icmp_signed("<", place, last), place, last)

    def row_of(entry: Any) -> Any:
        index = builder.sext(builder.load(builder.gep(indices, [entry])), wide)
        return builder.gep(X, [builder.mul(index, ir.Constant(wide, WIDTH))])

    vector = _vector(number)
    total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * WIDTH))
    step = ir.Constant(wide, 1 if last is not None else -1)
    with cgutils.for_range_slice(builder, begin, end, step, inc=last is not None) as (entry, _):
        _prefetch(builder, row_of(later(entry)), WIDTH * size)
        row = _load(builder, row_of(entry), stored, number)
        weight = builder.load(builder.gep(data, [entry]))
        if weight.type != number:
            weight = builder.fptrunc(weight, number)
        product = builder.fmul(_spread(builder, weight, vector), row, flags=_FLAGS)
        builder.store(builder.fadd(builder.load(total), product, flags=_FLAGS), total)
    return builder.load(total)


def _vector(number: Any) -> Any:
    return ir.VectorType(number, WIDTH)


def _load(builder: Any, address: Any, stored: Any, number: Any) -> Any:
    """Return the row at an address as a vector of `number`."""
    row = builder.load(builder.bitcast(address, _vector(stored).as_pointer()))
    row.align = 2 if isinstance(stored, ir.HalfType) else 4
    return row if stored == number else builder.fpext(row, _vector(number))


def _store(builder: Any, values: Any, address: Any, size: int) -> None:
    """Write a vector whose numbers have `size` bytes."""
    stored = builder.store(values, builder.bitcast(address, values.type.as_pointer()))
    stored.align = size


def _spread(builder: Any, value: Any, vector: Any) -> Any:
    """Return a vector that holds `value` in every place."""
    nothing, narrow = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, value, ir.Constant(narrow, 0))
    zeros = ir.Constant(ir.VectorType(narrow, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, zeros)


def _prefetch(builder: Any, address: Any, size: int) -> None:
    """Ask for `size` bytes from `address` on; no more than a hint."""
    byte, narrow = ir.IntType(8), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), narrow, narrow, narrow])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    first = builder.bitcast(address, byte.as_pointer())
    # To read, to be kept in all caches, as data.
    hints = [ir.Constant(narrow, value) for value in (0, 3, 1)]
    for offset in range(0, size, 64):
        builder.call(function, [builder.gep(first, [ir.Constant(narrow, offset)]), *hints])
