"""Help for tests of captured functions."""


def calls(function, *arguments):
    """The lists that calls with each tuple of arguments give."""
    return [function(*each).tolist() for each in arguments]


def captured(function):
    """How many calls are captured."""
    return int(repr(function).split(": ")[1].split()[0])
