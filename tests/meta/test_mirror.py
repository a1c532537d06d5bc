"""Tests mirror the source: `src/lazulite/a/b.py` has `tests/unit/a/test_b.py`.  Missing pairs are listed."""

from support.repository import PACKAGE, ROOT, files, modules, name_of

UNIT = ROOT / "tests" / "unit"


def test_every_unit_test_belongs_to_a_module_or_package():
    """A test named after nothing is one that a reader of the module does not find."""
    homeless = []
    for path in files(".py", below=UNIT):
        folder, name = PACKAGE / path.parent.relative_to(UNIT), path.stem.removeprefix("test_")
        if path.stem.startswith("test_") and not any(folder.glob(f"{name}.py")) and not (folder / name).is_dir():
            homeless.append(name_of(path))
    print("tests named after no module:", *homeless, sep="\n  ")


def test_modules_without_a_test_of_their_own_are_listed():
    missing = []
    for path in modules():
        inner = path.relative_to(PACKAGE)
        if not path.stem.startswith("__") and not (UNIT / inner.parent / f"test_{inner.name}").exists():
            missing.append(name_of(path))
    print("modules without a test file of the same name:", *missing, sep="\n  ")
