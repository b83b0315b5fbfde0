"""Vectors of turns, facts and episodes, each in the space of the model that made it.

Spaces are never mixed.
"""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField

from memories.models.columns import DERIVED, NUMBER, SPACE, TEXT, VALUE, Columns
from memories.models.conversations.conversations import Session, Turn
from memories.models.memories.episodes import Episode
from memories.models.memories.facts import Fact
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class EmbeddingSpaceQuerySet(models.QuerySet["EmbeddingSpace"]):
    def serving(self) -> Self:
        """The space that queries are asked in; empty before the first text was embedded."""
        return self.filter(state=EmbeddingSpace.SpaceState.SERVING)

    def building(self) -> Self:
        """The space that is to serve next, while `manage.py reembed` fills it."""
        return self.filter(state=EmbeddingSpace.SpaceState.BUILDING)

    def with_clock(self) -> Self:
        """Each row with the database's time as `clock`."""
        return self.annotate(clock=Now())


class EmbeddingSpace(models.Model):
    """The vectors of one embedding model, and how its endpoint is doing."""

    class SpaceState(models.TextChoices):
        SERVING = "serving", _("Serving")
        BUILDING = "building", _("Building")
        RETIRED = "retired", _("Retired")

    id = models.BigAutoField(primary_key=True)
    model = models.CharField(max_length=120, unique=True, help_text="Of the embedding, e.g. use-multilingual-3.")
    dimensions = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=SpaceState.choices)
    created_at = models.DateTimeField()
    refused = models.PositiveIntegerField(
        default=0, help_text="Texts that the endpoint will never take: found by their words alone."
    )
    failures = models.PositiveIntegerField(default=0, help_text="Of the endpoint, in a row.")
    failure = models.CharField(max_length=40, blank=True, help_text="Code of the last one.")
    paused_until = models.DateTimeField(null=True, help_text="Nobody asks the endpoint before.")
    columns = Columns(waived="names a model; counts, times and codes")

    clock: datetime  # only on rows read with_clock()

    objects = EmbeddingSpaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["state"], name="embedding_one_serving", condition=Q(state="serving")),
            models.UniqueConstraint(fields=["state"], name="embedding_one_building", condition=Q(state="building")),
        ]

    def __str__(self) -> str:
        return f"Embedding space {self.model}"


class Vector(models.Model):
    """A unit vector (length 1) as the model gave it, in half precision and in line with its row.

    The row goes with its text by ON DELETE CASCADE in the database itself (see the migration): also one that is
    written while the text is deleted. The other references are copies that spare a join, without constraints.
    """

    id = models.BigAutoField(primary_key=True)
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+", db_index=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    end_user = models.ForeignKey(
        EndUser, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    language = models.CharField(max_length=2, help_text="zh, or en for everything else.")
    vector = HalfVectorField()

    class Meta:
        abstract = True


class TurnVector(Vector):
    turn = models.ForeignKey(
        Turn, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(
        Session, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    number = models.PositiveIntegerField(help_text="Of the turn in its session.")
    columns = Columns(
        turn=VALUE, session=VALUE, language=TEXT, id=NUMBER, space=SPACE, vector=DERIVED,
        number=NUMBER,
    )  # fmt: skip

    class Meta:
        verbose_name = _("turn vector")
        verbose_name_plural = _("turn vectors")
        constraints = [
            # Two embedders at work on one turn leave one row. Serves the cascade from the turn, too.
            models.UniqueConstraint(fields=["turn", "space", "tenant"], name="turn_vector_once"),
        ]
        indexes = [
            # Serves reading all of one person's vectors.
            models.Index(fields=["end_user", "space"], name="turn_vector_of_end_user_idx"),
        ]

    def __str__(self) -> str:
        return f"Vector of turn {self.turn_id}"


class FactVector(Vector):
    fact = models.ForeignKey(
        Fact, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    text_digest = models.BinaryField(max_length=32, help_text="The fact's content_hash when it was made.")
    columns = Columns(
        fact=VALUE, language=TEXT, id=NUMBER, space=SPACE, vector=DERIVED, text_digest=DERIVED,
    )  # fmt: skip

    class Meta:
        verbose_name = _("fact vector")
        verbose_name_plural = _("fact vectors")
        constraints = [
            # One vector per fact and space, replaced when the text changes. Serves the cascade from the fact, too.
            models.UniqueConstraint(fields=["fact", "space", "tenant"], name="fact_vector_once"),
        ]
        indexes = [
            # Serves reading all of one person's vectors.
            models.Index(fields=["end_user", "space"], name="fact_vector_of_end_user_idx"),
        ]

    def __str__(self) -> str:
        return f"Vector of fact {self.fact_id}"


class EpisodeVector(Vector):
    episode = models.ForeignKey(
        Episode, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    text_digest = models.BinaryField(max_length=32, help_text="The episode's content_hash when it was made.")
    columns = Columns(
        episode=VALUE, language=TEXT, id=NUMBER, space=SPACE, vector=DERIVED,
        text_digest=DERIVED,
    )  # fmt: skip

    class Meta:
        verbose_name = _("episode vector")
        verbose_name_plural = _("episode vectors")
        constraints = [
            # One vector per episode and space, replaced when the text changes. Serves the cascade from it, too.
            models.UniqueConstraint(fields=["episode", "space", "tenant"], name="episode_vector_once"),
        ]
        indexes = [
            # Serves reading all of one person's vectors.
            models.Index(fields=["end_user", "space"], name="episode_vector_of_end_user_idx"),
        ]

    def __str__(self) -> str:
        return f"Vector of episode {self.episode_id}"
