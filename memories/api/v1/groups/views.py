"""/groups: who belongs to a group, and what its members share."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound, people_of
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.fields import page_of
from memories.api.v1.groups.serializers import (
    GroupChangesSerializer,
    GroupFactQuery,
    GroupFactSerializer,
    GroupMemberSerializer,
    GroupPageQuery,
    GroupSerializer,
    GroupsQuery,
    MemberQuery,
    MemberSetSerializer,
    NewGroupFactSerializer,
    NewGroupSerializer,
    StoredGroupFactSerializer,
    shown,
)
from memories.curation.groups.facts import delete_group_fact, state_group_fact, withdraw_group_fact
from memories.curation.groups.membership import change_group, create_group, delete_group, remove_member, set_member
from memories.curation.people.records import person_for_writing
from memories.exceptions import InvalidInput, KeyBound
from memories.models import EndUser, GroupEvidence, GroupMember, MemoryGroup, Scope


class GroupsView(Endpoint):
    @operation(
        "listGroups",
        "List groups",
        description="All of the tenant's; with `user_id` those of which this person is a member.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[GroupsQuery],
        answers={200: page_of(GroupSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(GroupsQuery)
        rows = MemoryGroup.objects.present().filter(tenant=self.tenant)
        if "user_id" in given:
            person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
            rows = rows.filter(members__end_user=person) if person else rows.none()
        return self.listed(rows, GroupSerializer, given=given)

    @operation(
        "addGroup",
        "Make a group",
        description="A team, a project, a household or another one; it has no members yet.",
        scope=Scope.WRITE,
        bound=Bound.GROUPS,
        request=NewGroupSerializer,
        answers={201: GroupSerializer},
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        group = create_group(tenant=self.tenant, actor=self.actor, now=self.now, **self.body(NewGroupSerializer))
        return Response(self.shown(group, GroupSerializer), status=201)


class GroupView(Endpoint):
    @operation(
        "getGroup",
        "Get a group",
        scope=Scope.READ,
        bound=Bound.GROUP,
        answers={200: GroupSerializer},
        problems=(404,),
    )
    def get(self, request: Request, group_id: UUID) -> Response:
        return Response(self.shown(lookups.group(tenant=self.tenant, group_id=group_id), GroupSerializer))

    @operation(
        "changeGroup",
        "Give a group another name or kind",
        scope=Scope.WRITE,
        bound=Bound.GROUPS,
        request=GroupChangesSerializer,
        answers={200: GroupSerializer},
        problems=(404,),
    )
    def patch(self, request: Request, group_id: UUID) -> Response:
        given = self.body(GroupChangesSerializer)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        changed = change_group(group_id=group.pk, actor=self.actor, now=self.now, **given)
        return Response(self.shown(changed, GroupSerializer))

    @operation(
        "deleteGroup",
        "Delete a group",
        description=(
            "It goes to the trash with its members and facts: from now on nobody's agents are told of it. An operator "
            "can restore it. 423 while somebody with data in it is restricted; 409 `review_needed` for a key that "
            "writes as an agent where members said something in it."
        ),
        scope=Scope.WRITE,
        bound=Bound.GROUPS,
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, group_id: UUID) -> Response:
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        delete_group(group_id=group.pk, actor=self.actor, now=self.now, write_trust=self.write_trust())
        return Response(status=204)


class GroupMembersView(Endpoint):
    @operation(
        "listGroupMembers",
        "List the members of a group, the first to join first",
        scope=Scope.READ,
        bound=Bound.GROUPS,
        parameters=[GroupPageQuery],
        answers={200: page_of(GroupMemberSerializer)},
        problems=(404,),
    )
    def get(self, request: Request, group_id: UUID) -> Response:
        given = self.query(GroupPageQuery)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        # The second membership of two who were merged is shown as the first.
        rows = GroupMember.objects.filter(tenant=self.tenant, group=group, end_user__merged_into=None)
        rows = rows.select_related("end_user")
        return self.listed(rows, GroupMemberSerializer, given=given, ordering=("created_at", "id"))

    @operation(
        "setGroupMember",
        "Add a member, or say whether one may write",
        description="From now on the person's agents are told what the group knows. The same again changes nothing.",
        scope=Scope.WRITE,
        bound=Bound.GROUPS,
        request=MemberSetSerializer,
        answers={200: GroupMemberSerializer, 201: GroupMemberSerializer},
        problems=(404, 410, 423),
    )
    def put(self, request: Request, group_id: UUID) -> Response:
        given = self.body(MemberSetSerializer)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        person = person_for_writing(tenant=self.tenant, user_id=given["user_id"], now=self.now)
        member, is_new = set_member(
            group_id=group.pk, end_user=person, may_write=given["may_write"], actor=self.actor, now=self.now
        )
        return Response(self.shown(member, GroupMemberSerializer), status=201 if is_new else 200)

    @operation(
        "removeGroupMember",
        "Let a member leave a group",
        description="Their agents are told nothing of it from now on. What they said there stays.",
        scope=Scope.WRITE,
        bound=Bound.GROUPS,
        parameters=[MemberQuery],
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, group_id: UUID) -> Response:
        given = self.query(MemberQuery)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        person = lookups.person(tenant=self.tenant, user_id=given["user_id"])
        remove_member(group_id=group.pk, end_user=person, actor=self.actor, now=self.now)
        return Response(status=204)


class _GroupFactEndpoint(Endpoint):
    """What the views of a group's facts share."""

    @property
    def visible_ids(self) -> set[str] | None:
        """The ids that the answer can contain; None: all."""
        if not self.caller.user_id:
            return None
        return set(people_of(self.caller).values_list("external_id", flat=True))


