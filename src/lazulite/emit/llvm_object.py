"""From LLVM assembly to an object file, in process: code generation at level 2 and no optimiser passes."""

from __future__ import annotations

from typing import Any

from lazulite.ir.target import Target


def compile_text(source: str, target: Target) -> bytes:
    """The object file of a module."""
    from llvmlite import binding

    machine = _machine(target)
    module = binding.parse_assembly(source)
    try:
        return bytes(machine.emit_object(module))
    finally:
        module.close()


_machines: dict[str, Any] = {}


def _machine(target: Target) -> Any:
    """LLVM's description of the target, made once."""
    if target.key not in _machines:
        from llvmlite import binding

        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        binding.initialize_native_asmparser()  # for inline assembly
        features = ",".join(f"+{feature}" for feature in target.features)
        _machines[target.key] = binding.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=features, opt=2, reloc="pic", codemodel="small"
        )
    return _machines[target.key]
