"""A model for agents of LangChain and deepagents that says what a test tells it."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field


class Scripted(BaseChatModel):
    """A model that says what it was told to, in order, and keeps what it was asked.

    A function among the answers is called when its turn comes.
    """

    answers: list[Any] = Field(default_factory=list)
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.asked.append(messages)
        said = self.answers.pop(0) if self.answers else f"Answer {len(self.asked)}."
        said = said() if callable(said) else said
        made = said.model_copy() if isinstance(said, AIMessage) else AIMessage(said)
        return ChatResult(generations=[ChatGeneration(message=made)])
