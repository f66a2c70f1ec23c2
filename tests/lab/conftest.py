"""Tests that boot a lab take minutes and a built lab: only `make lab-test` asks for them."""


def pytest_collection_modifyitems(config, items):
    if "lab" in (config.option.markexpr or ""):
        return
    asked_not = [item for item in items if item.get_closest_marker("lab")]
    if asked_not:
        config.hook.pytest_deselected(items=asked_not)
        items[:] = [item for item in items if item not in asked_not]
