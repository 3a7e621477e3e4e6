"""Makes one environment from a config: a registered id, `module:Class`, `path/file.py:Class` or a factory."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from rlx.config.schema import Env, Wrapper
from rlx.envs import wrappers
from rlx.envs.batched_worlds import BatchedWorlds, count_argument, is_batched_class
from rlx.envs.check_kwargs import accepted_by, refuse_unknown, refuse_wrong_types, takes, unknown_argument
from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.headless import prepare_display, refuse_undrawable
from rlx.envs.import_object import importable, is_file_reference, load_module, load_object, own_places, user_error
from rlx.envs.native_vector import AnyVector, OneWorld, is_worlds
from rlx.envs.project_envs import envs_in
from rlx.envs.remote.env_process import connected
from rlx.envs.resolve_id import creator_of, is_installed, missing_package, refuse_missing, spec_of, unknown
from rlx.errors import ConfigError, RlxError, did_you_mean

AnyEnv = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class EnvFacts:
    """The facts about an environment that training needs before it starts."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    horizon: int | None
    reward_threshold: float | None
    has_masks: bool
    source: str


def make_env(env: Env, *, root: Path, render_mode: str | None = None) -> AnyEnv:
    """Make one environment with its kwargs and wrappers; a failure becomes an error of one line with a hint.

    A study's learner makes it in the process that runs its environments (`rlx.envs.remote`).
    """
    if (process := connected()) is not None:
        from rlx.envs.remote.remote_env import RemoteEnv

        return RemoteEnv(process, env, render_mode=render_mode)
    prepare_display(render_mode)
    with quiet(), contextlib.ExitStack() as on_failure:
        named = named_by(env.id, root=root)
        make = _from_registry if isinstance(named, EnvSpec) else _from_object
        made = make(env, named, root=root, render_mode=render_mode)
        on_failure.callback(lambda: made.close())
        for wrapper in env.wrappers:
            made = _wrap(made, wrapper, root=root)
        on_failure.pop_all()
    return made


def inspect(env: Env, *, root: Path) -> EnvFacts:
    """Make the environment once, read its facts, close it."""
    made = make_env(env, root=root)
    try:
        return facts_of(made, source=source_of(env.id))
    finally:
        made.close()


def facts_of(made: AnyEnv, *, source: str) -> EnvFacts:
    """Read the facts of an environment that is already made."""
    threshold = getattr(made.spec or made.unwrapped, "reward_threshold", None)
    return EnvFacts(
        observation_space=made.observation_space,
        action_space=made.action_space,
        horizon=horizon(made),
        reward_threshold=float(threshold) if isinstance(threshold, (int, float)) else None,
        has_masks=made.has_wrapper_attr("action_masks"),
        source=source,
    )


def horizon(made: AnyEnv) -> int | None:
    """Return after how many steps an episode is truncated, if that is known."""
    layers = wrappers.wrapper_layers(made)
    limits = [layer._max_episode_steps for layer in layers if isinstance(layer, gymnasium.wrappers.TimeLimit)]
    declared = getattr(layers[-1].env if layers else made, "max_episode_steps", None)
    if not limits and type(declared) is int:
        return declared
    return min(limits, default=None)


def source_of(env_id: str) -> str:
    """Return the origin of an environment: the file, the module, or the registered entry point."""
    if is_file_reference(env_id):
        return env_id.rpartition(":")[0] or env_id
    spec = gymnasium.registry.get(env_id.rpartition(":")[2])
    if spec is None:
        return env_id.partition(":")[0]
    if isinstance(spec.entry_point, str):
        return spec.entry_point
    return getattr(spec.entry_point, "__module__", "")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide Gymnasium's advice about old versions, lowered precision and render modes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(\x1b\[\d+m)?(WARN|ERROR): ")
        warnings.filterwarnings("ignore", message=".*pkg_resources")
        yield


