"""The judge: casbin, told of the rules that speak of a call and asked whether they allow it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from stanchion import ConfigurationError

from .patterns import wild
from .statements import Rule

SHIPPED_MODEL: Final = Path(__file__).with_name("model.conf")

CASBIN_LOGGERS: Final = ("casbin", "casbin.policy", "casbin.enforcer", "casbin.role")
"""What making an enforcer disables; another part of the program may use them."""

QUIET: Final = logging.Logger("stanchion.rbac.casbin", logging.CRITICAL + 1)  # noqa: LOG001 # nobody is to turn it on
"""For casbin, which would write what callers send into its log, line ends included."""

REQUEST: Final = ["r_roles", "r_tenant", "r_method", "r_target"]
POLICY: Final = ["p_role", "p_tenant", "p_method", "p_target", "p_eft"]


class Judge:
    """An enforcer of casbin with one model and, for each question, its own rules.

    What a caller sends is only ever a value that the model's matcher compares; it is never part
    of an expression.
    """

    def __init__(self, model: Path | str | None = None) -> None:
        """Read the model.

        Args:
            model: The path of a model; by default the one that is shipped.

        Raises:
            ConfigurationError: It cannot be read, its requests or rules are of another form
                than the shipped model's, it has role definitions, which are resolved before,
                or it evaluates text.
        """
        self._enforcer = _enforcer_of(SHIPPED_MODEL if model is None else Path(model))
        self._rules: list[list[str]] = []
        self._enforcer.model["p"]["p"].policy = self._rules
        self._turn = Lock()

    def allows(
        self, rules: Sequence[Rule], roles: frozenset[str], tenant: str, method: str, target: str
    ) -> bool:
        """Say whether *rules* allow the call; without a rule nothing is allowed."""
        if not rules:  # casbin would compare the call with a rule made of empty texts
            return False

        with self._turn:  # who may see what is also asked from other threads
            self._rules[:] = [
                [rule.role, rule.tenant, rule.method, rule.target, rule.effect] for rule in rules
            ]
            return bool(self._enforcer.enforce(roles, tenant, method, target))


def _enforcer_of(path: Path) -> Any:
    """Make an enforcer, and leave casbin's own loggers as they were."""
    import casbin  # pyright: ignore[reportMissingTypeStubs] # it has none; dear to import

    try:
        text = path.read_text(encoding="utf-8")
        model: Any = casbin.Enforcer.new_model(text=text)
        _check_model(path, model)
        loggers = [logging.getLogger(name) for name in CASBIN_LOGGERS]
        disabled = [logger.disabled for logger in loggers]
        enforcer: Any = casbin.Enforcer(model)
        for logger, was in zip(loggers, disabled, strict=True):
            logger.disabled = was

        enforcer.logger = QUIET
        enforcer.add_function("wild", wild)
        # Asked once, so that a matcher that cannot be read is found at the start.
        model["p"]["p"].policy = [["a", "*", "*", "*", "allow"]]
        enforcer.enforce(frozenset({"a"}), "", "tools/call", "a")
    except ConfigurationError:
        raise
    except Exception as error:  # whatever casbin and the evaluator raise
        raise ConfigurationError(f"RBAC: the model {path} cannot be used: {error}") from error

    return enforcer


def _check_model(path: Path, model: Any) -> None:
    if model["r"]["r"].tokens != REQUEST or model["p"]["p"].tokens != POLICY:
        raise ConfigurationError(
            f"RBAC: the model {path} must have r = roles, tenant, method, target and "
            "p = role, tenant, method, target, eft"
        )

    if "g" in model.keys():  # noqa: SIM118 # casbin's model is no mapping
        raise ConfigurationError(f"RBAC: the model {path} defines roles, which are resolved before")

    if "eval(" in model["m"]["m"].value.replace(" ", ""):
        raise ConfigurationError(f"RBAC: the model {path} evaluates text")
