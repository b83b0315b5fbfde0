"""A tenant's own language model: which one, where, with which key, at what price, and how much of it a day may use."""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from threading import Lock
from time import perf_counter

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.curation.tenants.settings import check_not_off_boarded
from memories.exceptions import InvalidInput, ModelError, ModelTimeout, ModelUntested, NotFound, PreconditionFailed
from memories.llm import client
from memories.llm.addresses import AddressRefused, check_address
from memories.models import LanguageModel, Tenant
from memories.queue import circuit_breaker, own_models, spending
from memories.text.secrets.scrubbing import scrubbed_text

LONGEST_MODEL, LONGEST_KEY = 100, 500
# A tested endpoint answers within this time or does not.
TEST_SECONDS = 10
_testing = Lock()
MOST_PRICE, MOST_COST, MOST_TOKENS = 10_000, 1_000_000, 1_000_000_000_000


@dataclass(frozen=True)
class ModelSettings:
    """What the tenant has of its own; empty and None: the hub's, or no cap.

    api_key: None keeps the stored one, which counts only while the address stays the same.
    """

    model: str = ""
    base_url: str = ""
    api_key: str | None = None
    prompt_price: Decimal | None = None
    completion_price: Decimal | None = None
    daily_tokens: int | None = None
    daily_cost: Decimal | None = None
    sees_pictures: bool = False


# Names of fields that the audit event counts when they changed. The key's own value is never told.
_FIELDS = (
    "model", "base_url", "api_key", "prompt_price", "completion_price", "daily_tokens", "daily_cost", "sees_pictures",
)  # fmt: skip
_OF_THE_CALL = frozenset({"model", "base_url", "api_key"})
_CAPS = frozenset({"daily_tokens", "daily_cost", "prompt_price", "completion_price"})


def save_language_model(
    *, tenant_id: uuid.UUID, settings: ModelSettings, expected_version: int | None, actor: Actor, now: datetime
) -> LanguageModel:
    """Store what the tenant has of its own. What waited for another endpoint or for a cap is then due.

    `expected_version`: that which the caller saw, 0 for none; None: whichever it is.

    A changed address needs its key anew: otherwise whoever may enter an address could have the key sent to a server of
    their own. The name in an address is resolved before the transaction.

    Errors: InvalidInput with the field; NotFound; PreconditionFailed when somebody changed it meanwhile; Conflict when
    the tenant is off-boarded.
    """
    settings = replace(settings, model=scrubbed_text(settings.model, longest=LONGEST_MODEL))
    _check(settings)
    with transaction.atomic():
        tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id).first()
        if tenant is None:
            raise NotFound
        check_not_off_boarded(tenant)
        row = LanguageModel.objects.select_for_update().filter(pk=tenant_id).first()
        before = row or LanguageModel(tenant=tenant, version=0)
        if expected_version not in (None, before.version):
            raise PreconditionFailed
        after = LanguageModel(tenant=tenant, version=before.version + 1, updated_at=now)
        for name in _FIELDS:
            setattr(after, name, getattr(settings, name))
        after.api_key = _key_of(settings, before)
        changed = [name for name in _FIELDS if getattr(after, name) != getattr(before, name)]
        if not changed:
            return before
        # Its own count even where the hub's mode is off, and nothing is asked.
        if after.daily_cost is not None and after.prompt_price is None and conf.llm(after).prices is None:
            raise InvalidInput.at("daily_cost", _("A cap in dollars needs the prices of this model."))
        after.save(force_insert=row is None, force_update=row is not None)
        if _OF_THE_CALL.intersection(changed):
            circuit_breaker.forget(tenant_id)
        audit.record(
            actor=actor,
            verb="change_model",
            target=tenant,
            object_id=tenant_id,
            tenant=tenant,
            now=now,
            counts=dict.fromkeys(changed, 1),
        )
    if _CAPS.intersection(changed) or _OF_THE_CALL.intersection(changed):
        spending.resume(tenant_id)
    return after


@dataclass(frozen=True)
class ModelTest:
    """A model that answered, and after how many milliseconds."""

    model: str
    milliseconds: int


def try_language_model(*, tenant_id: uuid.UUID, settings: ModelSettings | None = None) -> ModelTest:
    """Ask the model of the tenant's calls, its own or the hub's, for one word, without anybody's data.

    `settings`: as if they were saved; nothing is. As when saving, the stored key goes to the stored address alone.

    Errors: ModelUntested: none is configured, another test is running, or the endpoint does not answer; InvalidInput
    with the field.
    """
    config = own_models.config_of(tenant_id) if settings is None else _config_of(tenant_id, settings)
    if not client.is_configured(config):
        raise ModelUntested(_("No model is configured, so there is nothing to ask."))
    # A thread of the web server waits: one at a time, and not for long.
    if not _testing.acquire(blocking=False):
        raise ModelUntested(_("Another test is running. Try again in a few seconds."))
    began = perf_counter()
    try:
        client.check(config=replace(config, timeout=min(config.timeout, TEST_SECONDS)))
    except ModelTimeout as error:
        late = _("No answer within %(seconds)d seconds.") % {"seconds": TEST_SECONDS}
        raise ModelUntested(late, code=error.code) from None
    except ModelError as error:
        raise ModelUntested(error.detail, code=error.code) from None
    finally:
        _testing.release()
    return ModelTest(config.model, round(1_000 * (perf_counter() - began)))


def reencrypt_model_keys() -> tuple[int, int]:
    """Encrypt all keys under the present one; returns how many had another one, and how many no key decrypts.

    A second run changes nothing; after a crash, a run continues with what is left.
    """
    renewed = unreadable = 0
    for pk in LanguageModel.objects.exclude(api_key="").order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            row = LanguageModel.objects.select_for_update().filter(pk=pk).first()
            if row is None:
                continue
            token = conf.renewed_model_key(row.api_key)
            if token is None:
                unreadable += 1
            elif token != row.api_key:
                LanguageModel.objects.filter(pk=pk).update(api_key=token)
                renewed += 1
    return renewed, unreadable


def _config_of(tenant_id: uuid.UUID, settings: ModelSettings) -> conf.LLMConfig:
    """The model that the tenant's calls would ask with these settings. Errors: InvalidInput."""
    _check(settings)
    before = own_models.own_of(tenant_id) or LanguageModel(tenant_id=tenant_id)
    own = LanguageModel(tenant_id=tenant_id, model=settings.model, base_url=settings.base_url)
    own.api_key = _key_of(settings, before)
    return conf.llm(own)


def _check(settings: ModelSettings) -> None:
    if settings.base_url:
        try:
            check_address(settings.base_url)
        except AddressRefused as refused:
            raise InvalidInput.at("base_url", str(refused), code=refused.code) from None
    elif settings.api_key:
        raise InvalidInput.at("api_key", _("A key belongs to an address: enter it, too."))
    if (settings.prompt_price is None) != (settings.completion_price is None):
        raise InvalidInput.at("completion_price", _("Enter both prices, or none."))


def _key_of(settings: ModelSettings, before: LanguageModel) -> str:
    """The key to store, encrypted."""
    if not settings.base_url:
        return ""
    is_same_place = before.base_url == settings.base_url
    if is_same_place and before.api_key and settings.api_key == conf.decrypted_model_key(before.api_key):
        # Encrypted anew it would look like another one.
        return before.api_key
    if settings.api_key is not None:
        return conf.encrypt_model_key(settings.api_key)
    if before.api_key and not is_same_place:
        raise InvalidInput.at("api_key", _("The address is another one: enter its key, or remove the stored one."))
    return before.api_key
