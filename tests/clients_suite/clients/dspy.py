"""A question by ReAct with a tool, and one behind examples."""

import dspy
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


def model(session: int) -> dspy.LM:
    return dspy.LM(f"openai/{MODEL}", api_base=URL, api_key=KEY, extra_headers=headers(session), cache=False)


for text in texts(CONVERSATIONS[0]):
    with dspy.context(lm=model(0)):
        dspy.ReAct("question -> answer", tools=[weather])(question=text)

examples = [dspy.Example(question="I am allergic to shrimp. My name is Demo. What now?", answer="Eat beans.")]
shown = dspy.LabeledFewShot(k=1).compile(
    dspy.Predict("question -> answer"), trainset=[one.with_inputs("question") for one in examples]
)
for text in texts(CONVERSATIONS[1]):
    with dspy.context(lm=model(1)):
        shown(question=text)
