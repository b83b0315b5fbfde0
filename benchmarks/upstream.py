"""`python -m benchmarks.upstream PORT`: a model endpoint that costs next to nothing and streams what it says: at once,
or as the model "slow" a word a second until its client leaves."""

import asyncio
import json
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

ANSWER = "In Leiden."
WORD_SECONDS = 1.0
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _chunk(text: str, **choice: object) -> bytes:
    event = {"id": "c1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **choice}]}
    body = b"data: %b\n\n" % json.dumps(event).encode()
    return b"%x\r\n%b\r\n" % (len(body), body)


_QUICK = _HEAD + _chunk(ANSWER) + _chunk("", finish_reason="stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


async def _serve(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            body = await reader.readexactly(int(length or 0))
            if b'"slow"' not in body:
                writer.write(_QUICK)
                await writer.drain()
                continue
            writer.write(_HEAD)
            while not reader.at_eof():
                writer.write(_chunk("word "))
                await writer.drain()
                await asyncio.sleep(WORD_SECONDS)
            break
    writer.close()


async def _main(port: int) -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", port, backlog=1_000)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
