"""/episodes: short summaries of parts of sessions."""

import uuid
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.episodes.serializers import EpisodeChangesSerializer, EpisodeSerializer, EpisodesQuery
from memories.api.v1.facts.serializers import Deletion
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.curation.episodes import delete_episode, edit_episode, forget_episode
from memories.models import Episode, Scope


class EpisodesView(Endpoint):
    @operation(
        "listEpisodes",
        "List a person's episodes, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[EpisodesQuery],
        answers={200: page_of(EpisodeSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(EpisodesQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        rows = lookups.episodes(self.tenant).filter(end_user=person) if person else Episode.objects.none()
        rows = selected(rows, EpisodesQuery, given)
        return self.listed(rows, EpisodeSerializer, given=given, ordering=["-ended_at", "-id"])


class EpisodeView(Endpoint):
    @operation(
        "getEpisode",
        "Get an episode",
        scope=Scope.READ,
        bound=Bound.EPISODE,
        parameters=[etag(200)],
        answers={200: EpisodeSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, episode_id: uuid.UUID) -> Response:
        episode = lookups.require_readable(lookups.episode(tenant=self.tenant, episode_id=episode_id))
        return self.versioned(episode, EpisodeSerializer)

    @operation(
        "changeEpisode",
        "Change the named fields of an episode",
        description=(
            "One that an operator edited or pinned answers 409 `operator_word`. New words that speak to a model answer "
            "409 `review_needed`; so do those of a key that writes as an agent."
        ),
        scope=Scope.WRITE,
        bound=Bound.EPISODE,
        request=EpisodeChangesSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: EpisodeSerializer},
        problems=(404, 409, 412, 423),
    )
    def patch(self, request: Request, episode_id: uuid.UUID) -> Response:
        changes = self.body(EpisodeChangesSerializer)
        edit_episode(changes=changes, write_trust=self.write_trust(), **self._change(episode_id))
        return self.versioned(lookups.episode(tenant=self.tenant, episode_id=episode_id), EpisodeSerializer)

    @operation(
        "deleteEpisode",
        "Forget an episode",
        description="It goes to the trash. No other episode is made of the same turns.",
        scope=Scope.WRITE,
        bound=Bound.EPISODE,
        parameters=[Deletion, if_match()],
        answers={204: None},
        problems=(404, 409, 412, 423),
    )
    def delete(self, request: Request, episode_id: uuid.UUID) -> Response:
        forget = delete_episode if self.query(Deletion)["hard"] else forget_episode
        forget(write_trust=self.write_trust(), **self._change(episode_id))
        return Response(status=204)

    def _change(self, episode_id: uuid.UUID) -> dict[str, Any]:
        """Arguments of every verb on an episode: which one, by whom, when, and at which version."""
        return {
            "episode_id": episode_id,
            "tenant": self.tenant,
            "actor": self.actor,
            "now": self.now,
            "expected_version": self.expected_version(),
        }
