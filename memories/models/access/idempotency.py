"""First answers of requests that came with an Idempotency-Key; each is kept for a day."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.access.api_keys import APIKey
from memories.models.columns import CODE, VALUE, Column, Columns
from memories.models.memories.facts import Fact
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent

_COPY = "a copy, kept for a day, of an answer to the application: of exported data, and perhaps of other people's"


class IdempotencyRecord(OfParent):
    """Written in the transaction of the operation itself, so that the two are never apart."""

    id = models.BigAutoField(primary_key=True)
    api_key = models.ForeignKey(APIKey, on_delete=models.CASCADE, related_name="+", db_index=False)
    endpoint = models.CharField(max_length=40, help_text="The operation's id in the schema.")
    # Of the key too only a digest, and a keyed one: callers make keys of whatever they like, names of people included.
    key_digest = models.BinaryField(max_length=32)
    request_digest = models.BinaryField(max_length=32, help_text="Keyed, of path, query and body as they came.")
    status = models.PositiveSmallIntegerField(default=0)
    etag = models.CharField(max_length=20, blank=True)
    body = models.BinaryField(default=bytes)
    end_users = models.ManyToManyField(EndUser, related_name="+", help_text="Whom the answer tells of.")
    # Where it quotes a fact it goes with the fact: a hard delete leaves no text.
    fact = models.ForeignKey(Fact, null=True, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    columns = Columns(
        endpoint=CODE, status=VALUE, fact=VALUE, created_at=VALUE, id=Column(omitted=_COPY),
        api_key=Column(omitted=_COPY), key_digest=Column(erased=True, omitted=_COPY),
        request_digest=Column(erased=True, omitted=_COPY), etag=Column(waived=CODE.waived, omitted=_COPY),
        body=Column(erased=True, omitted=_COPY),
    )  # fmt: skip

    class Meta:
        verbose_name = _("idempotency record")
        verbose_name_plural = _("idempotency records")
        constraints = [
            # Serves the look-up, and makes a parallel double wait for the first.
            models.UniqueConstraint(
                fields=["api_key", "endpoint", "key_digest", "tenant"], name="idempotency_key_once"
            ),
        ]
        indexes = [
            # Serves taking away what is older than a day.
            models.Index(fields=["created_at"], name="idempotency_oldest_idx"),
        ]

    def __str__(self) -> str:
        return f"Idempotency record {self.pk}"
