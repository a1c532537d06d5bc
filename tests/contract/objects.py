"""Machine code for tests of the runtime, made by LLVM from text, independent of the own compiler."""

from functools import cache

from lazulite.emit.base import Binary


@cache
def compile_ir(text, relocation="pic", model="small"):
    """An ELF object from LLVM IR."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=2, reloc=relocation, codemodel=model).emit_object(llvm.parse_assembly(text))


def kernel(body, *, scratch_bytes=0, parallel=1):
    """A binary whose kernel has this body; its parameters are %args, %begin, %end and %scratch."""
    text = f"define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{\n{body}\n}}\n"
    return Binary("kernel", compile_ir(text), "elf", scratch_bytes, parallel)


DOUBLE_INTS = """
  %address = load i64, ptr %args
  %memory = inttoptr i64 %address to ptr
  %old = load <4 x i32>, ptr %memory, align 4
  %new = add <4 x i32> %old, %old
  store <4 x i32> %new, ptr %memory, align 4
  ret void
"""
"""Doubles the four int32 that argument 0 points to."""
