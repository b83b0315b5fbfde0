"""One address: POST makes a row, GET lists the newest twenty of an owner."""

from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.floor.models import Row


class RowSerializer(serializers.ModelSerializer[Row]):
    class Meta:
        model = Row
        fields = ["id", "owner", "role", "content", "created_at"]


class RowsView(APIView):
    def post(self, request: Request) -> Response:
        serializer = RowSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(serializer.data, status=201)

    def get(self, request: Request) -> Response:
        rows = Row._default_manager.filter(owner=request.query_params["owner"]).order_by("-id")[:20]
        found: Any = RowSerializer(rows, many=True).data
        return Response(found)


urlpatterns = [path("rows", RowsView.as_view())]
