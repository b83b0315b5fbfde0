"""A call of a tool, a resource or a prompt: the key's scope and rate limit, the input, and errors as a model reads
them. Each runs in one of the web server's threads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import InterfaceError, OperationalError
from django.utils import timezone
from rest_framework.exceptions import APIException, PermissionDenied, Throttled
from rest_framework.serializers import Serializer

from memories import budgets, content_policy
from memories.api import shapes
from memories.api.errors import problem_of
from memories.api.throttles import count
from memories.exceptions import MemoryHubError
from memories.mcp_server.callers import MCPCaller
from memories.models import Scope
from memories.text.secrets import effort

# What becomes an answer that says what was wrong. Anything else is a fault of the hub.
EXPECTED = (MemoryHubError, APIException, OperationalError, InterfaceError)


@dataclass(frozen=True)
class AgentCall:
    """A call that may be carried out."""

    asker: MCPCaller
    given: Mapping[str, Any]
    now: datetime

    def read(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated input. Errors: ValidationError."""
        return shapes.validated(expected, dict(self.given))


@dataclass(frozen=True)
class ToolResult:
    """What a model is told, and the same as data."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False


def carry_out(
    asker: MCPCaller, scope: Scope, given: Mapping[str, Any], work: Callable[[AgentCall], ToolResult]
) -> ToolResult:
    """Do the work, or say why not."""
    try:
        with effort.bounded(), budgets.of_request():
            return work(_allowed(asker, scope, given))
    except EXPECTED as error:
        problem = problem_of(error)
        if problem is None:
            raise
        faults = [f"- {fault.pointer.lstrip('/') or 'input'}: {fault.detail}" for fault in problem.faults]
        return ToolResult("\n".join([f"{problem.detail} ({problem.code})", *faults]), is_error=True)
    finally:
        content_policy.flush()


def _allowed(asker: MCPCaller, scope: Scope, given: Mapping[str, Any]) -> AgentCall:
    """Errors: PermissionDenied, Throttled."""
    if scope not in asker.caller.key.scopes:
        raise PermissionDenied(f"This key lacks the scope '{scope}': an operator can make one that has it.")
    allowance = count(asker.caller.key.pk, scope)
    if not allowance.allowed:
        raise Throttled(allowance.reset)
    return AgentCall(asker, given, timezone.now())
