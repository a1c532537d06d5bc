from apps.tiny_training import train


def test_a_small_network_learns_the_exclusive_or():
    first, last = train(steps=200)
    assert last < first / 10
