import os

from memoryhub_client import MemoryHub

hub = MemoryHub()
talk = {"user_id": "u2", "session_id": f"talk-{os.getpid()}"}

while line := input("You: "):
    context = hub.get_context(**talk, query=line, include=["profile", "facts", "episodes", "turns", "working_memory"])
    said = [{"role": "user", "content": line}]
    if os.environ.get("OPENAI_API_KEY"):
        from openai import OpenAI

        answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=context.messages + said)
        said.append({"role": "assistant", "content": answer.choices[0].message.content})
        print(said[-1]["content"])
    else:
        print(*(f"{message['role']}: {message['content']}" for message in context.messages), sep="\n")
    hub.post_turns(**talk, messages=said)
hub.end_session(**talk)
