"""One environment from a config: a registered id, `module:Class`, `path/file.py:Class` or a factory, wrapped."""

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
from rlx.envs.arguments import accepted_by, refuse_unknown, takes, unknown_argument
from rlx.envs.display import prepare_display, refuse_undrawable
from rlx.envs.lookup import creator_of, is_installed, missing_package, refuse_missing, spec_of, unknown
from rlx.envs.scan import envs_in
from rlx.envs.source import importable, is_file_reference, load_module, load_object, user_error
from rlx.envs.worlds import AnyVector, OneWorld, is_worlds
from rlx.errors import ConfigError, RlxError, did_you_mean

AnyEnv = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class EnvFacts:
    """What training needs to know about an environment before it starts."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    horizon: int | None
    reward_threshold: float | None
    has_masks: bool
    source: str


def make_env(env: Env, *, root: Path, render_mode: str | None = None) -> AnyEnv:
    """Make one environment with its kwargs and wrappers; what goes wrong is one line with a hint."""
    prepare_display(render_mode)
    with quiet():
        made = _make_bare(env, root=root, render_mode=render_mode)
        try:
            for wrapper in env.wrappers:
                made = _wrap(made, wrapper, root=root)
        except BaseException:
            made.close()
            raise
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
    spec = made.spec
    threshold = spec.reward_threshold if spec is not None else getattr(made.unwrapped, "reward_threshold", None)
    return EnvFacts(
        observation_space=made.observation_space,
        action_space=made.action_space,
        horizon=horizon(made),
        reward_threshold=float(threshold) if isinstance(threshold, (int, float)) else None,
        has_masks=made.has_wrapper_attr("action_masks"),
        source=source,
    )


def horizon(made: AnyEnv) -> int | None:
    """Return after how many steps an episode is cut, where that is known."""
    limits: list[int] = []
    layer = made
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.TimeLimit):
            limits.append(layer._max_episode_steps)
        layer = layer.env
    declared = getattr(layer, "max_episode_steps", None)
    if not limits and type(declared) is int:
        limits.append(declared)
    return min(limits, default=None)


def source_of(env_id: str) -> str:
    """Return where an environment comes from: the file, the module, or the registered entry point."""
    if is_file_reference(env_id):
        return env_id.rpartition(":")[0] or env_id
    spec = gymnasium.registry.get(env_id.rpartition(":")[2])
    if spec is not None:
        return spec.entry_point if isinstance(spec.entry_point, str) else getattr(spec.entry_point, "__module__", "")
    return env_id.partition(":")[0]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Gymnasium's advice (old versions, lowered precision, render modes) off people's screens."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(\x1b\[\d+m)?(WARN|ERROR): ")
        warnings.filterwarnings("ignore", message=".*pkg_resources")
        yield


@contextlib.contextmanager
def quiet_simulator() -> Iterator[None]:
    """Keep MuJoCo's remarks on a model's file off the screen and out of MUJOCO_LOG.TXT; those of a simulation stay."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is None or mujoco.get_mju_user_warning() is not None:
        yield
        return
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def _make_bare(env: Env, *, root: Path, render_mode: str | None) -> AnyEnv:
    named = named_by(env.id, root=root)
    make = _from_registry if isinstance(named, EnvSpec) else _from_object
    return make(env, named, root=root, render_mode=render_mode)


def named_by(env_id: str, *, root: Path) -> Any:
    """Return what an id names: a registered spec, or a project's or package's class or factory."""
    if is_file_reference(env_id):
        return _from_file(env_id, root)
    if ":" not in env_id:
        return spec_of(env_id, root=root)
    place, _, name = env_id.partition(":")
    module = load_module(place, root=root) if place != "ale_py" or is_installed("ale_py") else refuse_missing(env_id)
    if name in gymnasium.registry and not hasattr(module, name):
        return gymnasium.registry[name]
    if not hasattr(module, name) and re.search(r"[/-]", name):
        raise unknown(name, root)
    return load_object(env_id, root=root, kind="environment")


def _from_file(env_id: str, root: Path) -> Any:
    if env_id.endswith(".py"):
        known = [own.id for own in envs_in(root / env_id, name=env_id)]
        raise ConfigError(
            f"`{env_id}` does not say which class",
            hint=f"did you mean `{known[0]}`?" if known else f"write `{env_id}:ClassName`",
        )
    return load_object(env_id, root=root, kind="environment")


def _from_registry(env: Env, spec: EnvSpec, *, root: Path, render_mode: str | None) -> AnyEnv:
    creator = creator_of(spec, root)
    kwargs = {**deepcopy(env.kwargs), **({"render_mode": render_mode} if render_mode else {})}
    refuse_unknown(creator, {**spec.kwargs, **kwargs}, label=env.id, extra=("max_episode_steps",))
    try:
        with quiet_simulator():
            made = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise _failure(error, creator, label=env.id, root=root, kwargs=env.kwargs) from error
    return _checked(made, label=env.id, render_mode=render_mode)


