"""The public names exist, are what the page of names says, and cost nothing until they are used."""

import re
import subprocess
import sys

import pytest

import lazulite
from support.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "names.md"


@pytest.mark.parametrize("name", lazulite.__all__)
def test_a_public_name_resolves(name):
    assert getattr(lazulite, name) is not None


def test_the_page_of_names_lists_all_and_only_them():
    listed = re.findall(r"^\| `(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(lazulite.__all__) == sorted(listed)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Tensro'"):
        lazulite.Tensro  # noqa: B018


def python(code):
    """What a new interpreter prints for this program."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


IMPORT = """
import time, sys
begin = time.process_time()
import lazulite
print(time.process_time() - begin, *({"numpy", "llvmlite", "ctypes", "inspect", "difflib"} & set(sys.modules)))
"""
USE = """
import lazulite, sys
print(len([getattr(lazulite, name) for name in lazulite.__all__]), *({"numpy", "llvmlite"} & set(sys.modules)))
"""


def test_the_import_brings_no_library_with_it():
    seconds, *loaded = python(IMPORT).split()
    print(f"import lazulite: {float(seconds):.4f} s of processor time")
    assert [] == loaded


def test_all_public_names_come_without_numpy_and_llvmlite():
    assert [str(len(lazulite.__all__))] == python(USE).split()
