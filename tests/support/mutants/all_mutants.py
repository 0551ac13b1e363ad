"""Every kernel that is broken on purpose."""

from tests.support.mutants.bfs_mutants import BFS_MUTANTS
from tests.support.mutants.cache_mutants import CACHE_MUTANTS
from tests.support.mutants.check_mutants import CHECK_MUTANTS
from tests.support.mutants.devices_mutants import DEVICES_MUTANTS
from tests.support.mutants.method_mutants import METHOD_MUTANTS
from tests.support.mutants.other_mutants import OTHER_MUTANTS
from tests.support.mutants.result_mutants import RESULT_MUTANTS
from tests.support.mutants.shared_mutants import SHARED_MUTANTS

MUTANTS = [
    *BFS_MUTANTS,
    *CACHE_MUTANTS,
    *SHARED_MUTANTS,
    *CHECK_MUTANTS,
    *DEVICES_MUTANTS,
    *OTHER_MUTANTS,
    *METHOD_MUTANTS,
    *RESULT_MUTANTS,
]
