"""Texts made into objects, each by itself; one answer does not fit, and is asked for again."""

import instructor
import openai
from pydantic import BaseModel
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


class Place(BaseModel):
    city: str
    year: int


for number, conversation in enumerate(CONVERSATIONS):
    client = openai.OpenAI(base_url=URL, api_key=KEY, default_headers=headers(number))
    for text in texts(conversation):
        instructor.from_openai(client, mode=instructor.Mode.JSON).chat.completions.create(
            model=MODEL, response_model=Place, max_retries=2, messages=[{"role": "user", "content": text}]
        )
