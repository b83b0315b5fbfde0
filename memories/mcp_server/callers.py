"""Who asks: the key, the one person whose memory it is about, and the agent."""

from collections.abc import Mapping
from dataclasses import dataclass

from memories import conf
from memories.api import bound
from memories.api.authentication import IS_MANAGEMENT_KEY, Caller, find_key, is_management_key
from memories.api.named import id_in, key_in
from memories.api.v1.fields import AgentId, Identifier
from memories.audit import Actor
from memories.curation.statements.write_trust import StatedBy, WriteTrust, write_trust_of
from memories.exceptions import InvalidInput, KeyBound
from memories.models import ActorKind, Tenant

_UNKNOWN = (
    "This API key is not known, or has expired or been revoked. Send 'Authorization: Bearer mh_…' or "
    "'X-API-Key: mh_…' with a valid key."
)
_FOR_EVERYBODY = (
    "This key is for all end users of its tenant. MCP takes keys for one end user: make one with "
    "create_api_key --user, or let the tenant allow it (mcp_tenant_keys)."
)
_NOBODY = "This key is for all end users of its tenant: name the one in the header X-Memory-User."


class RefusedRequest(Exception):
    """The request goes no further: HTTP status, JSON-RPC code and what to do."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


@dataclass(frozen=True)
class MCPCaller:
    """The key that asks, about whom, and for which agent ("" for none)."""

    caller: Caller
    user_id: str
    agent_id: str

    @property
    def tenant(self) -> Tenant:
        return self.caller.tenant

    @property
    def speaks_for_user(self) -> bool:
        """Whether what a model writes counts as the person's own word: the key was made so, in so many words."""
        return self.caller.key.speaks_for_user

    @property
    def write_trust(self) -> WriteTrust:
        """Whose word it is what a model writes."""
        return write_trust_of(
            writes_as=self.caller.key.writes_as, stated_by=None if self.speaks_for_user else StatedBy.AGENT
        )


def identify(headers: Mapping[str, str]) -> MCPCaller:
    """Check the key and whom it may name; `headers` by their lower-cased names. Errors: Refused."""
    key = find_key(key_in(headers))
    if key is None:
        if is_management_key(key_in(headers)):
            raise RefusedRequest(403, IS_MANAGEMENT_KEY)
        raise RefusedRequest(401, _UNKNOWN, {"www-authenticate": 'Bearer realm="memory-hub"'})
    caller = Caller(key=key, actor=Actor(kind=ActorKind.KEY, id=str(key.pk), request_id=""))
    if not (key.user_id or conf.rules(key.tenant).mcp_tenant_keys):
        raise RefusedRequest(403, _FOR_EVERYBODY)
    try:
        given = {
            "user_id": id_in(headers, "X-Memory-User", Identifier(), default=key.user_id),
            "agent_id": id_in(headers, "X-Memory-Agent", AgentId(), default=key.agent_id),
        }
        if not given["user_id"]:
            raise RefusedRequest(400, _NOBODY)
        bound.check_bound_ids(given, caller, at="")
    except KeyBound as error:
        raise RefusedRequest(403, error.detail) from None
    except InvalidInput as error:
        [fault] = error.faults
        raise RefusedRequest(400, f"{fault.pointer}: {fault.detail}") from None
    return MCPCaller(caller, given["user_id"], given["agent_id"])
