"""Some tests take minutes each: `make lab-test` asks for those that boot a lab, `make slow-test` for the slow ones."""

import pytest

ON_DEMAND = ("lab", "slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    asked = config.option.markexpr or ""
    not_asked = [name for name in ON_DEMAND if name not in asked]
    passed_over = [item for item in items if any(item.get_closest_marker(name) for name in not_asked)]
    if passed_over:
        config.hook.pytest_deselected(items=passed_over)
        items[:] = [item for item in items if item not in passed_over]