@contextlib.contextmanager
def quiet_simulator() -> Iterator[None]:
    """Hide MuJoCo's warnings about a model's file, also from MUJOCO_LOG.TXT; warnings of a simulation stay."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is None or mujoco.get_mju_user_warning() is not None:
        yield
        return
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def named_by(env_id: str, *, root: Path) -> Any:
    """Return what an id names: a registered spec, or a class or factory of the project or a package."""
    if env_id.endswith(".py"):
        known = [own.id for own in envs_in(root / env_id, name=env_id)]
        hint = f"did you mean `{known[0]}`?" if known else f"write `{env_id}:ClassName`"
        raise ConfigError(f"`{env_id}` does not say which class", hint=hint)
    if ":" not in env_id:
        return spec_of(env_id, root=root)
    if not is_file_reference(env_id):
        place, _, name = env_id.partition(":")
        if place == "ale_py" and not is_installed("ale_py"):
            refuse_missing(env_id)
        module = load_module(place, root=root)
        if name in gymnasium.registry and not hasattr(module, name):
            return gymnasium.registry[name]
        if not hasattr(module, name) and re.search(r"[/-]", name):
            raise unknown(name, root)
    return load_object(env_id, root=root, kind="environment")


def _from_registry(env: Env, spec: EnvSpec, *, root: Path, render_mode: str | None) -> AnyEnv:
    creator = creator_of(spec, root)
    kwargs = deepcopy(env.kwargs)
    if render_mode:
        kwargs["render_mode"] = render_mode
    refuse_unknown(creator, {**spec.kwargs, **kwargs}, label=_label(env), extra=("max_episode_steps",))
    try:
        with quiet_simulator():
            made = call_foreign(lambda: gymnasium.make(spec, disable_env_checker=True, **kwargs))
    except ForeignError as error:
        raise _failure(error, creator, label=_label(env), root=root, kwargs=env.kwargs) from error.cause
    return _checked(made, label=_label(env), render_mode=render_mode)


def _from_object(env: Env, creator: Any, *, root: Path, render_mode: str | None) -> AnyEnv:
    """Call a class or a factory; `max_episode_steps` works as with registered ids."""
    _refuse_foreign_class(creator, _label(env))
    if is_worlds(creator):
        worlds = make_worlds(env, creator, root=root, count=1, render_mode=render_mode)
        return _checked(OneWorld(worlds), label=_label(env), render_mode=render_mode)
    kwargs = deepcopy(env.kwargs)  # an environment may change a list that it gets; the others must not see that
    limit = None
    if not takes(creator, "max_episode_steps"):
        limit = kwargs.pop("max_episode_steps", None)
    made = _call(env, creator, kwargs, root=root, render_mode=render_mode)
    return _limited(_checked(made, label=_label(env), render_mode=render_mode), limit)


def make_worlds(env: Env, creator: Any, *, root: Path, count: int, render_mode: str | None = None) -> AnyVector:
    """Make `count` worlds of a project's own vector environment class."""
    argument = "num_envs"
    if is_batched_class(creator):
        argument = count_argument(creator) or argument
    made = _call(env, creator, {**deepcopy(env.kwargs), argument: count}, root=root, render_mode=render_mode)
    if is_batched_class(creator):
        return BatchedWorlds(made, count, label=_label(env))
    for name in ("num_envs", "single_observation_space", "single_action_space", "observation_space", "action_space"):
        if not hasattr(made, name):
            raise ConfigError(f"`{env.id}` has no `{name}`", hint=f"set self.{name} in __init__")
    if not isinstance(made.metadata.get("autoreset_mode"), AutoresetMode):
        raise ConfigError(
            f"`{env.id}` does not say how it begins the next episode",
            hint='set metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP} (or DISABLED, with '
            'options["reset_mask"] in reset)',
        )
    return cast("AnyVector", made)


def _call(env: Env, creator: Any, kwargs: dict[str, Any], *, root: Path, render_mode: str | None) -> Any:
    """Call a project's class or factory; the modules next to it can be imported meanwhile."""
    refuse_unknown(creator, kwargs, label=_label(env))
    if render_mode is not None and takes(creator, "render_mode"):
        kwargs["render_mode"] = render_mode
    folders = []
    if list(own_places(env.id, root=root)):  # an installed class needs no file of the project
        folders.append(root)
    if is_file_reference(env.id):
        folders.insert(0, (root / env.id.rpartition(":")[0]).resolve().parent)
    try:
        with importable(*folders), quiet_simulator():
            return call_foreign(lambda: creator(**kwargs))
    except ForeignError as error:
        raise _failure(error, creator, label=_label(env), root=root, kwargs=env.kwargs) from error.cause


def _label(env: Env) -> str:
    return f"`{env.id}`"


def _refuse_foreign_class(creator: Any, label: str) -> None:
    if not callable(creator):
        raise ConfigError(f"{label} is a {type(creator).__name__}, not a class or a function that makes one")
    if not isinstance(creator, type) or issubclass(creator, gymnasium.Env) or is_worlds(creator):
        return
    hint = "derive it from gymnasium.Env"
    if any(base.__module__.partition(".")[0] == "gym" for base in creator.__mro__):
        hint = "it derives from the old `gym`; derive it from gymnasium.Env"
    raise ConfigError(f"{label} is not a gymnasium.Env", hint=hint)


