import gc
import os

import pytest

from lazulite.runtime import forking


class Owner:
    renewed = 0

    def after_fork(self):
        self.renewed += 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # helper threads of other tests may be alive
def test_owners_are_renewed_in_a_child_only():
    owner = Owner()
    forking.renew_after_fork(owner)
    child = os.fork()
    if not child:
        os._exit(10 + owner.renewed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
    assert owner.renewed == 0


def test_owners_are_not_kept_alive():
    before = len(forking._owners)
    forking.renew_after_fork(Owner())
    gc.collect()
    assert len(forking._owners) <= before
