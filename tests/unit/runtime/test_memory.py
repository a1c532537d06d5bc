from lazulite.runtime.memory import Handle, Options


def test_equal_options_are_one_key():
    assert {Options(64): 1}[Options()] == 1
    assert Options(128) != Options()


def test_a_handle_says_where_it_is():
    assert repr(Handle(16, 4096)) == "<Handle 16 bytes at 0x1000>"