def _from_object(env: Env, creator: Any, *, root: Path, render_mode: str | None) -> AnyEnv:
    """Call a class or a factory; `max_episode_steps` works as with registered ids."""
    _refuse_foreign_class(creator, env.id)
    if is_worlds(creator):
        return _checked(
            OneWorld(make_worlds(env, creator, root=root, count=1, render_mode=render_mode)),
            label=env.id,
            render_mode=render_mode,
        )
    kwargs = deepcopy(env.kwargs)  # an environment may change a list it was given; its siblings must not see that
    limit = kwargs.pop("max_episode_steps", None) if not takes(creator, "max_episode_steps") else None
    refuse_unknown(creator, kwargs, label=env.id)
    if render_mode is not None and takes(creator, "render_mode"):
        kwargs["render_mode"] = render_mode
    made = _call(env, creator, kwargs, root=root)
    return _limited(_checked(made, label=env.id, render_mode=render_mode), limit)


def make_worlds(env: Env, creator: Any, *, root: Path, count: int, render_mode: str | None = None) -> AnyVector:
    """Make a vector environment of one's own class with `count` worlds."""
    kwargs = {**deepcopy(env.kwargs), "num_envs": count}
    refuse_unknown(creator, kwargs, label=env.id)
    if render_mode is not None and takes(creator, "render_mode"):
        kwargs["render_mode"] = render_mode
    made = _call(env, creator, kwargs, root=root)
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


def _call(env: Env, creator: Any, kwargs: dict[str, Any], *, root: Path) -> Any:
    """Call a project's class or factory, whose neighbours are importable meanwhile."""
    place = env.id.rpartition(":")[0]
    folders = [(root / place).resolve().parent, root] if is_file_reference(env.id) else [root]
    try:
        with importable(*folders), quiet_simulator():
            return creator(**kwargs)
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise _failure(error, creator, label=env.id, root=root, kwargs=env.kwargs) from error


def _refuse_foreign_class(creator: Any, label: str) -> None:
    if not callable(creator):
        raise ConfigError(f"`{label}` is a {type(creator).__name__}, not a class or a function that makes one")
    if not isinstance(creator, type) or issubclass(creator, gymnasium.Env) or is_worlds(creator):
        return
    hint = "derive it from gymnasium.Env"
    if any(base.__module__.partition(".")[0] == "gym" for base in creator.__mro__):
        hint = "it derives from the old `gym`; derive it from gymnasium.Env"
    raise ConfigError(f"`{label}` is not a gymnasium.Env", hint=hint)


def _checked(made: Any, *, label: str, render_mode: str | None) -> AnyEnv:
    if not isinstance(made, gymnasium.Env):
        raise ConfigError(
            f"`{label}` made a {type(made).__name__}, not a gymnasium.Env", hint="return an instance of gymnasium.Env"
        )
    for name in ("observation_space", "action_space"):
        space = getattr(made, name, None)
        if not isinstance(space, gymnasium.Space):
            made.close()
            what = "has no" if space is None else f"has a {type(space).__module__}.{type(space).__name__} as"
            raise ConfigError(f"`{label}` {what} `{name}`", hint=f"set self.{name} to a gymnasium.Space in __init__")
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
            f"`{label}` cannot render as {render_mode}",
            hint=f'its render modes: {", ".join(modes) or "none"}; add "{render_mode}" to metadata["render_modes"] '
            "and take a `render_mode` argument",
        )
    try:
        refuse_undrawable(made, label=label)
    except RlxError:
        made.close()
        raise


def _limited(made: AnyEnv, limit: int | None) -> AnyEnv:
    """Cut episodes where the class (or its spec) declares `max_episode_steps` and nothing does so yet."""
    declared = getattr(type(made.unwrapped), "max_episode_steps", None)
    if limit is None and type(declared) is int:
        limit = declared
    if limit is None and made.spec is not None and not isinstance(made, gymnasium.wrappers.TimeLimit):
        limit = made.spec.max_episode_steps
    layer = made
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.TimeLimit):
            return made
        layer = layer.env
    return wrappers.time_limit(made, limit) if limit is not None else made


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
    try:
        wrapped = creator(made, **deepcopy(wrapper.kwargs))
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise _failure(error, creator, label=label, root=root, kwargs=wrapper.kwargs) from error
    return _checked(wrapped, label=label, render_mode=None)


def changes_only_reward(name: str, *, root: Path) -> bool:
    """Say whether the wrapper of this name is a gymnasium.RewardWrapper; one that cannot be found is told elsewhere."""
    if name in wrappers.REWARD_ONLY:
        return True
    kind: object = wrappers.find(name)
    if kind is None and ":" in name:
        with contextlib.suppress(RlxError):
            kind = load_object(name, root=root, kind="wrapper")
    return isinstance(kind, type) and issubclass(kind, gymnasium.RewardWrapper)


def _failure(
    error: BaseException, creator: Callable[..., Any], *, label: str, root: Path, kwargs: Mapping[str, Any]
) -> RlxError:
    """Say why making failed: a bad argument, a missing one, a missing package, or what the code raised and where."""
    text = str(error)
    unknown = re.search(r"unexpected keyword argument '(\w+)'", text)
    if isinstance(error, TypeError) and unknown and unknown[1] in kwargs:
        return unknown_argument(label, unknown[1], accepted_by(creator))
    needed = re.search(r"missing \d+ required (?:positional|keyword-only) arguments?: (.+?)(?: was raised|$)", text)
    quoted = label if label.startswith("wrapper") else f"`{label}`"
    if isinstance(error, TypeError) and needed:
        names = needed[1].replace("'", "`")
        return ConfigError(f"{quoted} needs the argument {names}", hint="set it in `kwargs`")
    missing = missing_package(error, label, getattr(creator, "__module__", ""))
    return missing or user_error(error, root=root, doing=f"making {quoted}")
