"""Registries find their parts on first use, once, whole, and say what they have."""

import importlib.metadata
import sys
import threading

import pytest

from rstar2_env.core.errors import ConfigurationError, DuplicateNameError, UnknownNameError
from rstar2_env.core.options.registry import Registry, import_modules


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package ``plugins_of_<test>`` that registers into ``sys.modules['the_registry']``."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"plugins_{tmp_path.name}".replace("-", "_")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")

    def write(module, source):
        (folder / f"{module}.py").write_text(source)
        importlib.invalidate_caches()
        return name

    yield write
    for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[module]


class TestByHand:
    def test_what_was_registered_is_found(self):
        registry = Registry("thing")
        registry.register("one", 1)
        assert registry.get("one") == 1
        assert "one" in registry
        assert list(registry) == registry.names() == ["one"]

    def test_names_come_sorted(self):
        registry = Registry("thing")
        for name in ("b", "c", "a"):
            registry.register(name, name)
        assert registry.names() == ["a", "b", "c"]

    def test_register_decorates(self):
        registry = Registry("thing")

        @registry.register("part")
        def part():
            return 7

        assert registry.get("part") is part

    def test_an_unknown_name_suggests_the_nearest(self):
        registry = Registry("trainer")
        registry.register("grpo_roc", object())
        with pytest.raises(UnknownNameError, match=r"no trainer named 'grpo-roc'\. Did you mean 'grpo_roc'\?"):
            registry.get("grpo-roc")

    def test_a_name_with_options_is_refused(self):
        registry = Registry("thing")
        registry.register("one", 1)
        with pytest.raises(
            ConfigurationError, match="only the name of the thing 'one', without options; got 'one:a=2'"
        ):
            registry.get("one:a=2")
        registry.register("two", 2)
        with pytest.raises(ConfigurationError, match="the options of the thing 'two' as name=value, got 'x'"):
            registry.get("two:x")

    def test_a_kind_that_is_named_alone_does_not_ask_for_options(self):
        registry = Registry("thing", named_alone=True)
        registry.register("one", 1)
        with pytest.raises(ConfigurationError, match="only the name of the thing 'one', without options; got 'one:x'"):
            registry.get("one:x")

    def test_a_name_for_two_parts_is_refused(self):
        registry = Registry("thing")
        registry.register("one", object())
        with pytest.raises(DuplicateNameError, match="'one'"):
            registry.register("one", object())

    def test_the_same_part_may_register_again(self):
        registry, part = Registry("thing"), object()
        registry.register("one", part)
        registry.register("one", part)
        assert registry.names() == ["one"]


REGISTER = "import sys\nsys.modules['the_registry'].registry.register('{name}', object())\n"


@pytest.fixture
def registry_module(monkeypatch):
    """A module that plugin files can find the registry in."""
    import types

    module = types.ModuleType("the_registry")
    monkeypatch.setitem(sys.modules, "the_registry", module)
    return module


class TestFromAPackage:
    def test_public_modules_are_imported_on_first_use_and_private_ones_are_not(self, package, registry_module):
        package("_private", "raise RuntimeError")
        name = package("public", REGISTER.format(name="part"))
        registry_module.registry = Registry("thing", name)
        assert f"{name}.public" not in sys.modules
        assert registry_module.registry.names() == ["part"]

    def test_a_module_that_fails_fails_every_time_and_never_leaves_half_a_registry(self, package, registry_module):
        package("aaa", REGISTER.format(name="part"))
        name = package("broken", "raise RuntimeError('broken plugin')")
        registry_module.registry = Registry("thing", name)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="broken plugin"):
                registry_module.registry.get("absent")

    def test_a_module_may_ask_for_names_while_it_is_imported(self, package, registry_module):
        package("aaa", REGISTER.format(name="first"))
        name = package("bbb", "import sys\nassert 'first' in sys.modules['the_registry'].registry\n")
        registry_module.registry = Registry("thing", name)
        assert registry_module.registry.names() == ["first"]

    def test_a_second_thread_waits_until_everything_is_there(self, package, registry_module):
        registry_module.loading, registry_module.go_on = threading.Event(), threading.Event()
        source = "import sys\nm = sys.modules['the_registry']\nm.loading.set()\nassert m.go_on.wait(30)\n"
        name = package("slow", source + "m.registry.register('late', 7)\n")
        registry = registry_module.registry = Registry("thing", name)
        found = []
        first = threading.Thread(target=registry.names)
        second = threading.Thread(target=lambda: found.append(registry.get("late")))
        first.start()
        assert registry_module.loading.wait(30)
        second.start()
        second.join(0.2)
        assert not found
        registry_module.go_on.set()
        first.join(30)
        second.join(30)
        assert found == [7]

    def test_import_modules_names_the_package_that_is_not_there(self):
        with pytest.raises(ModuleNotFoundError, match="no_such_package_here"):
            import_modules("no_such_package_here")


class TestFromOtherDistributions:
    @pytest.fixture
    def entry_points(self, monkeypatch):
        def provide(**points):
            made = [importlib.metadata.EntryPoint(name, value, "group") for name, value in points.items()]
            monkeypatch.setattr(
                "rstar2_env.core.options.entry_points.entry_points", lambda group: made if group == "group" else []
            )

        return provide

    def test_an_entry_point_joins(self, package, registry_module, entry_points):
        name = package("theirs", REGISTER.format(name="theirs"))
        entry_points(theirs=f"{name}.theirs")
        registry_module.registry = Registry("thing", entry_points="group")
        assert registry_module.registry.names() == ["theirs"]

    def test_a_broken_one_is_named_and_takes_nobody_else_away(self, package, registry_module, entry_points):
        package("broken", "import no_such_module_anywhere")
        name = package("theirs", REGISTER.format(name="theirs"))
        entry_points(broken=f"{name}.broken", theirs=f"{name}.theirs")
        registry_module.registry = Registry("thing", entry_points="group")
        with pytest.warns(RuntimeWarning, match="'broken'.*no_such_module_anywhere"):
            assert registry_module.registry.names() == ["theirs"]
