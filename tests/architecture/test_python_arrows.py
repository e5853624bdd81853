"""No circle of modules: `lint-imports` compares what stands side by side, this also a package and what is in it."""

from graphlib import TopologicalSorter

import grimp
import pytest


@pytest.mark.parametrize("package", ["trifecta", "bench"])
def test_no_modules_import_each_other_in_a_circle(package):
    graph = grimp.build_graph(package, cache_dir=None)
    arrows = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(arrows) > 30
    TopologicalSorter(arrows).prepare()  # CycleError names the circle
