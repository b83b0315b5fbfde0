"""/episodes: what happened in a stretch of a session, in short."""

import uuid
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories import curation
from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.serializers.episodes import EpisodeChangesSerializer, EpisodeSerializer, EpisodesQuery
from memories.api.v1.serializers.facts import ANY_STATUS, Deletion, expected_version
from memories.api.v1.serializers.page import page_of
from memories.models import Episode, Scope


class EpisodesView(Endpoint):
    @operation(
        "listEpisodes",
        "List a person's episodes, newest first",
        scope=Scope.READ,
        parameters=[EpisodesQuery],
        answers={200: page_of(EpisodeSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(EpisodesQuery)
        person = lookups.told_person(tenant=self.tenant, user_id=given["user_id"])
        rows = lookups.episodes(self.tenant).filter(end_user=person) if person else Episode.objects.none()
        return self.listed(
            rows.filter(**_filters(given)), EpisodeSerializer, given=given, ordering=["-ended_at", "-id"]
        )


class EpisodeView(Endpoint):
    @operation(
        "getEpisode",
        "Get an episode",
        scope=Scope.READ,
        parameters=[etag(200)],
        answers={200: EpisodeSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, episode_id: uuid.UUID) -> Response:
        return self._shown(lookups.tell(lookups.episode(tenant=self.tenant, episode_id=episode_id)))

    @operation(
        "changeEpisode",
        "Change the named fields of an episode",
        description="One that an operator edited or pinned answers 409 `operator_word`.",
        scope=Scope.WRITE,
        request=EpisodeChangesSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: EpisodeSerializer},
        problems=(404, 409, 412, 423),
    )
    def patch(self, request: Request, episode_id: uuid.UUID) -> Response:
        changes = self.body(EpisodeChangesSerializer)
        curation.edit_episode(changes=changes, **self._change(episode_id))
        return self._answer(episode_id)

    @operation(
        "deleteEpisode",
        "Forget an episode",
        description="It goes to the trash. No other episode is made of the same turns.",
        scope=Scope.WRITE,
        parameters=[Deletion, if_match()],
        answers={204: None},
        problems=(404, 409, 412, 423),
    )
    def delete(self, request: Request, episode_id: uuid.UUID) -> Response:
        forget = curation.delete_episode if self.query(Deletion)["hard"] else curation.forget_episode
        forget(**self._change(episode_id))
        return Response(status=204)

    def _answer(self, episode_id: uuid.UUID) -> Response:
        """The episode as it is now, after a change."""
        return self._shown(lookups.episode(tenant=self.tenant, episode_id=episode_id))

    def _shown(self, episode: Episode) -> Response:
        """The episode with its version as ETag."""
        return Response(self.shown(episode, EpisodeSerializer), headers={"ETag": f'"{episode.version}"'})

    def _change(self, episode_id: uuid.UUID) -> dict[str, Any]:
        """What every verb is given: which episode, by whom, when, and at which version."""
        return {
            "episode_id": episode_id,
            "tenant": self.tenant,
            "actor": self.actor,
            "now": self.now,
            "expected_version": expected_version(self.request.headers.get("If-Match")),
        }


def _filters(given: dict[str, Any]) -> dict[str, Any]:
    """The list's parameters as look-ups of the ORM."""
    wanted = {
        "status": None if given["status"] == ANY_STATUS else given["status"],
        "session__external_id": given.get("session_id"),
        "session__agent_id": given.get("agent_id"),
        "summary__icontains": given.get("q"),
    }
    return {name: value for name, value in wanted.items() if value is not None}
