"""Addresses of the page for the person, below /me/."""

from django.urls import path, re_path

from memories.person_page import data, profiles, views

urlpatterns = [
    path("", views.overview, name="person-page"),
    path("open/<str:token>", views.open_page, name="person-open"),
    re_path(r"^colors/(?P<digits>[0-9a-f]{6})\.css$", views.sheet, name="person-color"),
    path("facts/<uuid:fact_id>", views.fact, name="person-fact"),
    path("facts/<uuid:fact_id>/correct", views.correct, name="person-correct"),
    path("facts/<uuid:fact_id>/forget", views.forget, name="person-forget"),
    path("facts/<uuid:fact_id>/restore", views.restore, name="person-restore"),
    path("profiles/<str:name>/<str:pointer>", profiles.field, name="person-field"),
    path("profiles/<str:name>/<str:pointer>/correct", profiles.correct_field, name="person-field-correct"),
    path("conversations", data.conversations, name="person-conversations"),
    path("conversations/<uuid:session_id>", data.conversation, name="person-conversation"),
    path("conversations/<uuid:session_id>/delete", data.delete_conversation, name="person-conversation-delete"),
    path("readers", data.readers, name="person-readers"),
    path("data", data.data, name="person-data"),
    path("data/pause", data.pause, name="person-pause"),
    path("data/resume", data.resume, name="person-resume"),
    path("data/export", data.export, name="person-export"),
    path("data/download", data.download, name="person-download"),
    path("data/erasure", data.ask_for_erasure, name="person-erasure"),
    path("leave", views.leave, name="person-leave"),
]
