"""How large files and functions are.  Aims are printed, limits are kept."""

from support.repository import files, functions, modules, name_of

LONGEST_FILE, LONGEST_FUNCTION = 600, 80
AIM_FILE, AIM_FUNCTION = 300, 25


def lines_of(path):
    return path.read_text(encoding="utf-8").count("\n")


def length_of(function):
    return function.end_lineno - function.lineno + 1


def test_no_file_is_longer_than_one_can_hold_in_mind():
    sizes = sorted(((lines_of(path), name_of(path)) for path in files(".py")), reverse=True)
    print(*(f"{size:5} {name}" for size, name in sizes if size > AIM_FILE), sep="\n")
    assert [f"{name}: {size} lines" for size, name in sizes if size > LONGEST_FILE] == []


def test_no_function_is_longer_than_a_screen_or_two():
    sizes = [(length_of(f), f"{name_of(p)}:{f.lineno} {f.name}") for p in modules() for f in functions(p)]
    sizes.sort(reverse=True)
    print(*(f"{size:5} {name}" for size, name in sizes if size > AIM_FUNCTION), sep="\n")
    assert [f"{name}: {size} lines" for size, name in sizes if size > LONGEST_FUNCTION] == []