class GroupFactsView(_GroupFactEndpoint):
    @operation(
        "listGroupFacts",
        "List what a group knows, what was said last first",
        scope=Scope.READ,
        bound=Bound.GROUP,
        parameters=[GroupPageQuery],
        answers={200: page_of(GroupFactSerializer)},
        problems=(404,),
    )
    def get(self, request: Request, group_id: UUID) -> Response:
        given = self.query(GroupPageQuery)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        rows, order = lookups.group_facts(group), ("-said_at", "-id")
        return self.listed(rows, GroupFactSerializer, given=given, ordering=order, only=self.visible_ids)

    @operation(
        "addGroupFact",
        "State a fact of a group, as one of its members",
        description=(
            "The agents of all members are told it. What the group knows already rests on this member, too: 200. A "
            "text that speaks to a model or may hold a secret, and what an agent or a tool states, answers 409 "
            "`review_needed`. Somebody who is no member answers 409 `not_a_member`, one who may only read "
            "`read_only_member`."
        ),
        scope=Scope.WRITE,
        bound=Bound.GROUP,
        request=NewGroupFactSerializer,
        answers={200: StoredGroupFactSerializer, 201: StoredGroupFactSerializer},
        problems=(404, 409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request, group_id: UUID) -> Response:
        given = self.body(NewGroupFactSerializer)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        person = lookups.require_unrestricted(lookups.person(tenant=self.tenant, user_id=given["user_id"]))
        about = None
        if "about_user_id" in given:
            about = lookups.find_person(tenant=self.tenant, user_id=given["about_user_id"])
            if about is None:
                raise InvalidInput.at("/about_user_id", "There is no such person.")
        stated = state_group_fact(
            group_id=group.pk,
            end_user=person,
            about=about,
            content=given["content"],
            agent_id=self.caller.agent_id,
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(given.get("stated_by")),
        )
        fact = lookups.group_fact(group=group, fact_id=stated.row.pk)
        # The kept answer names everybody who said it, and whom it is about: it goes with any of them.
        people = GroupEvidence.objects.filter(fact=fact).values_list("end_user", flat=True)
        self.subjects.update({*people, *([fact.about_id] if fact.about_id else [])})
        answer = shown(fact, only=self.visible_ids, redactions=stated.redactions)
        return Response(answer, status=201 if stated.is_new else 200)


class GroupFactView(_GroupFactEndpoint):
    @operation(
        "deleteGroupFact",
        "Delete a fact of a group, or withdraw what one member said",
        description=(
            "With `user_id`, and with a key for one person, the fact stays if others said it, too. Else it goes to the "
            "trash, from which an operator can restore it. A key that writes as an agent gets 409 `review_needed` for "
            "what a member said."
        ),
        scope=Scope.WRITE,
        bound=Bound.GROUP,
        parameters=[GroupFactQuery],
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, group_id: UUID, fact_id: UUID) -> Response:
        given = self.query(GroupFactQuery)
        group = lookups.group(tenant=self.tenant, group_id=group_id)
        person: EndUser | None = None
        if "user_id" in given:
            person = lookups.require_unrestricted(lookups.person(tenant=self.tenant, user_id=given["user_id"]))
        elif self.caller.is_bound:
            raise KeyBound("This key is for one agent alone: name by user_id whose statement is withdrawn.")
        fact = lookups.group_fact(group=group, fact_id=fact_id)
        if person is None:
            delete_group_fact(fact_id=fact.pk, actor=self.actor, now=self.now, write_trust=self.write_trust())
        else:
            withdraw_group_fact(
                fact_id=fact.pk,
                end_user=person,
                agent_id=self.caller.agent_id,
                actor=self.actor,
                now=self.now,
                write_trust=self.write_trust(),
            )
        return Response(status=204)
