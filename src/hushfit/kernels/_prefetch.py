"""Prefetch memory into the cache; numba has no function for this instruction."""

from collections.abc import Callable
from typing import Any

from hushfit.kernels._compile import Later

_READ, _KEEP_IN_ALL_CACHES, _DATA = 0, 3, 1


def _intrinsic(function: Callable[..., Any]) -> Any:
    """Numba's type of the instruction, under the name that numba asks for."""
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic

    made, context = intrinsic(function), cpu_target.typing_context
    context.refresh()  # compilation has begun, and learns of the instruction now

    class Typed:
        _numba_type_ = context.resolve_value_type(made)

    return Typed


def _prefetch(typingctx: Any, array: Any, element: Any) -> Any:
    """Fetch the cache line of ``array.flat[element]`` (C order). It reads nothing, so it may point
    past the end.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte_pointer = ir.IntType(8).as_pointer()
        int32 = ir.IntType(32)
        address = builder.bitcast(builder.gep(pointer, [args[1]]), byte_pointer)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(instruction, [address, int32(_READ), int32(_KEEP_IN_ALL_CACHES), int32(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


prefetch = Later(_intrinsic, _prefetch)
