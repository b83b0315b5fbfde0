"""Every change by a person is a named, audited verb here; admin, API and commands call the same ones."""

from memories.curation.adding import FactDraft, add_fact
from memories.curation.deciding import Choice, Seen, choices_of
from memories.curation.documents import (
    IMPORTED_SOURCE,
    DocumentFact,
    import_document,
)
from memories.curation.episodes import (
    delete_episode,
    edit_episode,
    forget_episode,
    pin_episode,
    restore_episode,
    unpin_episode,
)
from memories.curation.exports import (
    note_export,
)
from memories.curation.fact_batches import (
    expire_facts,
    forget_facts,
    pin_facts,
    undo_facts,
)
from memories.curation.facts import correct_fact, delete_fact, edit_fact, forget_fact, restore_fact
from memories.curation.feedback import give_feedback
from memories.curation.forgetting import confirm_decay, is_confirmable, run_decay
from memories.curation.keeping import expire_fact, lock_fact, pin_fact, unlock_fact, unpin_fact
from memories.curation.keys import authenticate_key, create_api_key, revoke_api_key
from memories.curation.merging import PersonMergePreview, merge_people, preview_person_merge
from memories.curation.merging_facts import FactMergePreview, merge_facts, preview_fact_merge, undo_fact_merge
from memories.curation.merging_profile import (
    Fate,
)
from memories.curation.merging_undo import may_undo_person_merge, undo_person_merge
from memories.curation.off_boarding import (
    OffBoarding,
    off_board_tenant,
    preview_off_boarding,
    take_back_tenant,
)
from memories.curation.operators import (
    OperatorDraft,
    add_operator,
    draft_of,
    save_group,
    seen_of,
    set_password,
    update_operator,
)
from memories.curation.parking import (
    retry_parked,
)
from memories.curation.people import (
    add_person,
    change_external_id,
    person_for_writing,
    seen_of_person,
    update_person,
)
from memories.curation.powers import (
    Powers,
    powers_of,
    powers_of_group,
)
from memories.curation.preferences import (
    set_preferences,
)
from memories.curation.profile import (
    drop_proposed_section,
    release_profile_section,
    restore_profile_section,
    take_proposed_section,
    undo_profile_change,
    write_profile_section,
)
from memories.curation.publishing import publish_fact, withdraw_fact
from memories.curation.replays import sweep_replays
from memories.curation.review import approve_fact, reconsider_fact, reject_fact
from memories.curation.review_batches import approve_items, reject_items, undo_items
from memories.curation.review_decisions import approve_edited, approve_item, keep_both, merge_items, reject_item
from memories.curation.rollback import Preview, preview_rollback, roll_back, undo_rollback
from memories.curation.rollback_selection import Selector
from memories.curation.rotation import put_off_end, rotate_api_key
from memories.curation.runs import retry_extraction, retry_working_memory
from memories.curation.saved_filters import (
    forget_filter,
    save_filter,
)
from memories.curation.second_factors import (
    remove_second_factor,
)
from memories.curation.sessions import delete_session, facts_of_session
from memories.curation.sign_ins import (
    sweep_sign_ins,
)
from memories.curation.splitting import (
    split_fact,
)
from memories.curation.tenants import save_tenant
from memories.curation.throttles import Allowance, count_request
from memories.curation.undo import may_undo, undo_decision

__all__ = [
    "IMPORTED_SOURCE",
    "Allowance",
    "Choice",
    "DocumentFact",
    "FactDraft",
    "FactMergePreview",
    "Fate",
    "OffBoarding",
    "OperatorDraft",
    "PersonMergePreview",
    "Powers",
    "Preview",
    "Seen",
    "Selector",
    "add_fact",
    "add_operator",
    "add_person",
    "approve_edited",
    "approve_fact",
    "approve_item",
    "approve_items",
    "authenticate_key",
    "change_external_id",
    "choices_of",
    "confirm_decay",
    "correct_fact",
    "count_request",
    "create_api_key",
    "delete_episode",
    "delete_fact",
    "delete_session",
    "draft_of",
    "drop_proposed_section",
    "edit_episode",
    "edit_fact",
    "expire_fact",
    "expire_facts",
    "facts_of_session",
    "forget_episode",
    "forget_fact",
    "forget_facts",
    "forget_filter",
    "give_feedback",
    "import_document",
    "is_confirmable",
    "keep_both",
    "lock_fact",
    "may_undo",
    "may_undo_person_merge",
    "merge_facts",
    "merge_items",
    "merge_people",
    "note_export",
    "off_board_tenant",
    "person_for_writing",
    "pin_episode",
    "pin_fact",
    "pin_facts",
    "powers_of",
    "powers_of_group",
    "preview_fact_merge",
    "preview_off_boarding",
    "preview_person_merge",
    "preview_rollback",
    "publish_fact",
    "put_off_end",
    "reconsider_fact",
    "reject_fact",
    "reject_item",
    "reject_items",
    "release_profile_section",
    "remove_second_factor",
    "restore_episode",
    "restore_fact",
    "restore_profile_section",
    "retry_extraction",
    "retry_parked",
    "retry_working_memory",
    "revoke_api_key",
    "roll_back",
    "rotate_api_key",
    "run_decay",
    "save_filter",
    "save_group",
    "save_tenant",
    "seen_of",
    "seen_of_person",
    "set_password",
    "set_preferences",
    "split_fact",
    "sweep_replays",
    "sweep_sign_ins",
    "take_back_tenant",
    "take_proposed_section",
    "undo_decision",
    "undo_fact_merge",
    "undo_facts",
    "undo_items",
    "undo_person_merge",
    "undo_profile_change",
    "undo_rollback",
    "unlock_fact",
    "unpin_episode",
    "unpin_fact",
    "update_operator",
    "update_person",
    "withdraw_fact",
    "write_profile_section",
]
