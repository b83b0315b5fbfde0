"""The diary of an agent: what it notes for itself about a person."""

from django.utils.translation import gettext_lazy as _

from memories.kinds.kind import Embedded, Kind, Plain, Served
from memories.models import DiaryEntry, DiaryVector

DIARY = Kind(
    "diary",
    "diary",
    DiaryEntry,
    served=Served(6),
    embedded=Embedded(3, DiaryVector, "entry", ("topic", "content"), _("Vectors of diary entries"), since="created_at"),
    is_purged=True,
    plain=Plain(
        listed=_("Diary entries"),
        icon="edit_note",
        in_trail=(_("a diary entry"), _("a diary entry about %(person)s")),
        exported=_("What agents noted for themselves about you"),
        trashed=_("Diary entries to the trash"),
        headings={"en": "Diary:", "zh-hans": "日记："},
        search="memories.retrieval.diary_search",
        api="memories.api.v1.diary.views",
        admin="memories.admin.diary.pages",
        topic="topic",
    ),
)
