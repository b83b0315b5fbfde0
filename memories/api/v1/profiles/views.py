"""/profiles: what is known of a person in the form of the tenant's own schemas; fetched, and never searched."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint, ManagementEndpoint
from memories.api.schema import etag, if_match, management, operation
from memories.api.v1.profiles.serializers import (
    AgentQuery,
    PersonProfileQuery,
    PersonProfileSerializer,
    ProfileSchemaSerializer,
    ProfileSchemasSerializer,
    ProfileSettingsSerializer,
)
from memories.curation.tenants.profile_schemas import delete_profile_schema, profile_schema, put_profile_schema
from memories.exceptions import NotFound
from memories.models import ProfileSchema, Scope
from memories.models.memories.visibility import Viewer
from memories.profiles import PersonProfile, read_profile, schemas_for

_NAME = OpenApiParameter("name", OpenApiTypes.STR, OpenApiParameter.PATH)


class ProfilesView(Endpoint):
    @operation(
        "listProfiles",
        "List the profiles that the tenant defined, with their schemas",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[AgentQuery],
        answers={200: ProfileSchemasSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(AgentQuery)
        agent_id = given.get("agent_id") or ""
        rows = ProfileSchema.objects.present().filter(tenant=self.tenant)
        return Response(ProfileSchemasSerializer({"profiles": rows.for_agent(agent_id) if agent_id else rows}).data)


class PersonProfileView(Endpoint):
    @operation(
        "getPersonProfile",
        "Get a person's profile in the form of a schema of the tenant's own",
        description=(
            "Read from the facts of the moment. A field that nobody stated, or whose value the schema does not allow, "
            "is not in the document."
        ),
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[PersonProfileQuery, _NAME, etag(200)],
        answers={200: PersonProfileSerializer},
        problems=(404,),
    )
    def get(self, request: Request, name: str) -> Response:
        given = self.query(PersonProfileQuery)
        agent_id = given.get("agent_id") or ""
        row = next((one for one in schemas_for(self.tenant, agent_id) if one.name == name), None)
        if row is None:
            raise NotFound
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        found = PersonProfile(row)
        if person and person.serve and self.tenant.serve:
            found = read_profile(person, row, Viewer(agent_id), now=self.now, with_evidence=True)
        shown = PersonProfileSerializer(found, context={"user_id": given["user_id"]}).data
        return Response(shown, headers={"ETag": f'"{found.revision}"'})


class TenantProfilesView(ManagementEndpoint):
    @management(
        "listTenantProfiles",
        "List the profiles of a tenant, with their schemas",
        answers={200: ProfileSchemasSerializer},
        problems=(404,),
    )
    def get(self, request: Request, slug: str) -> Response:
        rows = ProfileSchema.objects.present().filter(tenant=self.tenant)
        return Response(ProfileSchemasSerializer({"profiles": rows}).data)


class TenantProfileView(ManagementEndpoint):
    @management(
        "getTenantProfile",
        "Get a profile of a tenant with its schema",
        parameters=[_NAME, etag(200)],
        answers={200: ProfileSchemaSerializer},
        problems=(404,),
    )
    def get(self, request: Request, slug: str, name: str) -> Response:
        return self.versioned(profile_schema(self.tenant, name), ProfileSchemaSerializer)

    @management(
        "putTenantProfile",
        "Define a profile by a JSON Schema, or give it another one",
        description=(
            "From the next extraction on. Values of a field that is gone are no values of a later one of the same "
            "name; values that the schema no longer allows are not served, and named as `invalid`."
        ),
        request=ProfileSettingsSerializer,
        parameters=[_NAME, if_match(), etag(200, 201)],
        answers={200: ProfileSchemaSerializer, 201: ProfileSchemaSerializer},
        problems=(404, 409, 412),
    )
    def put(self, request: Request, slug: str, name: str) -> Response:
        given = self.body(ProfileSettingsSerializer)
        row, is_new = put_profile_schema(
            tenant=self.tenant,
            name=name,
            schema=given["schema"],
            agent_id=given.get("agent_id") or "",
            in_context=given["in_context"],
            actor=self.actor,
            now=self.now,
            expected_version=self.expected_version(),
        )
        return self.versioned(row, ProfileSchemaSerializer, status=201 if is_new else 200)

    @management(
        "deleteTenantProfile",
        "Remove a profile of a tenant",
        description="Nothing fills or serves it any more. The facts that were its values stay facts.",
        parameters=[_NAME, if_match()],
        answers={204: None},
        problems=(404, 409, 412),
    )
    def delete(self, request: Request, slug: str, name: str) -> Response:
        delete_profile_schema(
            tenant=self.tenant, name=name, actor=self.actor, now=self.now, expected_version=self.expected_version()
        )
        return Response(status=204)