def _checked(made: Any, *, label: str, render_mode: str | None) -> AnyEnv:
    if not isinstance(made, gymnasium.Env):
        raise ConfigError(
            f"{label} made a {type(made).__name__}, not a gymnasium.Env", hint="return an instance of gymnasium.Env"
        )
    for name in ("observation_space", "action_space"):
        space = getattr(made, name, None)
        if not isinstance(space, gymnasium.Space):
            made.close()
            problem = "has no" if space is None else f"has a {type(space).__module__}.{type(space).__name__} as"
            raise ConfigError(f"{label} {problem} `{name}`", hint=f"set self.{name} to a gymnasium.Space in __init__")
    if render_mode is not None:
        _require_render_mode(made, render_mode, label)
    return made


def _require_render_mode(made: AnyEnv, render_mode: str, label: str) -> None:
    modes = list(made.metadata.get("render_modes") or [])
    if made.render_mode != render_mode and render_mode in modes:
        made.unwrapped.render_mode = render_mode
    if made.render_mode != render_mode or (modes and render_mode not in modes):
        made.close()
        raise ConfigError(
            f"{label} cannot render as {render_mode}",
            hint=f'its render modes: {", ".join(modes) or "none"}; add "{render_mode}" to metadata["render_modes"] '
            "and take a `render_mode` argument",
        )
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(made.close)
        refuse_undrawable(made, label=label)
        on_failure.pop_all()


def _limited(made: AnyEnv, limit: int | None) -> AnyEnv:
    """Truncate episodes if the class or its spec declares `max_episode_steps` and nothing truncates them yet."""
    if any(isinstance(layer, gymnasium.wrappers.TimeLimit) for layer in wrappers.wrapper_layers(made)):
        return made
    declared = getattr(type(made.unwrapped), "max_episode_steps", None)
    if limit is None and type(declared) is int:
        limit = declared
    if limit is None and made.spec is not None:
        limit = made.spec.max_episode_steps
    return made if limit is None else wrappers.time_limit(made, limit)


def _wrap(made: AnyEnv, wrapper: Wrapper, *, root: Path) -> AnyEnv:
    label = f"wrapper `{wrapper.name}`"
    creator = wrappers.find(wrapper.name)
    if creator is None and ":" in wrapper.name:
        creator = load_object(wrapper.name, root=root, kind="wrapper")
        if isinstance(creator, type) and not issubclass(creator, gymnasium.Wrapper):
            raise ConfigError(f"{label} is not a gymnasium.Wrapper", hint="derive it from gymnasium.Wrapper")
    if creator is None:
        near = did_you_mean(wrapper.name, list(wrappers.WRAPPERS))
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(wrappers.WRAPPERS)}; or `file.py:Class`"
        raise ConfigError(f"unknown {label}", hint=hint)
    refuse_unknown(creator, wrapper.kwargs, label=label, skip=1)
    if wrapper.name in wrappers.WRAPPERS:
        refuse_wrong_types(creator, wrapper.kwargs, label=label)
    make: Callable[..., Any] = creator
    try:
        wrapped = call_foreign(lambda: make(made, **deepcopy(wrapper.kwargs)))
    except ForeignError as error:
        raise _failure(error, creator, label=label, root=root, kwargs=wrapper.kwargs) from error.cause
    return _checked(wrapped, label=label, render_mode=None)


def changes_only_reward(name: str, *, root: Path) -> bool:
    """Return whether the wrapper of this name is a gymnasium.RewardWrapper; False if it cannot be found."""
    if name in wrappers.REWARD_ONLY:
        return True
    if (process := connected()) is not None:
        return process.ask("changes only reward", name=name) is True
    kind: object = wrappers.find(name)
    if kind is None and ":" in name:
        with contextlib.suppress(RlxError):
            kind = load_object(name, root=root, kind="wrapper")
    return isinstance(kind, type) and issubclass(kind, gymnasium.RewardWrapper)


def _failure(
    error: ForeignError, creator: Callable[..., Any], *, label: str, root: Path, kwargs: Mapping[str, Any]
) -> RlxError:
    """Return the error that explains a failure: a bad argument, a missing one or a missing package, or its place."""
    cause = error.cause
    if isinstance(cause, TypeError):
        unexpected = re.search(r"unexpected keyword argument '(\w+)'", str(cause))
        if unexpected and unexpected[1] in kwargs:
            return unknown_argument(label, unexpected[1], accepted_by(creator))
        pattern = r"missing \d+ required (?:positional|keyword-only) arguments?: (.+?)(?: was raised|$)"
        needed = re.search(pattern, str(cause))
        if needed:
            names = needed[1].replace("'", "`")
            return ConfigError(f"{label} needs the argument {names}", hint="set it in `kwargs`")
    missing = missing_package(cause, label, getattr(creator, "__module__", ""))
    hint = None
    if label.startswith("wrapper") and isinstance(cause, (TypeError, ValueError, AssertionError)):
        hint = "check the arguments of this wrapper in env.wrappers; rlx docs reference/config lists them"
    return missing or user_error(cause, root=root, doing=f"making {label}", hint=hint)
