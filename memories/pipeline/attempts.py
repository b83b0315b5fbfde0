"""One claim of a batch with the run that records it: its calls are counted, its failure gives the batch back."""

from dataclasses import dataclass

from django.db import transaction

from memories import conf
from memories.llm.prompts import memory_update
from memories.models import ExtractionRun
from memories.pipeline import debounce, rules_extraction
from memories.pipeline.batches import Batch
from memories.pipeline.debounce import Claim
from memories.pipeline.setbacks import Setback
from memories.pipeline.whose_fault import Calling

RunStatus = ExtractionRun.Status


@dataclass
class Attempt(Calling):
    """A claim with the run that records it."""

    claim: Claim
    run: ExtractionRun | None = None

    def before_call(self) -> None:
        debounce.renew(self.claim)
        self.calls += 1

    def start(self, batch: Batch) -> ExtractionRun:
        """Commit the record of the attempt before its first call."""
        session, llm = self.claim.session, conf.llm()
        extractor = rules_extraction.EXTRACTOR if llm.mode == conf.LLM_RULES else f"llm:{llm.model}"
        with transaction.atomic():
            debounce.hold(self.claim)
            self.run = ExtractionRun.objects.create(
                tenant=session.tenant,
                end_user=session.end_user,
                session=session,
                first_number=batch.first_number,
                last_number=batch.last_number,
                fed_turns=len(batch.turns),
                attempt=self.claim.attempt,
                extractor=extractor,
                prompt_version=memory_update.VERSION if extractor != rules_extraction.EXTRACTOR else extractor,
                guidance_version=session.tenant.guidance_version,
                started_at=self.begun_at,
            )
        return self.run

    def end(self, status: RunStatus, failure: str) -> None:
        """Record how it failed."""
        if self.run is None:
            return
        self.run.status, self.run.failure = status, failure
        self.run.calls, self.run.finished_at = self.calls, self.now()
        # Not save(): an erasure may have deleted the row.
        ended = ExtractionRun.objects.filter(pk=self.run.pk)
        ended.update(status=status, failure=failure, calls=self.calls, finished_at=self.run.finished_at)

    def give_back(self, setback: Setback, status: RunStatus = RunStatus.FAILED) -> None:
        """Postpone or park the batch. One transaction: the lease never ends before the run does."""
        with transaction.atomic():
            parked = debounce.postpone(self.claim, setback, now=self.now())
            self.end(RunStatus.PARKED if parked else status, setback.failure)
